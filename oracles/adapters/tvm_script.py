"""Reproduction scripts for TVM."""

from __future__ import annotations

from oracles.adapters.script_text import given, masked, printed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# tvm {version}: {case}
import numpy as np
import tvm
from tvm import {modules}

{given}


def tensor(dtype, storage):  # a byte per code of less than a byte: so the compiled code reads it
    memory = tvm.runtime.empty((len(bits) * np.dtype(storage).itemsize,), "uint8")
    return memory._create_view((len(bits),), dtype), np.from_dlpack(memory).view(storage)


x, content = tensor("{source}", "{source_storage}")
content[:] = bits
"""

COMPILED = """\
n = {length}
a = te.placeholder((n,), "{source}", "a")
b = te.compute((n,), lambda i: a[i].astype("{target}"))
kernel = tvm.compile(te.create_prim_func([{arguments}a, b]), "{compiler}")["main"]
y, answers = tensor("{target}", "{target_storage}")
kernel({counted}x, y)
"""

FOLDED = """\
builder = relax.BlockBuilder()
with builder.function("main", []):
    with builder.dataflow():
        cast = builder.emit_output(relax.op.astype(relax.const(x), "{target}"))
    builder.emit_func_output(cast)
with tvm.target.Target("{compiler}"):
    module = relax.transform.FoldConstant()(relax.transform.LegalizeOps()(builder.get()))
y = module["main"].body.body.value
content = y._create_view((len(bits) * np.dtype("{target_storage}").itemsize,), "uint8")
answers = np.from_dlpack(content).view("{target_storage}")
"""


def reproduction(
    version: str,
    case: Case,
    bits: Bits,
    types: tuple[str, str],
    compiler: str,
    variant: str | None,
) -> str:
    """The script of one case; ``types`` are TVM's names of its dtypes."""
    is_open = variant is None
    clear = f"answers = answers{masked(case.target)}\n" if masked(case.target) else ""
    return (HEADER + (FOLDED if variant == "folded" else COMPILED) + clear).format(
        version=version,
        case=case,
        given=given(case.source, bits),
        modules="relax" if variant == "folded" else "te, tirx" if is_open else "te",
        source=types[0],
        target=types[1],
        source_storage=format_named(case.source).storage,
        target_storage=format_named(case.target).storage,
        compiler=compiler,
        length='tirx.Var("n", "int64")' if is_open else "len(bits)",
        arguments="n, " if is_open else "",
        counted="len(bits), " if is_open else "",
    ) + printed(case.source, case.target)
