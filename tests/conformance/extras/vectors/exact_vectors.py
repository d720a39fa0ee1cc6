"""Writes vector files of casts between binary floats from exact fractions alone.

It shares no code with Castigate, so it also judges what ``castigate export vectors`` writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True)
class Form:
    """A binary float: its fields, its largest finite code, and its codes of infinity and NaN."""

    name: str
    exponent: int
    mantissa: int
    largest: int
    infinity: int | None
    nan: tuple[int, int]

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    def value(self, code: int) -> Fraction:
        """The value of a code without its sign; codes above the largest go on as numbers."""
        field, low = divmod(code, 1 << self.mantissa)
        significand = low + (bool(field) << self.mantissa)
        bias = (1 << self.exponent - 1) - 1
        return significand * Fraction(2) ** (max(field, 1) - bias - self.mantissa)


def _ieee(name: str, exponent: int, mantissa: int) -> Form:
    infinity = (1 << exponent) - 1 << mantissa
    return Form(
        name, exponent, mantissa, infinity - 1, infinity, (infinity + 1, infinity | infinity - 1)
    )


FLOAT16 = _ieee("float16", 5, 10)
FLOAT32 = _ieee("float32", 8, 23)
FLOAT64 = _ieee("float64", 11, 52)
E5M2 = _ieee("float8e5m2", 5, 2)
E4M3FN = Form("float8e4m3fn", 4, 3, 0x7E, None, (0x7F, 0x7F))
_PACKED = {"float16": "<e", "float32": "<f", "float64": "<d"}


class Line(NamedTuple):
    """A data line with all its numbers."""

    lo: int
    hi: int
    code: int
    last: int
    mask: int
    step: int = 0

    def written(self, source: Form, target: Form) -> str:
        wide, narrow = source.bits // 4, target.bits // 4
        inputs = f"{self.lo:0{wide}x} {self.hi:0{wide}x}"
        codes = [self.code]
        if (self.code, self.mask) != (self.last, 2 * target.sign - 1):
            codes += [self.last, self.mask]
        return " ".join([inputs, *(f"{code:0{narrow}x}" for code in codes)])


def _pattern(form: Form, value: Fraction) -> int:
    """The code of a value that the format has."""
    packed = struct.pack(_PACKED[form.name], float(value))
    pattern = int.from_bytes(packed, "little")
    assert form.value(pattern) == value
    return pattern


def _magnitudes(source: Form, target: Form) -> Iterator[tuple[int, int, int]]:
    """First and last input and code, of all numbers and infinity, each without its sign.

    Nearest, ties to even. Overflow gives infinity, or the largest number where there is none.
    """
    lo = 0
    for code in range(target.largest + 1):
        tie = (target.value(code) + target.value(code + 1)) / 2
        # An even code gets the tie above it.
        hi = _pattern(source, tie) - code % 2
        if code == target.largest and target.infinity is None:
            hi = source.nan[0] - 1
        yield lo, hi, code
        lo = hi + 1
    if target.infinity is not None:
        yield lo, source.nan[0] - 1, target.infinity


def _binades(source: Form, lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """The parts of an interval of a 64-bit source, one for each exponent."""
    while source.bits > 32 and lo >> source.mantissa < hi >> source.mantissa:
        end = lo | (1 << source.mantissa) - 1
        yield lo, end
        lo = end + 1
    yield lo, hi


def lines_of(source: Form, target: Form) -> Iterator[Line]:
    """The data lines of a cast, over all inputs."""
    ones = 2 * target.sign - 1
    for negative in (0, 1):
        above, code_above = negative * source.sign, negative * target.sign
        for first, end, code in _magnitudes(source, target):
            for lo, hi in _binades(source, first, end):
                answer = code_above + code
                yield Line(above + lo, above + hi, answer, answer, ones)
        yield Line(above + source.nan[0], above + source.nan[1], *target.nan, target.sign - 1)


def vector_file(source: Form, target: Form) -> str:
    """The vector file of a cast."""
    lines = [line.written(source, target) for line in lines_of(source, target)]
    header = f"vectors 1 {source.name} {source.bits} {target.name} {target.bits} all {len(lines)}"
    notes = ["# nearest, ties to even", "# any NaN for NaN"]
    return "\n".join([header, *notes, *lines, ""])
