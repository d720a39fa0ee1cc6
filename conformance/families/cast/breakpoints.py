"""Source patterns at which a cast can change its answer.

These are the target's values and the midpoints between them: in every rounding mode, a step of the
staircase starts at or next to one of them. They are computed by the kernels, many at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.kernels import OFFSET, TOP, WIDTH, Unpacked, convert, select_arrays, unpack
from specs.formats import Format, format_named

Words = NDArray[np.uint64]
LEADING_ONE = np.uint64(1 << TOP)


def breakpoints(source: Format, target: Format, target_codes: Any) -> Words:
    """Return the source patterns around target values, and around the midpoints after them.

    For each of these numbers, they are the largest source pattern not above the number, and that
    pattern's neighbors. 0 and 1 are always included and, if source and target are signed, the
    negated patterns. After the largest target value, the number one unit further counts too; for
    signed integers of less than 64 bits, also 1.5 and 2 units. ``target_codes`` are patterns of
    non-negative finite values. The result is in rising order.
    """
    codes = np.asarray(target_codes, np.uint64)
    parts = unpack(target, codes, select_arrays)
    is_zero = np.asarray(parts.zero)
    values = _at(parts, ~is_zero)
    is_last = codes[~is_zero] == target.max_code
    beyond = _plus(values, np.uint64(1) << _lowest_places(target, values))
    found = [values, _halfway(target, values), _at(beyond, is_last)]
    if is_last.any() and target.is_integral and target.is_signed and target.bits < WIDTH:
        found.append(_below_lowest(target))
    if is_zero.any():
        found.append(_half_of_least(target))
    floors = np.concatenate([_floors(source, each) for each in found])
    near = np.concatenate([[np.uint64(0), np.uint64(1)], floors - 1, floors, floors + 1])
    inside = distinct(near[near <= source.max_code])
    if not (source.is_signed and target.is_signed):
        return inside
    return distinct(np.concatenate([inside, _negated(source, inside)]))


def ties(source: Format, target: Format, target_codes: Any) -> Words:
    """Return the source patterns halfway between target values and the next larger ones.

    ``target_codes`` are patterns of non-negative finite values; so are the ties. Midpoints that the
    source does not have are left out.
    """
    codes = np.asarray(target_codes, np.uint64)
    is_zero = np.asarray(unpack(target, codes, select_arrays).zero)
    found = [ties_after(source, target, codes[~is_zero])]
    if is_zero.any():
        found.append(_exactly(source, _half_of_least(target)))
    return distinct(np.concatenate([patterns[is_held] for patterns, is_held in found]))


def ties_after(
    source: Format, target: Format, target_codes: Words
) -> tuple[Words, NDArray[np.bool_]]:
    """Return for each target value the source pattern halfway to the next larger one.

    The mask says which of these midpoints the source has; where it has none, the pattern means
    nothing. ``target_codes`` are patterns of positive finite values.
    """
    return _exactly(source, _halfway(target, unpack(target, target_codes, select_arrays)))


def _exactly(source: Format, values: Unpacked) -> tuple[Words, NDArray[np.bool_]]:
    """Return source patterns of values, and which of the values the source has."""
    rounded = convert(source, "toward-zero", values, select_arrays)
    is_held = ~np.asarray(rounded.inexact | rounded.beyond | rounded.tiny)
    return np.asarray(rounded.code, np.uint64), is_held


def _halfway(target: Format, values: Unpacked) -> Unpacked:
    """Return the midpoints after values; a 64-bit value stays, as no source has its midpoint."""
    places = _lowest_places(target, values)
    halves = np.where(places > 0, np.uint64(1) << (places - np.uint64(1)), np.uint64(0))
    return _plus(values, halves)


def _half_of_least(target: Format) -> Unpacked:
    """Return half of the target's smallest positive value: the midpoint after zero."""
    least = unpack(target, np.array([1], np.uint64), select_arrays)
    return replace(least, exponent=least.exponent - np.uint64(1))


def distinct(codes: Words) -> Words:
    """Return each pattern once, in rising order; ``numpy.unique`` takes far longer."""
    ordered = np.sort(codes)
    is_first = np.append(np.ones(min(codes.size, 1), bool), ordered[1:] != ordered[:-1])
    once: Words = ordered[is_first]
    return once


def _below_lowest(target: Format) -> Unpacked:
    """Return the magnitudes half a unit and a unit below the lowest integer of a target.

    The last step ends there. There is one negative integer more than positive ones, so that these
    are 1.5 and 2 units beyond the largest. Twice these magnitudes are whole.
    """
    doubled = np.array([2 * target.max_code + 3, 2 * target.max_code + 4], np.uint64)
    parts = unpack(format_named("uint64"), doubled, select_arrays)
    return replace(parts, exponent=parts.exponent - np.uint64(1))


def _lowest_places(target: Format, values: Unpacked) -> Words:
    """Return which bit of each normalized significand counts one unit of the target."""
    if target.is_integral:
        units = np.uint64(OFFSET)
    else:
        lowest = np.uint64(target.lowest_exponent + OFFSET)
        units = np.maximum(values.exponent, lowest) - np.uint64(target.entry.mantissa)
    places: Words = np.uint64(TOP) + units - values.exponent
    return places


def _plus(values: Unpacked, steps: Words) -> Unpacked:
    """Return values with steps added to their significands; a carry starts the next binade."""
    total = values.significand + steps
    carries = total < values.significand
    return replace(
        values,
        significand=np.where(carries, LEADING_ONE, total),
        exponent=values.exponent + carries.astype(np.uint64),
    )


def _floors(source: Format, values: Unpacked) -> Words:
    """Return the largest source patterns not above the values.

    Values beyond the source's range, and those that round to zero, are left out.
    """
    converted = convert(source, "toward-zero", values, select_arrays)
    is_inside = ~np.asarray(converted.beyond) & ~np.asarray(converted.tiny)
    floors: Words = np.asarray(converted.code, np.uint64)[is_inside]
    return floors


def _at(values: Unpacked, some: NDArray[np.bool_]) -> Unpacked:
    pick = partial(_picked, some)
    return Unpacked(*(pick(getattr(values, name)) for name in Unpacked.__slots__))


def _picked(some: NDArray[np.bool_], column: Any) -> Any:
    return np.broadcast_to(column, some.shape)[some]


def _negated(source: Format, codes: Words) -> Words:
    if source.is_integral:
        return (np.uint64(0) - codes) & np.uint64(source.mask)
    return codes | np.uint64(source.sign_bit)
