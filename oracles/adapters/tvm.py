"""TVM's ``astype`` and ``reinterpret``, compiled for the CPU by LLVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from oracles.adapters.framework import load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.adapters.script import given, masked, printed
from oracles.packing import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()
"""No relax: its ``astype`` becomes the same program, and gives the same answers."""

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3": "float8_e4m3",
    "float8e3m4": "float8_e3m4",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "int4": "int4",
    "int2": "int2",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "uint4": "uint4",
    "uint2": "uint2",
    "bool": "bool",
}

TARGET = "llvm"
"""It names no processor: the same instructions on every machine of an architecture."""

NO_SUCH_CAST = "to.MatchesCode(DLDataTypeCode::kDLFloat)"
"""How the code generator says that it lacks a cast between floats."""

Element = Callable[[Any], Any]
Kernel = Callable[[int, Any, Any], None]

SCRIPT = """\
# tvm {version}: {case}
import numpy as np
import tvm
from tvm import te, tirx

{given}


def tensor(dtype, storage):  # a byte per code of less than a byte: so the compiled code reads it
    memory = tvm.runtime.empty((len(bits) * np.dtype(storage).itemsize,), "uint8")
    return memory._create_view((len(bits),), dtype), np.from_dlpack(memory).view(storage)


n = tirx.Var("n", "int64")
a = te.placeholder((n,), "{source}", "a")
b = te.compute((n,), lambda i: a[i].astype("{target}"))
kernel = tvm.compile(te.create_prim_func([n, a, b]), "{compiler}")["main"]

x, content = tensor("{source}", "{source_storage}")
y, answers = tensor("{target}", "{target_storage}")
content[:] = bits
kernel(len(bits), x, y)
{clear}"""


class Tvm:
    """A cast by ``astype``, a bitcast by ``reinterpret``: one element of a compiled loop."""

    name = "tvm"
    # No document that is encoded here describes TVM's operations.
    claims: tuple[str, ...] = ()

    def __init__(self, variant: str | None = None) -> None:
        self._tvm: Any = load("tvm", "tvm")
        self._te: Any = load("tvm.te", "tvm")
        self._tirx: Any = load("tvm.tirx", "tvm")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._tvm.__version__)
        self._cast = cache(self._compiled_cast)
        self._bitcast = cache(self._compiled_bitcast)
        self._copy = cache(self._compiled_copy)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one loop of ``astype``."""
        require_plain(case, "astype")
        return self._answer(self._cast(case.source, case.target), case.source, case.target, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one loop of ``reinterpret``, which keeps the width and the shape."""
        require_plain(case, "reinterpret")
        kernel = self._bitcast(case.source, case.target)
        return self._answer(kernel, case.source, case.target, bits)

    def road(self, case: Case) -> str:
        """The pair alone: ``astype`` knows nothing of documents, versions and modes."""
        require_plain(case, "astype")
        for dtype in (case.source, case.target):
            _name(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that copies ``bits`` into one tensor and casts it into another."""
        require_plain(case, "astype")
        return self._bound(self._cast(case.source, case.target), case.source, case.target, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits through a loop that copies."""
        return self._answer(self._copy(dtype), dtype, dtype, bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks TVM the same, without this project."""
        self.road(case)
        clear = f"answers = answers{masked(case.target)}\n" if masked(case.target) else ""
        return SCRIPT.format(
            version=self.version,
            case=case,
            given=given(case.source, bits),
            source=DTYPES[case.source],
            target=DTYPES[case.target],
            source_storage=format_named(case.source).storage,
            target_storage=format_named(case.target).storage,
            compiler=TARGET,
            clear=clear,
        ) + printed(case.source, case.target)

    def _answer(self, kernel: Kernel, source: str, target: str, bits: Bits) -> Bits:
        # A loop over the flat elements serves every shape: neither operation looks at another one.
        return self._bound(kernel, source, target, bits.reshape(-1))().reshape(bits.shape)

    def _bound(self, kernel: Kernel, source: str, target: str, bits: Bits) -> Bound:
        # TVM wants its memory aligned to 64 bytes, which numpy's seldom is.
        x, content = self._tensor(source, bits.size)
        y, codes = self._tensor(target, bits.size)
        entry = format_named(target)

        def call() -> Bits:
            np.copyto(content, bits)
            kernel(bits.size, x, y)
            if is_packed(entry):
                np.bitwise_and(codes, np.uint8(entry.mask), out=codes)
            return codes

        return call

    def _tensor(self, dtype: str, count: int) -> tuple[Any, Bits]:
        """A tensor, and the patterns in it.

        Of a type of less than a byte TVM's own tensors hold several codes in a byte, but its code
        takes a byte for each, beyond the tensor's end: so it gets as many bytes.
        """
        storage = np.dtype(format_named(dtype).storage)
        memory = self._tvm.runtime.empty((max(count, 1) * storage.itemsize,), "uint8")
        tensor = memory._create_view((count,), DTYPES[dtype])
        return tensor, np.from_dlpack(memory).view(storage)[:count]

    def _compiled_cast(self, source: str, target: str) -> Kernel:
        to = _name(target)
        try:
            return self._compiled(source, lambda element: element.astype(to))
        except RuntimeError as error:
            if NO_SUCH_CAST not in str(error):
                raise
            pair = f"{DTYPES[source]} to {to}"
            raise Unsupported(f"TVM generates no code for {TARGET} that casts {pair}") from None

    def _compiled_bitcast(self, source: str, target: str) -> Kernel:
        to = _name(target)
        return self._compiled(source, lambda element: self._tirx.reinterpret(to, element))

    def _compiled_copy(self, dtype: str) -> Kernel:
        return self._compiled(dtype, lambda element: element)

    def _compiled(self, source: str, operation: Element) -> Kernel:
        # The length is an argument of its own, since TVM reads none off a tensor of int4.
        n = self._tirx.Var("n", "int64")
        a = self._te.placeholder((n,), _name(source), "a")
        b = self._te.compute((n,), lambda i: operation(a[i]))
        program = self._te.create_prim_func([n, a, b])
        kernel: Kernel = self._tvm.compile(program, TARGET)["main"]
        return kernel


def _name(dtype: str) -> str:
    try:
        return DTYPES[dtype]
    except KeyError:
        raise Unsupported(f"tvm has no dtype {dtype}") from None
