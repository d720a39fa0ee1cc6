"""Write programs of one operation as StableHLO text, and find what XLA did not fold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from oracles.adapters.dtype_table import names_in
from oracles.protocol import Unsupported
from specs.cases import Case, Shape
from specs.formats import format_named

COMPUTED = re.compile(r" (convert|bitcast-convert|reduce-precision|compare|real|complex|iota)\(")
"""Matches an operation that XLA did not fold in a program; a cast to bool becomes a compare."""

REDUCTION = "stablehlo-reduce-precision"
"""The document of the operation that reduces the precision, and returns the type that it takes."""
PRECISION = "bits"
"""The reduction's parameter: a precision such as `e5m10`, as StableHLO's text form writes it."""

HloOperation = Literal["convert", "bitcast_convert", "reduce_precision"]

ELEMENTS: Mapping[str, str] = names_in("stablehlo")
"""StableHLO's names of the dtypes."""

UNCHANGED = """\
func.func @main(%x: {source}) -> {source} {{
  return %x : {source}
}}
"""

PROGRAM = """\
func.func @main(%x: {source}) -> {target} {{
  {statement}
  return %y : {target}
}}
"""


def program(
    operation: HloOperation | None,
    source: str,
    target: str,
    shape: Shape,
    precision: str | None = None,
) -> str:
    """Return the text of a program of one operation on a tensor of dtype ``source`` and this shape.

    ``target`` is the result's dtype, and ``precision``, such as `e5m10`, that of
    ``reduce_precision``. If ``operation`` is None, the program returns its argument.
    """
    argument = tensor_type(source, shape)
    if operation is None:
        return UNCHANGED.format(source=argument)
    result = bitcast_shape(source, target, shape) if operation == "bitcast_convert" else shape
    found = tensor_type(target, result)
    line = statement(operation, argument, found, precision)
    return PROGRAM.format(statement=line, source=argument, target=found)


def statement(operation: HloOperation, source: str, target: str, precision: str | None) -> str:
    """Return the statement that computes %y from %x by an operation.

    ``source`` and ``target`` are their types as StableHLO writes them. ``precision`` is that of
    ``reduce_precision``, and None for other operations.
    """
    attribute = f", format = {precision}" if precision else ""
    return f"%y = stablehlo.{operation} %x{attribute} : ({source}) -> {target}"


def precision_of(case: Case) -> str | None:
    """Return the precision of a case of ``reduce_precision``, such as `e5m10`, or None for others.

    Raises Unsupported for a case of ``reduce_precision`` that names no precision.
    """
    if case.document != REDUCTION:
        return None
    if PRECISION not in case.mode:
        raise Unsupported("reduce_precision returns the type that it takes")
    return case.mode[PRECISION]


def widths_of(precision: str) -> tuple[int, int]:
    """Return the numbers of exponent and mantissa bits of a precision such as `e5m10`."""
    exponent, mantissa = precision.removeprefix("e").split("m")
    return int(exponent), int(mantissa)


def bitcast_shape(source: str, target: str, shape: Shape) -> Shape:
    """Return the shape that a bitcast of a tensor of this shape has.

    Narrower elements add a last dimension, and wider ones remove it. The compiler refuses a last
    dimension that does not fit.
    """
    source_bits, target_bits = format_named(source).bits, format_named(target).bits
    if source_bits > target_bits:
        return (*shape, source_bits // target_bits)
    return shape[:-1] if source_bits < target_bits else shape


def tensor_type(dtype: str, shape: Shape) -> str:
    """Return the type of a tensor of this dtype and shape, as StableHLO's text form writes it."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{ELEMENTS[dtype]}>"
