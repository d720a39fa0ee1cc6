"""The values of a dtype in their order, and ranges of them in words: ``-1 < x < 256``.

Patterns are ranked from the lowest value to the largest, so that patterns next to each other in
rank are next to each other in value. Ranks fall into cells: finite values, each infinity, and the
NaNs of each sign. A range lies in one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.exact import Number, decode
from reports.findings.intervals import number_words, rounder_bound
from specs.formats import Format

FINITE = "finite values"
Ranks = NDArray[np.uint64]


def ranks_of(source: Format, patterns: NDArray[Any]) -> Ranks:
    """Return the rank of each pattern in the order of values; -0 comes just before 0.

    Negative NaNs rank below -infinity, and positive NaNs above infinity.
    """
    codes = patterns.astype(np.uint64)
    sign = np.uint64(source.sign_bit)
    if not source.is_signed:
        return codes
    if source.is_integral:
        return codes ^ sign
    return np.where(codes & sign, codes ^ np.uint64(source.mask), codes | sign)


def patterns_of(source: Format, ranks: Ranks) -> NDArray[Any]:
    """Return the patterns that have the given ranks, as an array of the format's storage dtype."""
    sign = np.uint64(source.sign_bit)
    codes = ranks
    if source.is_signed and source.is_integral:
        codes = ranks ^ sign
    elif source.is_signed:
        codes = np.where(ranks & sign, ranks ^ sign, ranks ^ np.uint64(source.mask))
    return codes.astype(source.storage)


def rank_of(source: Format, code: int) -> int:
    """Return the rank of one pattern."""
    return int(ranks_of(source, np.array([code], np.uint64))[0])


def pattern_of(source: Format, rank: int) -> int:
    """Return the pattern that has a rank."""
    return int(patterns_of(source, np.array([rank], np.uint64))[0])


@dataclass(frozen=True)
class RankRange:
    """A cell: its name, and the first and last rank of its values, both included."""

    name: str
    first: int
    last: int


@cache
def cells_of(source: Format) -> Mapping[str, RankRange]:
    """Return the cells of a format by name: finite values, then infinities, then NaNs.

    A format has only the cells of the values that it has.
    """
    ends = {FINITE: (source.lowest_code, source.max_code)}
    if source.kind == "float" and source.entry.infinity:
        ends["infinity"] = (source.infinity_code, source.infinity_code)
        if source.is_signed:
            minus = source.infinity_code | source.sign_bit
            ends["-infinity"] = (minus, minus)
    names = ("+NaN", "-NaN") if source.has_signed_nan else ("NaN",)
    for name, nans in zip(names, source.nan_codes, strict=False):
        ends[name] = (nans[0], nans[-1])
    found = {}
    for name, codes in ends.items():
        first, last = sorted(rank_of(source, code) for code in codes)
        found[name] = RankRange(name, first, last)
    return found


def places_in(source: Format, cell: RankRange, ranks: Ranks) -> NDArray[np.intp]:
    """Return the indices of the ``ranks`` that lie in a cell; ``ranks`` must be rising.

    In formats whose NaN has the pattern of -0, that rank is left out of the finite values.
    """
    begin = int(np.searchsorted(ranks, np.uint64(cell.first)))
    end = int(np.searchsorted(ranks, np.uint64(cell.last), "right"))
    places = np.arange(begin, end)
    if cell.name == FINITE and source.entry.nan == "negative-zero":
        places = places[ranks[begin:end] != rank_of(source, source.sign_bit)]
    return places


@dataclass(frozen=True)
class ValueRange:
    """A range of ranks in one cell, ends included, and the nearest asked ranks outside of it.

    ``below`` and ``above`` are these ranks, or None if no rank of the cell was asked on that side.
    """

    first: int
    last: int
    below: int | None
    above: int | None

    @property
    def span(self) -> int:
        """The number of patterns in the range."""
        return self.last - self.first + 1

    def holds(self, rank: int) -> bool:
        """Whether a rank lies in the range."""
        return self.first <= rank <= self.last


