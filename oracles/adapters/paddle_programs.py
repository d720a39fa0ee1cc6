"""paddle's cast as a static program: traced once for a pair and a rank, then run on tensors."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.adapters.framework import first_line
from oracles.adapters.paddle_tensors import Tensors
from oracles.protocol import Unsupported

PROGRAMS_KEPT = 64

Program = Callable[[Any], Any]


class Programs:
    """Programs that hold nothing but a cast, for a backend of ``to_static``."""

    def __init__(self, paddle: Any, tensors: Tensors, backend: str | None = None) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._backend = backend
        self.cast = lru_cache(PROGRAMS_KEPT)(self._traced)

    def _traced(self, source: str, target: str, rank: int) -> Program:
        x, dtype = self._tensors.dtype(source), self._tensors.dtype(target)
        spec = self._paddle.static.InputSpec([-1] * rank, x, stop_gradient=True)
        # Without ``full_graph`` what cannot be traced is run eagerly, and nobody is told.
        static = self._paddle.jit.to_static(
            self._paddle.cast, input_spec=[spec, dtype], full_graph=True, backend=self._backend
        )
        try:
            traced = static.concrete_program
        except (NotImplementedError, TypeError, ValueError) as error:
            raise Unsupported(f"no static program: {_reason(error)}") from None
        if traced.inputs[0].dtype != x:
            taken = traced.inputs[0].dtype
            raise Unsupported(f"no static program: it takes {source} for {taken}")

        def program(tensor: Any) -> Any:
            # An answer of one element is compared with a number that float16 and others lack.
            with np.errstate(over="ignore"):
                return static(tensor, dtype)

        return program


def _reason(error: Exception) -> str:
    """What is wrong, without the traced code before it and paddle's source file behind it."""
    named = re.search(r"^ *\w+Error: (.*)$", str(error), re.MULTILINE)
    return (named[1] if named else first_line(error)).partition(" (at ")[0]
