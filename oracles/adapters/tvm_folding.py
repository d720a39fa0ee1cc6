"""relax's constant folding: TVM compiles a cast of a constant, runs it, and keeps the answer."""

from __future__ import annotations

from typing import Any

from oracles.adapters.framework import load
from oracles.protocol import Unsupported


class Folding:
    """Folds a relax function that casts a constant."""

    def __init__(self, tvm: Any) -> None:
        self._tvm = tvm
        self._relax: Any = load("tvm.relax", "tvm")

    def answer(self, tensor: Any, target: str, compiler: str) -> Any:
        """The tensor that replaces the cast of another in a module."""
        builder, relax = self._relax.BlockBuilder(), self._relax
        with builder.function("main", []):
            with builder.dataflow():
                cast = builder.emit_output(relax.op.astype(relax.const(tensor), target))
            builder.emit_func_output(cast)
        with self._tvm.target.Target(compiler):
            module = relax.transform.LegalizeOps()(builder.get())
            body = relax.transform.FoldConstant()(module)["main"].body
        if len(body.blocks):
            raise Unsupported("relax did not fold this, but left a call")
        return body.body.value
