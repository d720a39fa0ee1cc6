"""Staircases: what a ruling allows for all source patterns, in a few thousand steps.

The patterns of a source fall into *stretches* of evenly spaced values (a binade, as a rule). Inside
one, rounding is periodic: pattern ``first + n * 2**shift + offset`` is allowed what
``first + offset`` is allowed, plus ``n`` times a constant rise. A *step* holds the answers allowed
from one offset of the period to the next, and their rise.

``exact`` alone decides what a step allows. That stretches are periodic is an argument about
arithmetic; the proof by exhaustion checks it against the kernels on every input.

Where a rule recommends a part of what it allows, a step holds only the recommended part. A caller
that finds an answer outside of it must still check whether the rule itself allows it. A step of
inputs that must be refused holds a zero, because no range of codes is empty; the zero is not
allowed either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact_rulings
from oracles.reference.exact import (
    Number,
    decode,
    encode,
    exceeds,
    limits,
    round_magnitude,
    unit_of,
)
from oracles.reference.expectations import Allowed
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Rounding
from specs.outcomes import Anything, Exactly, Nan, Rejected


@dataclass(frozen=True, slots=True)
class Stretch:
    """Source patterns ``first`` to ``last`` with a period of ``2**shift`` patterns.

    ``offsets`` are those of the first period at which the answer may change, in any rounding mode.
    """

    first: int
    last: int
    shift: int
    offsets: tuple[int, ...]


@lru_cache(maxsize=64)
def stretches(
    source: Format, target: Format, on_the_way: tuple[Format, ...] = ()
) -> tuple[Stretch, ...]:
    """Partition the source patterns of a numeric pair into stretches, in the order of patterns.

    ``on_the_way`` are the formats to which behaviors round before the target. The stretches and
    their offsets allow for the range and the values of each of them, too.
    """
    steps = (target, *on_the_way)
    cuts = {cut for each in steps for cut in _cuts(source, _range_ends(each))}
    cuts |= {cut for each in on_the_way for cut in _cuts(source, _ends_of_tiny(each))}
    binades = sorted(_binades(source))
    return tuple(
        _stretch(source, steps, first, last)
        for start, end in binades
        for first, last in _split(start, end, sorted(cut for cut in cuts if start < cut <= end))
    )


def _split(start: int, end: int, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """Split the range ``start`` to ``end``, both included, before each cut; yield the parts."""
    yield from zip([start, *cuts], [*(cut - 1 for cut in cuts), end], strict=True)


def _binades(source: Format) -> Iterator[tuple[int, int]]:
    """Yield the first and last pattern of each binade, and of zeros, infinities and NaNs.

    Subnormals and integers are divided by their leading bit.
    """
    if source.is_integral:
        yield 0, 0
        for bit in range(source.max_code.bit_length()):
            yield 1 << bit, (2 << bit) - 1
            if source.is_signed:
                yield source.mask + 2 - (2 << bit), source.mask + 1 - (1 << bit)
        if source.is_signed:
            yield source.sign_bit, source.sign_bit
        return
    for sign in dict.fromkeys((0, source.sign_bit)):
        for start, end in _magnitudes(source):
            yield start | sign, end | sign


def _magnitudes(source: Format) -> Iterator[tuple[int, int]]:
    """Yield the ranges of non-negative float patterns: zero, the binades, infinity, NaNs."""
    hidden = 1 << source.entry.mantissa
    start = 0
    if source.entry.zero != "none":
        yield 0, 0
        for bit in range(source.entry.mantissa):
            yield 1 << bit, (2 << bit) - 1
        start = hidden
    for first in range(start, source.max_code + 1, hidden):
        yield first, min(first + hidden - 1, source.max_code)
    end = source.mask ^ source.sign_bit
    if source.entry.infinity:
        yield source.infinity_code, source.infinity_code
        yield source.infinity_code + 1, end
    elif source.max_code < end:
        yield source.max_code + 1, end


def _cuts(source: Format, points: Iterator[Number]) -> Iterator[int]:
    """Yield the source patterns at and next to some values; ranges are split before these.

    Values that the source cannot reach are left out.
    """
    for point in points:
        if point.sign and not source.is_signed:
            continue
        if exceeds(point.significand, point.exponent, limits(source)[0]):
            continue
        unit = unit_of(source, point)
        code = encode(source, 0, round_magnitude(point, unit, "toward-zero"), unit)
        if point.sign and source.is_integral:
            yield from ((-code & source.mask), (-code & source.mask) + 1)
        else:
            code |= source.sign_bit * point.sign
            yield from (code, code + 1)


def _range_ends(target: Format) -> Iterator[Number]:
    """Yield the values at which the target's range ends, before or after rounding in any mode.

    These are the largest and the lowest value, the next values if the format went on, and the
    midpoints between them.
    """
    for sign, bound in enumerate(limits(target)[:2]):
        unit = unit_of(target, bound)
        multiple = round_magnitude(bound, unit, "toward-zero")
        yield Number(sign, multiple, unit)
        yield Number(sign, 2 * multiple + 1, unit - 1)
        yield Number(sign, multiple + 1, unit)


def _ends_of_tiny(way: Format) -> Iterator[Number]:
    """Yield, of both signs, the least magnitude that rounds to a float's smallest normal value.

    It rounds to nearest, ties to even, as if exponents had no lower end. An integer format has
    none.
    """
    if way.kind == "float":
        below = way.precision + 1
        for sign in (0, 1):
            yield Number(sign, (1 << below) - 1, way.lowest_exponent - below)


def _stretch(source: Format, steps: tuple[Format, ...], first: int, last: int) -> Stretch:
    """Return the stretch from ``first`` to ``last``, a range of evenly spaced values.

    ``steps`` are the formats to which values are rounded; the period is that of the coarsest. The
    offsets are those next to multiples of half an ulp of each format.
    """
    datum = decode(source, first)
    if not isinstance(datum, Number) or not datum.significand:
        # One step for all of them, unless a cast to the same format must keep each NaN.
        shift = (last - first).bit_length() if source != steps[0] else 0
        return Stretch(first, last, shift, (0,))
    if all(each.kind == "float" and _is_beyond(each, datum) for each in steps):
        return Stretch(first, last, (last - first).bit_length(), (0,))
    drops = {drop for each in steps if (drop := unit_of(each, datum) - datum.exponent) > 0}
    if not drops:
        return Stretch(first, last, 0, (0,))
    # The period is two ulps of the format: an even and an odd multiple can round differently.
    shift = min(max(drops) + 1, (last - first).bit_length())
    end = min(first + (1 << shift) - 1, last)
    near = {first, first + 1}
    for half in (1 << (drop - 1) for drop in drops):
        half_ulps = range(first - first % half, end + 2, half)
        near |= {code + step for code in half_ulps for step in (-1, 0, 1)}
    return Stretch(first, last, shift, tuple(sorted(x - first for x in near if first <= x <= end)))


def _is_beyond(target: Format, datum: Number) -> bool:
    """Return whether a value, and so each larger one of its sign, overflows in any rounding."""
    bound = limits(target)[datum.sign]
    unit = unit_of(target, bound)
    after = round_magnitude(bound, unit, "toward-zero") + 1
    return not exceeds(after, unit, datum)


class Step(NamedTuple):
    """The answers allowed from an offset of a period on: two ranges of codes.

    ``rise`` and ``other_rise`` are what each next period adds to the first and to the other range.
    ``branch_index`` counts in ``ruling.branches``. If one range is allowed, both are equal; a range
    of one code has ``low == high``. All sums are modulo the target's number of patterns.
    """

    offset: int
    branch_index: int
    low: int
    high: int
    rise: int
    other_low: int
    other_high: int
    other_rise: int


BOUNDS = (
    ("low", "rise"),
    ("high", "rise"),
    ("other_low", "other_rise"),
    ("other_high", "other_rise"),
)
"""The fields that rise from period to period, each with the field that holds its rise."""
STEP = np.dtype(
    [(name, np.uint8 if name == "branch_index" else np.uint64) for name in Step._fields], align=True
)
STRETCH = np.dtype(
    [
        ("first", np.uint64),
        ("last", np.uint64),
        ("shift", np.uint64),
        ("begin", np.int64),
        ("end", np.int64),
    ]
)


@dataclass(frozen=True)
class Staircase:
    """A ruling's steps; ``stretches`` are in pattern order, each with its slice of ``steps``."""

    ruling: Ruling
    stretches: NDArray[np.void]
    steps: NDArray[np.void]

    def steps_of(self, number: int) -> NDArray[np.void]:
        """Return the steps of the stretch with this index."""
        stretch = self.stretches[number]
        steps: NDArray[np.void] = self.steps[stretch["begin"] : stretch["end"]]
        return steps

    def column(self, name: str) -> NDArray[Any]:
        """Return one field of all steps as a contiguous array."""
        return np.ascontiguousarray(self.steps[name])


