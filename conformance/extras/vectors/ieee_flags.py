"""The exception flags of IEEE 754 that a conversion raises, from the exact value alone.

Flags are one byte, with the bits that RISC-V's ``fflags`` and SoftFloat have. A conversion never
divides by zero. The standard lets a machine detect a tiny result before or after rounding; where
that matters, the underflow bit is not in the mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformance.extras.vectors.intervals import ROW, IntervalRows
from conformance.families.cast.breakpoints import Words
from oracles.reference.exact import (
    NotANumber,
    Number,
    decode,
    exceeds,
    is_multiple,
    limits,
    round_magnitude,
    unit_of,
)
from specs.formats import Format
from specs.model.vocabulary import Rounding

INEXACT, UNDERFLOW, OVERFLOW, INVALID = 1, 2, 4, 16
ALL = 0x1F
"""The mask of the five flags."""


class RaisedFlags(NamedTuple):
    """The flags of one conversion, and the mask of those that are the same on all machines."""

    flags: int
    mask: int = ALL


def raised(source: Format, target: Format, rounding: Rounding, code: int) -> RaisedFlags:
    """Return the flags of converting a pattern of a float or integer format."""
    datum = decode(source, code)
    if isinstance(datum, NotANumber):
        is_quiet = code >> (source.entry.mantissa - 1) & 1
        return RaisedFlags(0 if is_quiet and target.kind == "float" else INVALID)
    if not isinstance(datum, Number):
        return RaisedFlags(0 if target.kind == "float" else INVALID)
    if not datum.significand:
        return RaisedFlags(0)
    unit = unit_of(target, datum)
    multiple = round_magnitude(datum, unit, rounding)
    largest, lowest, _, smallest_normal = limits(target)
    if exceeds(multiple, unit, lowest if datum.sign else largest):
        return RaisedFlags(OVERFLOW | INEXACT if target.kind == "float" else INVALID)
    if is_multiple(datum, unit):
        return RaisedFlags(0)
    if target.kind == "float" and _is_below(datum, smallest_normal):
        precise = datum.exponent + datum.significand.bit_length() - target.precision
        unbounded = Number(0, round_magnitude(datum, precise, rounding), precise)
        same = _is_below(unbounded, smallest_normal)
        return (
            RaisedFlags(UNDERFLOW | INEXACT, ALL) if same else RaisedFlags(INEXACT, ALL ^ UNDERFLOW)
        )
    return RaisedFlags(INEXACT)


def _is_below(number: Number, bound: Number) -> bool:
    """Return whether a value's magnitude is less than that of ``bound``."""
    return exceeds(bound.significand, bound.exponent, number)


def inputs_at_tininess(source: Format, target: Format) -> Words:
    """Return the patterns of a float around which results stop being tiny, in rising order.

    They are the target's smallest normal number, and those a quarter and a half of a unit before
    it, each with both neighbors and signs. There are none if no tiny result is inexact.
    """
    place = target.lowest_exponent - source.lowest_exponent
    dropped = source.entry.mantissa - target.entry.mantissa
    if source.kind != "float" or target.kind != "float" or place < 0 or dropped < 2:
        return np.array([], np.uint64)
    normal = place + 1 << source.entry.mantissa
    half = 1 << dropped - (place == 0)
    near = [normal - before + by for before in (half, half // 2, 0) for by in (-1, 0, 1)]
    sign = 1 << source.bits - 1
    return np.array([*near, *(sign | code for code in near)], np.uint64)


def flag_rows(source: Format, target: Format, rounding: Rounding, inputs: Words) -> IntervalRows:
    """Return the flags of inputs in rising order; those next to each other share a row if equal."""
    rows = np.zeros(inputs.size, ROW)
    rows["lo"] = rows["hi"] = inputs
    found = [raised(source, target, rounding, code) for code in inputs.tolist()]
    rows["first"] = rows["last"] = [each.flags for each in found]
    rows["mask"] = [each.mask for each in found]
    return rows
