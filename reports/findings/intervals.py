"""Failing inputs as intervals of values, in words: ``480 ≤ |x| < 496``, ``NaN``, ``x > 65504``.

A magnitude is the pattern of a float without its sign, or the absolute value of an integer.
``number_line`` and ``segments`` place patterns on a line that pages draw, from all zeros to all
ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference.exact import Number, decode
from oracles.reference.exact_text import exact_decimal
from oracles.reference.kernel_text import shortest_text
from reports.counterexample.drawing import quoted
from reports.findings.cells import FailingInputs
from specs.formats import Format, listed

MOST_INTERVALS = 3
"""The most intervals of one sign that are written; of more, only the number and the extent."""
MOST_TEXTS = 3
"""The most texts that are written; of more, the others are counted."""
MANY_RUNS = 16
"""If more than this many runs of failing inputs are separate, each counts as a single value."""
ONE = np.uint64(1)
NEGATIVE = "-x"
"""The name of the magnitudes of negative values."""
LONGEST = 10
"""The most characters of a decimal that is written in full."""


@dataclass(frozen=True)
class PatternRange:
    """The patterns from ``first`` to ``last``; ``falls`` if larger ones have smaller magnitudes."""

    first: int
    last: int
    falls: bool = False


@dataclass(frozen=True)
class Interval:
    """The failing magnitudes from ``low`` to ``high``, of values with one sign.

    ``below`` and ``above`` are the nearest magnitudes outside that were asked; None if there are
    none.
    """

    low: int
    high: int
    below: int | None
    above: int | None


@dataclass(frozen=True)
class Intervals:
    """The failing intervals of values with one sign.

    ``asked`` has the magnitudes that were asked, in rising order. If all were asked, it has only
    those at the ends of failing runs and next to them. ``begin`` and ``end`` are the indices in
    ``asked`` of the first and the last magnitude of each interval.
    """

    asked: NDArray[np.uint64]
    begin: NDArray[np.intp]
    end: NDArray[np.intp]

    def __len__(self) -> int:
        return self.begin.size

    def __iter__(self) -> Iterator[Interval]:
        for begin, end in zip(self.begin.tolist(), self.end.tolist(), strict=True):
            yield Interval(
                int(self.asked[begin]),
                int(self.asked[end]),
                int(self.asked[begin - 1]) if begin else None,
                int(self.asked[end + 1]) if end + 1 < self.asked.size else None,
            )

    def is_alike(self, other: Intervals) -> bool:
        """Whether these and the other intervals begin and end at equal magnitudes."""
        return all(
            np.array_equal(one.asked[ends], two.asked[more])
            for one, two, ends, more in (
                (self, other, self.begin, other.begin),
                (self, other, self.end, other.end),
            )
        )


def region_words(source: Format, failing: FailingInputs, asked: NDArray[Any] | None) -> str:
    """Return the words for the failing inputs of a source: intervals and special values, or texts.

    ``asked`` has all inputs asked, in rising order; None if every pattern was, or if the ends of
    all runs are known. The words are empty for formats without numbers and for patterns of more
    than 64 bits.
    """
    if source.kind == "text":
        return _texts(failing.runs.first.tolist())
    if not (source.is_numeric and failing.are_words):
        return ""
    words = list(_special_values(source, failing, asked))
    for name, intervals in _intervals_by_name(source, failing, asked).items():
        words = _interval_words(source, intervals, name) + words
    return listed(words)


class Regions(NamedTuple):
    """How many single values, phrases for special values, and intervals describe failing inputs.

    Special values are zeros, infinities and NaNs.
    """

    single: int
    special: int
    intervals: int


def count_regions(source: Format, failing: FailingInputs, asked: NDArray[Any]) -> Regions:
    """Count the regions that describe failing inputs; ``asked`` has all inputs asked, rising.

    Runs without an asked input between them are a group. More than ``MANY_RUNS`` groups, and runs
    of inputs other than numbers of at most 64 bits, count as a single value each.
    """
    runs = failing.runs
    if source.kind == "text" or not (source.is_numeric and failing.are_words):
        return Regions(runs.first.size, 0, 0)
    begin, end = (np.searchsorted(asked, column) for column in (runs.first, runs.last))
    apart = 1 + int((begin[1:] > end[:-1] + 1).sum())
    if apart > MANY_RUNS:
        return Regions(apart, 0, 0)
    found = [
        each.low == each.high
        for intervals in _intervals_by_name(source, failing, asked).values()
        for each in intervals
    ]
    special = len(list(_special_values(source, failing, asked)))
    return Regions(found.count(True), special, found.count(False))


def _intervals_by_name(
    source: Format, failing: FailingInputs, asked: NDArray[Any] | None
) -> dict[str, Intervals]:
    """Return the failing intervals of finite values but zero, by the name `x` (positive) or `-x`.

    If both signs fail at equal magnitudes, return them once, as `|x|`.
    """
    finite = {
        sign: _intervals(source, patterns, failing, asked)
        for sign, patterns in _finite(source).items()
    }
    if "-" in finite and finite["-"].is_alike(finite["+"]):
        return {"|x|": finite["+"]}
    return {"x" if sign == "+" else NEGATIVE: intervals for sign, intervals in finite.items()}


def _finite(source: Format) -> dict[str, PatternRange]:
    """Return the ranges of positive and negative finite patterns except zero, by `+` and `-`."""
    start = 0 if source.entry.zero == "none" else 1
    found = {"+": PatternRange(start, source.max_code)}
    if source.is_integral and source.is_signed:
        found["-"] = PatternRange(source.sign_bit, source.mask, falls=True)
    elif source.is_signed:
        found["-"] = PatternRange(start | source.sign_bit, source.max_code | source.sign_bit)
    return found


def _special_values(
    source: Format, failing: FailingInputs, asked: NDArray[Any] | None
) -> Iterator[str]:
    """Yield the words for those zeros, infinities and NaNs that fail."""
    zeros = [0] if source.entry.zero != "none" else []
    if source.entry.zero == "signed":
        zeros.append(source.sign_bit)
    yield from _words_of_signs("zeros", "0", _failing_codes(failing, zeros))
    if source.kind == "float" and source.entry.infinity:
        codes = [source.infinity_code]
        codes += [source.infinity_code | source.sign_bit] if source.is_signed else []
        yield from _words_of_signs("infinities", "infinity", _failing_codes(failing, codes))
    yield from _nans(source, failing, asked)


def _nans(source: Format, failing: FailingInputs, asked: NDArray[Any] | None) -> Iterator[str]:
    """Yield the words for NaNs that fail; for each sign apart if the signs fail differently."""
    found = [
        _intervals(source, PatternRange(codes[0], codes[-1]), failing, asked)
        for codes in source.nan_codes
    ]
    if len(found) > 1 and found[0].is_alike(found[1]):
        yield from _nan_words(source, found[0], "NaN")
    elif len(found) > 1:
        for sign, each in zip("+-", found, strict=True):
            yield from _nan_words(source, each, f"{sign}NaN", source.sign_bit if sign == "-" else 0)
    elif found:
        yield from _nan_words(source, found[0], "NaN")


def _nan_words(source: Format, intervals: Intervals, name: str, sign: int = 0) -> Iterator[str]:
    match [*intervals]:
        case []:
            return
        case [Interval(below=None, above=None)]:
            yield name
        case [Interval(below=None, high=high, above=int() as above)] if (
            width := _payload(source, high).bit_length()
        ) < _payload(source, above).bit_length():
            lowest = "lowest bit" if width == 1 else f"lowest {width} bits"
            yield f"{name} whose payload is in the {lowest}"
        case [Interval(low=low, below=int() as below, above=None)] if _is_quiet(
            source, low
        ) and not _is_quiet(source, below):
            yield f"quiet {name}"
        case [*several]:
            ends = several[0].low, several[-1].high
            first, last = (source.hexadecimal(code | sign) for code in ends)
            gaps = ", in part" if len(several) > 1 else ""
            yield f"{name} {first}" if first == last else f"{name} from {first} to {last}{gaps}"


def _payload(source: Format, code: int) -> int:
    return code & ((1 << source.entry.mantissa) - 1)


def _is_quiet(source: Format, code: int) -> bool:
    return bool(_payload(source, code) >> (source.entry.mantissa - 1))


def _failing_codes(failing: FailingInputs, codes: Sequence[int]) -> list[bool]:
    runs = failing.runs
    return [
        bool(((runs.first <= code) & (runs.last >= code)).any()) for code in map(np.uint64, codes)
    ]


def _words_of_signs(both: str, one: str, fails: Sequence[bool]) -> Iterator[str]:
    match fails:
        case [True, True]:
            yield both
        case [True, *_]:
            yield one
        case [False, True]:
            yield f"-{one}"


def _intervals(
    source: Format, patterns: PatternRange, failing: FailingInputs, asked: NDArray[Any] | None
) -> Intervals:
    """Return the failing intervals among the patterns of a range, in the order of magnitudes.

    ``asked`` has all inputs asked, in rising order; None if every pattern was. Failing runs become
    one interval if no input between them was asked.
    """
    first, last = np.uint64(patterns.first), np.uint64(patterns.last)
    runs = failing.runs
    here = (runs.first <= last) & (runs.last >= first)
    starts = np.maximum(runs.first[here], first)
    ends = np.minimum(runs.last[here], last)
    if asked is None:
        known = np.unique(np.concatenate([starts, starts - ONE, ends, ends + ONE]))
        known = known[(known >= first) & (known <= last)]
    else:
        known = asked[(asked >= first) & (asked <= last)].astype(np.uint64)
    begin, end = np.searchsorted(known, starts), np.searchsorted(known, ends)
    # Runs become one interval if no input between them was asked.
    is_new = np.append(True, begin[1:] != end[:-1] + 1)[: begin.size]
    begin, end = begin[is_new], end[np.append(is_new[1:], True)[: end.size]]
    if not patterns.falls:
        sign_bit = np.uint64(source.sign_bit if source.kind == "float" else 0)
        return Intervals(known & ~sign_bit, begin, end)
    magnitudes = (np.uint64(0) - known) & np.uint64(source.mask)
    newest = known.size - 1
    return Intervals(magnitudes[::-1], newest - end[::-1], newest - begin[::-1])


def _interval_words(source: Format, intervals: Intervals, name: str) -> list[str]:
    if len(intervals) <= MOST_INTERVALS:
        return [_inequality(source, each, name) for each in intervals]
    ends = (intervals.asked[intervals.begin[0]], intervals.asked[intervals.end[-1]])
    low, high = (number_words(source, int(code)) for code in ends)
    if name == NEGATIVE:
        low, high = f"-{high}", f"-{low}"
    return [f"{len(intervals):,} intervals with {low} ≤ {name.lstrip('-')} ≤ {high}"]


def _inequality(source: Format, interval: Interval, name: str) -> str:
    """Write an interval as an equation or inequality of ``name``, which is `x`, `|x|` or `-x`."""
    if interval.low == interval.high:
        number = number_words(source, interval.low)
        return f"x = -{number}" if name == NEGATIVE else f"{name} = {number}"
    # Each bound is a sign and a number; between 0 and the smallest value there is nothing to bound.
    low = high = ("", "")
    if interval.below is not None:
        low = rounder_bound(
            source, interval.low, interval.below, interval.below == interval.low - 1
        )
    if interval.above is not None:
        high = rounder_bound(
            source, interval.high, interval.above, interval.above == interval.high + 1
        )
    if low == high == ("", ""):
        return {"|x|": "every finite value but zero", "x": "x > 0", NEGATIVE: "x < 0"}[name]
    if high == ("", ""):
        sign, number = low
        if name == NEGATIVE:
            return f"x {sign} -{number}"
        return f"{name} {sign.replace('≤', '≥').replace('<', '>')} {number}"
    if low == ("", "") and name == "|x|":
        return f"|x| {high[0]} {high[1]}"
    low = low if low[1] else ("<", "0")
    if name == NEGATIVE:
        lower = low[1] if low[1] == "0" else f"-{low[1]}"
        return f"-{high[1]} {high[0]} x {low[0]} {lower}"
    return f"{low[1]} {low[0]} {name} {high[0]} {high[1]}"


def rounder_bound(source: Format, inside: int, outside: int, is_next: bool) -> tuple[str, str]:
    """Return a bound of an interval as a sign and a number: `≤` ``inside`` or `<` ``outside``.

    ``inside`` is the last magnitude in the interval, and ``outside`` the first beyond it that was
    asked. The second is taken only if the two are neighbors (``is_next``) and it is rounder:
    written shorter or, if both are equally long, with fewer significant bits, as 496 beside 494. Of
    neighbors, neither may be zero.
    """

    def roundness(magnitude: int) -> tuple[int, int]:
        odd_part = _value(source, magnitude).significand
        return len(number_words(source, magnitude)), odd_part // (odd_part & -odd_part)

    if is_next and roundness(outside) < roundness(inside):
        return "<", number_words(source, outside)
    return "≤", number_words(source, inside)


def _value(source: Format, magnitude: int) -> Number:
    number = Number(0, magnitude, 0) if source.is_integral else decode(source, magnitude)
    assert isinstance(number, Number)
    return number


def number_words(source: Format, magnitude: int) -> str:
    """Write in few characters the number of a magnitude.

    This is its exact or shortest decimal if that is short, else a power of two, or else a decimal
    cut to nine digits.
    """
    number = _value(source, magnitude)
    significand, exponent = number.significand, number.exponent
    exact = exact_decimal(significand, exponent)
    for text in (exact, shortest_text(source, magnitude)):
        if len(text) <= LONGEST:
            return text
    if significand & (significand - 1) == 0:
        return f"2^{exponent + significand.bit_length() - 1}"
    whole, _, fraction = exact.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return f"{digits[0]}.{digits[1:9].rstrip('0') or '0'}e{power}"


def _texts(texts: list[str]) -> str:
    shown = [quoted(text) for text in texts[:MOST_TEXTS]]
    if len(texts) > MOST_TEXTS:
        shown.append(f"{len(texts) - MOST_TEXTS:,} more texts")
    return listed(shown)


STEP_BITS = 10
"""The line of a dtype has 2**10 steps, whatever the dtype's width."""