@lru_cache(maxsize=256)
def staircase(ruling: Ruling, on_other_ways: tuple[Format, ...] = ()) -> Staircase:
    """Compute, by ``exact`` alone, the staircase of a numeric ruling without worked examples.

    Its stretches allow for the formats ``on_other_ways``, too, so that the staircases of two
    rulings have the same stretches if each gets the formats on the way of the other.
    """
    rows: list[tuple[int, ...]] = []
    steps: list[Step] = []
    # In one order, so that it does not matter which of two rulings has a format on its way.
    ways = {each.name: each for each in (*ruling.on_the_way, *on_other_ways)}
    on_the_way = tuple(ways[name] for name in sorted(ways))
    for stretch in stretches(ruling.source, ruling.target, on_the_way):
        begin = len(steps)
        steps += _steps(ruling, stretch)
        rows.append((stretch.first, stretch.last, stretch.shift, begin, len(steps)))
    return Staircase(ruling, np.array(rows, STRETCH), np.array(steps, STEP))


def _steps(ruling: Ruling, stretch: Stretch) -> Iterator[Step]:
    """Yield the steps of a stretch's first period.

    An offset at which the allowed answers stay the same begins no step.
    """
    allow = partial(
        exact_rulings.allow,
        ruling,
        classified=_classified(ruling.source, ruling.target, ruling.rounding),
    )
    current: Step | None = None
    for offset in stretch.offsets:
        allowed = allow(stretch.first + offset)
        later = stretch.first + offset + (1 << stretch.shift)
        next_period = allow(later) if later <= stretch.last else None
        step = _step(ruling, offset, allowed, next_period)
        if current is None or not _continues(current, step, next_period is not None):
            yield step
            current = step