def range_words(source: Format, each: ValueRange) -> str:
    """Return a range of finite values as an inequality in ``x``, such as ``-1 < x < 256``.

    A bound is the last value inside. If that is not zero, the next value outside is the bound if it
    was asked and is zero, or if ``rounder_bound`` prefers it.
    """
    if each.first == each.last:
        return f"x = {value_words(source, each.first)}"
    low = _bound(source, each.first, each.below)
    high = _bound(source, each.last, each.above)
    if low and high:
        return f"{low[1]} {low[0]} x {high[0]} {high[1]}"
    if low:
        return f"x {'>' if low[0] == '<' else '≥'} {low[1]}"
    return f"x {high[0]} {high[1]}" if high else "every finite value"


def value_words(source: Format, rank: int) -> str:
    """Return the finite value of a rank in short form; a zero gets a sign if the format has -0."""
    code = pattern_of(source, rank)
    if source.entry.zero == "signed" and code in (0, source.sign_bit):
        return "-0" if code else "+0"
    return _signed(source, code)


def _bound(source: Format, inside: int, outside: int | None) -> tuple[str, str] | None:
    """Return the relation and the number that bound a range at one end; None if nothing does.

    ``inside`` is the rank of the end, and ``outside`` the nearest asked rank beyond it, if any.
    """
    if outside is None:
        return None
    codes = pattern_of(source, inside), pattern_of(source, outside)
    numbers = [decode(source, code) for code in codes]
    assert all(isinstance(each, Number) for each in numbers)
    here, there = (each.significand == 0 for each in numbers if isinstance(each, Number))
    is_next = abs(inside - outside) == 1
    if here:
        return "≤", value_words(source, inside) if there else "0"
    if there and is_next:
        return "<", "0"
    if numbers[0].sign != numbers[1].sign:
        return "≤", _signed(source, codes[0])
    magnitudes = [_magnitude(source, code) for code in codes]
    sign, words = rounder_bound(source, magnitudes[0], magnitudes[1], is_next)
    return sign, f"-{words}" if numbers[0].sign else words


def _signed(source: Format, code: int) -> str:
    words = number_words(source, _magnitude(source, code))
    return f"-{words}" if code & source.sign_bit else words


def _magnitude(source: Format, code: int) -> int:
    """Return the pattern of the absolute value of a finite pattern."""
    if source.is_integral:
        return source.mask + 1 - code if code & source.sign_bit else code
    return code & ~source.sign_bit


def ranks_between(source: Format, low: Fraction | None, high: Fraction | None) -> range:
    """Return the ranks of the finite values from ``low`` to ``high``, both included.

    None stands for no limit on that side. If a format's NaN has the pattern of -0, its rank is in
    the range too wherever the rank of 0 is.
    """
    finite = cells_of(source)[FINITE]
    first = finite.first if low is None else _search(source, finite, low, is_above=False)
    last = finite.last + 1 if high is None else _search(source, finite, high, is_above=True)
    return range(first, last)


def _search(source: Format, finite: RankRange, value: Fraction, is_above: bool) -> int:
    """Return the first finite rank whose value is at least ``value``; with ``is_above``, above it.

    If there is none, return the last finite rank plus one.
    """
    first, last = finite.first, finite.last + 1
    while first < last:
        middle = (first + last) // 2
        here = _value(source, middle)
        if here < value or (is_above and here == value):
            first = middle + 1
        else:
            last = middle
    return first


def _value(source: Format, rank: int) -> Fraction:
    number = decode(source, pattern_of(source, rank))
    if not isinstance(number, Number):
        # The NaN in the place of -0.
        return Fraction(0)
    magnitude = Fraction(number.significand) * Fraction(2) ** number.exponent
    return -magnitude if number.sign else magnitude