def step_of(form: Format, code: Any) -> Any:
    """Return the first step of a pattern on its dtype's line, or those of an array of patterns."""
    spare = form.bits - STEP_BITS
    return code >> spare if spare > 0 else code << -spare


def segments(form: Format, first: NDArray[Any], last: NDArray[Any]) -> tuple[int, ...]:
    """Return the steps on a dtype's line that runs of patterns cover, as starts and ends in turn.

    ``first`` and ``last`` are the ends of at least one run, in rising order. A segment ends before
    the step that is given as its end. Runs that touch or overlap on the line share a segment.
    """
    starts, ends = step_of(form, first), step_of(form, last) + _steps_per_pattern(form)
    is_new = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))
    found: list[int] = []
    for start, end in zip(starts[is_new].tolist(), ends[is_new].tolist(), strict=True):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += [start, end]
    return tuple(found)


def number_line(form: Format) -> dict[str, Any]:
    """Return the data from which a page draws a dtype's line: `bits`, `marks` and `nans`.

    The marks are pairs of a step and a name, the NaNs pairs of a first step and the step after
    them.
    """
    nans = [
        (step_of(form, codes[0]), step_of(form, codes[-1]) + _steps_per_pattern(form))
        for codes in form.nan_codes
    ]
    return {"bits": form.bits, "marks": _marks(form), "nans": nans}


def _steps_per_pattern(form: Format) -> int:
    return int(step_of(form, 1)) or 1


def _marks(form: Format) -> list[tuple[int, str]]:
    """Return pairs of a step and a name for notable patterns, such as zero, infinity or the lowest.

    A boolean has `false` and `true`, and any other format without numbers has no marks.
    """
    if form.kind == "boolean":
        return [(step_of(form, 0), "false"), (step_of(form, 1), "true")]
    if not form.is_numeric:
        return []
    codes = {0: "smallest" if form.entry.zero == "none" else "0"}
    if form.kind == "float":
        codes[form.one_code] = "1"
    codes[form.infinity_code if form.entry.infinity else form.max_code] = (
        "∞" if form.entry.infinity else "max"
    )
    if form.kind == "float" and form.is_signed:
        codes |= {code | form.sign_bit: f"−{name}" for code, name in codes.items()}
        if form.entry.nan == "negative-zero":
            codes[form.sign_bit] = "NaN"
    elif form.is_signed:
        codes |= {form.sign_bit: "lowest", form.mask: "−1"}
    return sorted((step_of(form, code), name) for code, name in codes.items())