@lru_cache(maxsize=1)
def _classified(source: Format, target: Format, rounding: Rounding) -> exact_rulings.Classified:
    """Return the cache of the last pair and rounding, whose rulings come one after the other."""
    return {}


def _step(ruling: Ruling, offset: int, allowed: Allowed, next_period: Allowed | None) -> Step:
    branch_index, mask = allowed.branch_index, ruling.target.mask
    match allowed.branch.strictest:
        case Anything():
            return Step(offset, branch_index, 0, mask, 0, 0, mask, 0)
        case Nan(sign=sign):
            one, *_, other = [*ruling.target.nans(sign)] * 2
            return Step(offset, branch_index, one[0], one[-1], 0, other[0], other[-1], 0)
        case Exactly(code=code):
            return Step(offset, branch_index, code, code, 0, code, code, 0)
        case Rejected():
            return Step(offset, branch_index, 0, 0, 0, 0, 0, 0)
    code, other_code = allowed.codes[0], allowed.codes[-1]
    rise, other_rise = 0, 0
    if next_period is not None:
        assert next_period.branch_index == branch_index, (
            f"{ruling} is not periodic at offset {offset}"
        )
        rise = (next_period.codes[0] - code) & mask
        other_rise = (next_period.codes[-1] - other_code) & mask
    return Step(offset, branch_index, code, code, rise, other_code, other_code, other_rise)


def _continues(current: Step, step: Step, has_rise: bool) -> bool:
    """Return whether ``step`` allows the same as ``current``, the step before it.

    If there is no next period (``has_rise`` is false), the rise of ``step`` is unknown and is not
    compared.
    """
    if has_rise:
        return current[1:] == step[1:]
    return current._replace(rise=0, other_rise=0)[1:] == step[1:]
