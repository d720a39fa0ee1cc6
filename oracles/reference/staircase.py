"""Staircases: what a ruling allows for every source pattern there is, in a few thousand steps.

A step says which answers are allowed from one offset of a stretch's period to the next, and by how
much they rise from period to period. The definition alone decides what a step allows. That a
stretch repeats itself is arithmetic; the kernels check it on every input.

Where a rule recommends a part of what it allows, a step holds that part: an answer outside it is
looked at once more, to find out whether it breaks the rule or only the recommendation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact
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
from specs.formats import Format
from specs.outcomes import Anything, Exactly, Nan
from specs.ruling import Ruling


@dataclass(frozen=True, slots=True)
class Stretch:
    """Source patterns ``first`` to ``last``, which repeat themselves every ``2**shift``.

    ``offsets`` are the places of the first period at which the answer may change, in any rounding.
    """

    first: int
    last: int
    shift: int
    offsets: tuple[int, ...]


@lru_cache(maxsize=64)
def stretches(source: Format, target: Format) -> tuple[Stretch, ...]:
    """All source patterns of a numeric pair, in their order."""
    cuts = sorted(set(_cuts(source, target)))
    parts = sorted(_binades(source))
    return tuple(
        _stretch(source, target, first, last)
        for start, end in parts
        for first, last in _cut(start, end, [cut for cut in cuts if start < cut <= end])
    )


def _cut(start: int, end: int, cuts: list[int]) -> Iterator[tuple[int, int]]:
    yield from zip([start, *cuts], [*(cut - 1 for cut in cuts), end], strict=True)


def _binades(source: Format) -> Iterator[tuple[int, int]]:
    """Stretches of one leading bit, and what is no number or zero."""
    if source.is_integral:
        yield 0, 0
        for place in range(source.max_code.bit_length()):
            yield 1 << place, (2 << place) - 1
            if source.is_signed:
                yield source.mask + 2 - (2 << place), source.mask + 1 - (1 << place)
        if source.is_signed:
            yield source.sign_bit, source.sign_bit
        return
    for sign in dict.fromkeys((0, source.sign_bit)):
        for start, end in _magnitudes(source):
            yield start | sign, end | sign


def _magnitudes(source: Format) -> Iterator[tuple[int, int]]:
    """The patterns of one sign: zero, each binade, and what comes after the largest number."""
    hidden = 1 << source.entry.mantissa
    start = 0
    if source.entry.zero != "none":
        yield 0, 0
        for place in range(source.entry.mantissa):
            yield 1 << place, (2 << place) - 1
        start = hidden
    for first in range(start, source.max_code + 1, hidden):
        yield first, min(first + hidden - 1, source.max_code)
    end = source.mask ^ source.sign_bit
    if source.entry.infinity:
        yield source.infinity_code, source.infinity_code
        yield source.infinity_code + 1, end
    elif source.max_code < end:
        yield source.max_code + 1, end


def _cuts(source: Format, target: Format) -> Iterator[int]:
    """Where values leave the target's range, before or after they are rounded in any way."""
    largest, lowest, *_ = limits(target)
    bounds = [(0, largest), (1, lowest)] if source.is_signed else [(0, largest)]
    for sign, bound in bounds:
        for point in _beyond(target, bound):
            if exceeds(point.significand, point.exponent, limits(source)[0]):
                continue
            unit = unit_of(source, point)
            code = encode(source, 0, round_magnitude(point, unit, "toward-zero"), unit)
            if sign and source.is_integral:
                yield from ((-code & source.mask), (-code & source.mask) + 1)
            else:
                yield from (code | source.sign_bit * sign, (code | source.sign_bit * sign) + 1)


def _beyond(target: Format, bound: Number) -> Iterator[Number]:
    """The magnitudes of a bound, of the next value that would follow, and of their middle."""
    unit = unit_of(target, bound)
    multiple = round_magnitude(bound, unit, "toward-zero")
    yield Number(0, multiple, unit)
    yield Number(0, 2 * multiple + 1, unit - 1)
    yield Number(0, multiple + 1, unit)


