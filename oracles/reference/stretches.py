"""A pair's source patterns, cut into stretches on which every rounding repeats itself.

Within a stretch the values are evenly spaced and the target's last place stays the same, so that
what two periods of it allow differs only by a constant rise of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from oracles.reference.exact import (
    Number,
    decode,
    encode,
    exceeds,
    limits,
    round_magnitude,
    unit_of,
)
from specs.formats import Format


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
