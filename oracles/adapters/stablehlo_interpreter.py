"""StableHLO's reference interpreter, which is part of jaxlib.

The interpreter takes and returns MLIR attributes. An attribute of any dtype can be made from bytes,
but numpy can read only those of its own dtypes. So each program ends with an operation that brings
the bits of its result into such a dtype: a bitcast to unsigned integers, to single bits for codes
of less than a byte, or two operations that take a complex number apart.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    NUMPY_DTYPES,
    bits_statement,
    print_statement,
    print_tensor,
)
from oracles.adapters.scripted import Function, function_of
from oracles.adapters.stablehlo import (
    ELEMENTS,
    REDUCTION,
    HloOperation,
    bitcast_shape,
    precision_of,
    statement,
    tensor_type,
)
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case, Shape
from specs.formats import Format, format_named

MOST_BYTES = 1 << 26
"""Bytes of tensors after which a context is replaced: it frees none that was made in it."""

WHOLE, PACKED, COMPLEX = (
    'parts[0].view("{storage}")',
    'np.packbits(parts[0], -1, bitorder="little")[..., 0]',
    'np.stack(parts, -1).view("{storage}")[..., 0]',
)
"""The expressions by which scripts make patterns of the arrays that numpy reads."""


class StableHlo:
    """Casts, bitcasts and reduces the precision by interpreting one operation of StableHLO."""

    name = "stablehlo"
    claims: tuple[str, ...] = ("stablehlo-convert", "stablehlo-bitcast-convert", REDUCTION)

    def __init__(self, variant: str | None = None) -> None:
        jax = load("jax", "jax")
        require_variant(self.name, variant, ())
        self._make_context = load("jax.interpreters.mlir", "jax").make_ir_context
        self._ir: Any = load("jaxlib.mlir.ir", "jax")
        self._stablehlo: Any = load("jaxlib.mlir.dialects.stablehlo", "jax")
        self._release = str(jax.__version__)
        self.version = f"{self._release}+stablehlo{self._stablehlo.get_current_version()}"
        self._context = self._make_context()
        self._bytes = 0

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one ``convert`` or one ``reduce_precision``.

        Raises Unsupported for a ``convert`` with modes that ``require_plain`` refuses, a
        ``reduce_precision`` without a precision, or a dtype that StableHLO lacks.
        """
        return self._answer(_program(case, bits.shape), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one ``bitcast_convert``, in the shape that it gives them.

        Raises Unsupported for modes that ``require_plain`` refuses, or a dtype that StableHLO
        lacks.
        """
        require_plain(case, "stablehlo.bitcast_convert")
        return self._answer(
            HloProgram("bitcast_convert", case.source, case.target, bits.shape), bits
        )

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, "stablehlo.bitcast_convert")

    def road(self, case: Case) -> str:
        """Return, as text, the pair of dtypes and, if the precision is reduced, the precision.

        Raises Unsupported as ``cast`` does.
        """
        precision = _program(case, ()).precision
        for dtype in (case.source, case.target):
            _require_element(dtype)
        return f"{case.source}->{case.target}{f', {precision}' if precision else ''}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast``: the interpreter prepares nothing.

        Raises Unsupported as ``cast`` does.
        """
        self.road(case)  # refuses what ``cast`` refuses, for the same reason
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a program that returns its argument.

        Raises Unsupported if StableHLO lacks the dtype.
        """
        return self._answer(HloProgram(None, dtype, dtype, bits.shape), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that interprets the operation; raise Unsupported as ``cast`` does."""
        self.road(case)
        program = _program(case, bits.shape)
        return self._script(program, case, bits) + print_statement(case.source, case.target, bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does a bitcast on the interpreter.

        Raises Unsupported as ``bitcast`` does.
        """
        require_plain(case, "stablehlo.bitcast_convert")
        for dtype in (case.source, case.target):
            _require_element(dtype)
        program = HloProgram("bitcast_convert", case.source, case.target, bits.shape)
        return self._script(program, case, bits) + print_tensor(case.target)

    def _script(self, program: HloProgram, case: Case, bits: Bits) -> str:
        return SCRIPT.format(
            version=self._release,
            case=case,
            bits=bits_statement(case.source, bits),
            program=program.text(),
            element=ELEMENTS[case.source],
            codes=_codes_text(case.target),
        )

    def _answer(self, program: HloProgram, bits: Bits) -> Bits:
        for dtype in (program.source, program.target):
            _require_element(dtype)
        source = format_named(program.source)
        # Attributes are made of bytes in their order.
        memory = (bits & np.uint8(source.mask)) if is_packed(source) else bits
        memory = np.require(memory, requirements="C")
        with self._fresh_context(memory.nbytes):
            module = self._ir.Module.parse(program.text())
            element = self._ir.Type.parse(ELEMENTS[program.source])
            x = self._ir.DenseElementsAttr.get(memory, type=element, shape=bits.shape)
            parts = [np.array(part) for part in self._stablehlo.eval_module(module, [x])]
        return np.asarray(_codes(program.target)(parts))

    def _fresh_context(self, size: int) -> Any:
        """Return an MLIR context with room for ``size`` more bytes of tensors.

        That is a new one if the old one would hold more than ``MOST_BYTES``.
        """
        self._bytes += size
        if self._bytes > MOST_BYTES:
            self._context, self._bytes = self._make_context(), size
        return self._context


def _require_element(dtype: str) -> None:
    if dtype not in ELEMENTS:
        raise Unsupported(f"StableHLO has no element type {dtype}")


def _program(case: Case, shape: Shape) -> HloProgram:
    precision = precision_of(case)
    if precision is None:
        require_plain(case, "stablehlo.convert")
        return HloProgram("convert", case.source, case.target, shape)
    return HloProgram("reduce_precision", case.source, case.target, shape, precision)


def _codes_text(dtype: str) -> str:
    """Return the expression of the patterns in ``parts``, the arrays that numpy reads.

    ``dtype`` is that of the program's result.
    """
    entry = format_named(dtype)
    codes = PACKED if is_packed(entry) else COMPLEX if entry.kind == "complex" else WHOLE
    return codes.format(storage=entry.storage)


@cache
def _codes(dtype: str) -> Function:
    return function_of({"np": np}, "parts", "", _codes_text(dtype))


class HloProgram(NamedTuple):
    """A program of one operation on a tensor, and of those that make its result readable for numpy.

    If ``operation`` is None, the argument itself is the result. ``shape`` is that of the argument,
    and ``precision`` that of a ``reduce_precision``.
    """

    operation: HloOperation | None
    source: str
    target: str
    shape: Shape
    precision: str | None = None

    def text(self) -> str:
        """Return the program in StableHLO's text form."""
        shape = self.shape
        if self.operation == "bitcast_convert":
            shape = bitcast_shape(self.source, self.target, shape)
        x, y = tensor_type(self.source, self.shape), tensor_type(self.target, shape)
        lines, value = [], "%x"
        if self.operation is not None:
            lines, value = [statement(self.operation, x, y, self.precision)], "%y"
        entry = format_named(self.target)
        read_shape = (*shape, entry.bits) if is_packed(entry) else shape
        names: list[str] = []
        types: list[str] = []
        for operation, dtype in _readings(entry):
            types.append(tensor_type(dtype, read_shape))
            names.append(f"%{len(names)}" if operation else value)
            if operation:
                lines.append(f"{names[-1]} = stablehlo.{operation} {value} : ({y}) -> {types[-1]}")
        lines.append(f"return {', '.join(names)} : {', '.join(types)}")
        body = "\n  ".join(lines)
        return f"func.func @main(%x: {x}) -> ({', '.join(types)}) {{\n  {body} }}"


def _readings(entry: Format) -> list[tuple[str | None, str]]:
    """Return the operations on a tensor whose results numpy can read, each with its result's dtype.

    The operation is None where numpy can read the tensor itself. A complex tensor has two, for its
    parts.
    """
    if entry.kind == "complex":
        return [(part, entry.entry.part) for part in ("real", "imag")]
    if entry.name in NUMPY_DTYPES:
        return [(None, entry.name)]
    return [("bitcast_convert", "bool" if is_packed(entry) else entry.storage)]


SCRIPT = """\
# jax {version}: {case}
import numpy as np
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

{bits}
program = \"\"\"{program}\"\"\"
with make_ir_context():
    x = ir.DenseElementsAttr.get(bits, type=ir.Type.parse("{element}"), shape=bits.shape)
    parts = [np.array(y) for y in stablehlo.eval_module(ir.Module.parse(program), [x])]
answers = {codes}
"""
