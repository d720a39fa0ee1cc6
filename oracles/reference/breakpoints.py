"""Source patterns at which a cast can change its answer.

These are the target's values and the midpoints between them: in every rounding mode, a step of the
staircase starts at or next to one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def breakpoints(source: Format, target: Format, target_codes: Iterable[int]) -> list[int]:
    """Return the source patterns at, below and above each target value and the midpoint after it.

    ``target_codes`` are patterns of non-negative finite values. If source and target both have
    negative values, the negated source patterns are included.
    """
    largest = limits(source)[0]
    found = {0, 1}
    for value in _values(target, target_codes):
        if exceeds(value.significand, value.exponent, largest):
            continue
        unit = unit_of(source, value)
        floor = round_magnitude(value, unit, "toward-zero")
        if floor:
            code = encode(source, 0, floor, unit)
            found.update((code - 1, code, code + 1))
    inside = [code for code in found if 0 <= code <= source.max_code]
    if not (source.is_signed and target.is_signed):
        return inside
    return inside + [_negated(source, code) for code in inside]


def _negated(source: Format, code: int) -> int:
    return -code & source.mask if source.is_integral else code | source.sign_bit


def _values(target: Format, codes: Iterable[int]) -> Iterator[Number]:
    """Each nonzero value, and the midpoint between it and the next one.

    The largest value is followed by the value of the next code, as if the format had no end.
    """
    for code in codes:
        number = decode(target, code)
        assert isinstance(number, Number)
        if number.significand:
            unit = unit_of(target, number)
            multiple = round_magnitude(number, unit, "toward-zero")
            yield number
        else:
            multiple, unit = 0, limits(target)[2].exponent
        yield Number(0, 2 * multiple + 1, unit - 1)
        if code == target.max_code:
            yield Number(0, multiple + 1, unit)