def _stretch(source: Format, target: Format, first: int, last: int) -> Stretch:
    datum = decode(source, first)
    if not isinstance(datum, Number) or not datum.significand:
        # All alike, unless a NaN may have to stay the one it is.
        shift = (last - first).bit_length() if source != target else 0
        return Stretch(first, last, shift, (0,))
    drop = unit_of(target, datum) - datum.exponent
    if drop <= 0:
        return Stretch(first, last, 0, (0,))
    # Two units: whether a kept number is odd or even matters too.
    shift = min(drop + 1, (last - first).bit_length())
    end = min(first + (1 << shift) - 1, last)
    half = 1 << (drop - 1)
    middles = range(first - first % half, end + 2, half)
    near = {place + step for place in middles for step in (-1, 0, 1)} | {first, first + 1}
    return Stretch(first, last, shift, tuple(sorted(x - first for x in near if first <= x <= end)))


class Step(NamedTuple):
    """The answers allowed from an offset on: two ranges, which rise from period to period."""

    offset: int
    place: int
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
"""What rises from period to period, and by which field."""
STEP = np.dtype(
    [(name, np.uint8 if name == "place" else np.uint64) for name in Step._fields], align=True
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
    """A ruling's steps: ``stretches`` in the order of their patterns, each a slice of ``steps``."""

    ruling: Ruling
    stretches: NDArray[np.void]
    steps: NDArray[np.void]

    def steps_of(self, number: int) -> NDArray[np.void]:
        """The steps of one stretch."""
        stretch = self.stretches[number]
        steps: NDArray[np.void] = self.steps[stretch["begin"] : stretch["end"]]
        return steps

    def column(self, name: str) -> NDArray[Any]:
        """One field of all steps, side by side in memory."""
        return np.ascontiguousarray(self.steps[name])


@lru_cache(maxsize=256)
def staircase(ruling: Ruling) -> Staircase:
    """The staircase of a ruling with numeric source and target, by the definition alone."""
    rows: list[tuple[int, ...]] = []
    steps: list[Step] = []
    for part in stretches(ruling.source, ruling.target):
        begin = len(steps)
        steps += _steps(ruling, part)
        rows.append((part.first, part.last, part.shift, begin, len(steps)))
    return Staircase(ruling, np.array(rows, STRETCH), np.array(steps, STEP))


def _steps(ruling: Ruling, part: Stretch) -> Iterator[Step]:
    """The steps of a stretch's first period; what goes on as before is no step."""
    known: Step | None = None
    for offset in part.offsets:
        here = exact.allow(ruling, part.first + offset)
        later = part.first + offset + (1 << part.shift)
        again = exact.allow(ruling, later) if later <= part.last else None
        step = _step(ruling, offset, here, again)
        if known is None or not _goes_on(known, step, again is not None):
            yield step
            known = step


def _step(ruling: Ruling, offset: int, here: Allowed, again: Allowed | None) -> Step:
    match here.branch.strictest:
        case Anything():
            return Step(offset, here.place, 0, ruling.target.mask, 0, 0, ruling.target.mask, 0)
        case Nan(sign=sign):
            one, *_, other = [*ruling.target.nans(sign)] * 2
            return Step(offset, here.place, one[0], one[-1], 0, other[0], other[-1], 0)
        case Exactly(code=code):
            return Step(offset, here.place, code, code, 0, code, code, 0)
    code, other_code = here.codes[0], here.codes[-1]
    rise, other_rise = 0, 0
    if again is not None:
        assert again.place == here.place, f"{ruling}: no period at {offset}"
        rise = (again.codes[0] - code) & ruling.target.mask
        other_rise = (again.codes[-1] - other_code) & ruling.target.mask
    return Step(offset, here.place, code, code, rise, other_code, other_code, other_rise)


def _goes_on(known: Step, step: Step, rises: bool) -> bool:
    """Whether a step is the one before; in a last, cut period the rise says nothing."""
    if rises:
        return known[1:] == step[1:]
    return known._replace(rise=0, other_rise=0)[1:] == step[1:]
