"""A cast as intervals: ranges of source patterns, each with what may come out.

A row says of the inputs ``lo`` to ``hi`` that an answer is allowed if ``first <= ((answer - (x -
lo) * step) & mask) <= last``, all modulo ``2**64``, or if ``either`` is 1 and it is ``other``. This
one form says all that a ruling of numbers can:

- one code for all inputs of the interval: ``first == last``, with a mask of all ones
- several neighboring codes, such as the largest value and infinity: ``first < last``
- two codes apart, such as what wraps around and what saturates: the second one is ``other``
- NaN of either sign: a mask without the sign bit
- an exact cast to a wider format, or low bits: codes that rise by ``step`` from input to input
- an open input: all codes; so stands an input that must be refused, because a code cannot be wrong

So casts to targets of up to 16 bits, and exact ones to any target, are told of *every* input in
some ten thousand rows. A cast that rounds to 32 or 64 bits has too many answers. Of it, the
stretches of a staircase that need few rows are whole, and the others are sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import Words, distinct
from conformance.families.cast.quick_inputs import few_inputs, inputs_of
from oracles.reference import expect_by_kernels
from oracles.reference.expect_by_staircase import locate_steps
from oracles.reference.expectations import Expected
from oracles.reference.staircase import BOUNDS, Staircase, staircase
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format
from specs.outcomes import Anything, Either, Exactly, Nan, Outcome, Rejected

FIELDS = ("lo", "hi", "first", "last", "mask", "step", "other", "either")
ROW = np.dtype([(name, np.uint64) for name in FIELDS])
IntervalRows = NDArray[np.void]
MOST_INTERVALS = 1 << 18
"""If a cast takes more rows before neighbors are joined, its rows do not tell of every input.

Casts to 16 bits have no more, but for those that wrap: these begin anew at each multiple of 2**16.
"""


class Untold(Exception):
    """Raised for a ruling that rows of intervals cannot express; the message is the reason."""


@dataclass(frozen=True)
class CastIntervals:
    """The rows of a ruling, in the order of inputs; ``is_whole`` if these are all inputs."""

    ruling: Ruling
    rows: IntervalRows
    is_whole: bool

    def open_inputs(self) -> int:
        """Return how many inputs the rows leave open."""
        everything = np.uint64(self.ruling.target.mask)
        is_open = self.rows["last"] - self.rows["first"] == everything
        spans = self.rows["hi"][is_open] - self.rows["lo"][is_open]
        return sum(map(int, spans)) + int(is_open.sum())


def intervals_of(case: Case, ruling: Ruling, limit: int) -> CastIntervals:
    """Return the rows of a ruling between numbers, computed by ``exact`` alone.

    They tell of every input if that takes at most ``MOST_INTERVALS`` rows. Otherwise there are at
    most about ``limit``. Raise Untold if the answers have no row.
    """
    stairs = staircase(ruling)
    sizes = _sizes(stairs)
    if int(sizes.sum()) <= MOST_INTERVALS:
        return CastIntervals(ruling, joined(_rows_of(stairs, sizes > 0), ruling.target.mask), True)
    cheapest = np.argsort(sizes, kind="stable")
    whole = np.zeros(sizes.size, bool)
    whole[cheapest[np.cumsum(sizes[cheapest].astype(float)) <= limit / 4]] = True
    rows = joined(_rows_of(stairs, whole), ruling.target.mask)
    inputs = _telling(case, ruling, limit - rows.size)
    number = np.searchsorted(stairs.stretches["first"], inputs, "right") - 1
    rows = np.concatenate([rows, _points(stairs, inputs[~whole[number]])])
    return CastIntervals(ruling, rows[np.argsort(rows["lo"], kind="stable")], False)


def _telling(case: Case, ruling: Ruling, most: int) -> Words:
    """Return at most ``most`` inputs: specials, some breakpoints, and others of the quick tier."""
    few = _thinned(few_inputs(case, ruling, most // 2).astype(np.uint64), most)
    more = _thinned(inputs_of(case, ruling, 0, 0).astype(np.uint64), most - few.size)
    return distinct(np.concatenate([few, more]))


def _thinned(inputs: Words, most: int) -> Words:
    """Return at most ``most`` inputs, evenly chosen."""
    if inputs.size <= most:
        return inputs
    return inputs[np.linspace(0, inputs.size - 1, most).astype(np.intp)]


def _sizes(stairs: Staircase) -> Words:
    """Return how many rows each stretch takes: one, or as many as its periods have steps."""
    each = stairs.stretches
    periods = ((each["last"] - each["first"]) >> each["shift"]) + np.uint64(1)
    steps = (each["end"] - each["begin"]).astype(np.uint64)
    sizes: Words = np.where(_is_even(stairs), np.uint64(1), periods * steps)
    return sizes


def _is_even(stairs: Staircase) -> NDArray[np.bool_]:
    """Return which stretches are one row: answers are constant, or rise from input to input."""
    each = stairs.stretches
    rises = (stairs.column("rise") | stairs.column("other_rise"))[each["begin"]]
    even: NDArray[np.bool_] = (each["end"] - each["begin"] == 1) & (
        (each["shift"] == 0) | (rises == 0)
    )
    return even


def joined(rows: IntervalRows, mask: int) -> IntervalRows:
    """Return rows with neighbors that say the same as one; ``mask`` has all bits of an answer.

    A row of one input takes the step of a row beside it, if it can go on so.
    """
    if not rows.size:
        return rows
    before, after = rows[:-1], rows[1:]
    while _lend_step(before, after, after, before, mask):
        pass
    while _lend_step(before, after, before, after, mask):
        pass
    goes_on = (before["step"] == after["step"]) & _goes_on(before, after, before["step"], mask)
    starts = np.flatnonzero(np.append(True, ~goes_on))
    found = rows[starts]
    found["hi"] = rows["hi"][np.append(starts[1:], rows.size) - 1]
    return found


def _lend_step(
    before: IntervalRows, after: IntervalRows, lender: IntervalRows, lone: IntervalRows, mask: int
) -> bool:
    """Give rows of one input in ``lone`` the steps of those in ``lender``; return if any got one.

    One of the two is ``before``, and the other one ``after``.
    """
    lent = (lone["lo"] == lone["hi"]) & (lone["step"] == 0) & (lender["step"] != 0)
    lent &= _goes_on(before, after, lender["step"], mask)
    lone["step"][lent] = lender["step"][lent]
    return bool(lent.any())


def _goes_on(
    before: IntervalRows, after: IntervalRows, step: Words, mask: int
) -> NDArray[np.bool_]:
    """Return which rows, continued by ``step``, allow what the rows after them allow first."""
    same = after["lo"] == before["hi"] + np.uint64(1)
    for name in ("mask", "other", "either"):
        same &= after[name] == before[name]
    for name in ("first", "last"):
        risen = before[name] + (after["lo"] - before["lo"]) * step
        same &= after[name] == risen & np.uint64(mask)
    return np.asarray(same, bool)


def _rows_of(stairs: Staircase, whole: NDArray[np.bool_]) -> IntervalRows:
    """Return the rows of the stretches in ``whole``."""
    even = _is_even(stairs)
    one = stairs.stretches[whole & even]
    none = np.zeros(one.size, np.uint64)
    rows = _told(stairs, one["begin"], none, one["first"], one["last"], rising=True)
    others = (_steps_of(stairs, number) for number in np.flatnonzero(whole & ~even).tolist())
    rows = np.concatenate([rows, *others])
    return rows[np.argsort(rows["lo"], kind="stable")]


def _steps_of(stairs: Staircase, number: int) -> IntervalRows:
    """Return the rows of one stretch: of each of its periods, a row for each step."""
    stretch, offsets = stairs.stretches[number], stairs.steps_of(number)["offset"]
    first, last, shift = stretch["first"], stretch["last"], stretch["shift"]
    counted = np.arange(int((last - first) >> shift) + 1, dtype=np.uint64)[:, np.newaxis]
    lo = first + (counted << shift) + offsets
    is_inside = (lo >= first) & (lo <= last)
    which = np.broadcast_to(np.arange(offsets.size), lo.shape)[is_inside]
    times = np.broadcast_to(counted, lo.shape)[is_inside]
    lo = lo[is_inside]
    more = np.append(offsets[1:], np.uint64(1) << shift) - offsets - np.uint64(1)
    hi = lo + np.minimum(more[which], last - lo)
    return _told(stairs, int(stretch["begin"]) + which, times, lo, hi)


def _points(stairs: Staircase, inputs: Words) -> IntervalRows:
    """Return a row for each input; the inputs rise."""
    steps, periods = locate_steps(stairs, inputs)
    return _told(stairs, steps, periods, inputs, inputs)


def _told(
    stairs: Staircase,
    which: NDArray[np.intp],
    times: Words,
    lo: Words,
    hi: Words,
    *,
    rising: bool = False,
) -> IntervalRows:
    """Return rows that allow what steps do after some periods, each from ``lo`` to ``hi``.

    If ``rising``, a period is one input, so that the answers of a row rise from input to input.
    """
    rows = np.zeros(lo.size, ROW)
    rows["lo"], rows["hi"] = lo, hi
    target = stairs.ruling.target
    branch_indices = stairs.column("branch_index")[which]
    for index, branch in enumerate(stairs.ruling.branches):
        here = branch_indices == index
        if not here.any():
            continue
        match branch.outcome:
            case Anything() | Rejected():
                fields: Fields = {"first": 0, "last": target.mask, "mask": target.mask}
            case Nan(sign=sign):
                fields = _nans(target, sign)
            case outcome:
                of_steps = partial(_codes_of, stairs, which[here], times[here], rising=rising)
                one, two = _constants(outcome) or (of_steps("low"), of_steps("other_low"))
                fields = _either(one, two, np.uint64(target.mask))
        for name, column in fields.items():
            rows[name][here] = column
    return rows


Fields = dict[str, Any]
"""Columns of rows by their names, or one number for all rows."""
RisingCodes = tuple[Words, Words]
"""The codes of rows at their first inputs, and by how much they rise from input to input."""


def _codes_of(
    stairs: Staircase, which: NDArray[np.intp], times: Words, bound: str, *, rising: bool
) -> RisingCodes:
    """Return the codes that a bound of steps has after some periods, and their rises."""
    rises = stairs.column(dict(BOUNDS)[bound])[which]
    codes = (stairs.column(bound)[which] + times * rises) & np.uint64(stairs.ruling.target.mask)
    return codes, rises if rising else np.zeros_like(rises)


def _constants(outcome: Outcome) -> tuple[RisingCodes, RisingCodes] | None:
    """Return the two codes that an outcome allows for every input; None if these depend on it."""
    none = np.zeros(1, np.uint64)
    match outcome:
        case Exactly(code=code):
            only = np.array([code], np.uint64), none
            return only, only
        case Either(options=options):
            codes = [each.code for each in options if isinstance(each, Exactly)]
            if len(codes) == len(options):
                one, two = (np.array([code], np.uint64) for code in (codes[0], codes[-1]))
                return (one, none), (two, none)
    return None


def _nans(target: Format, sign: str) -> Fields:
    one, *other = target.nans(sign)
    mask = target.mask ^ target.sign_bit if other else target.mask
    return {"first": one[0], "last": one[-1], "mask": mask}


def _either(one: RisingCodes, two: RisingCodes, mask: np.uint64) -> Fields:
    """Return the fields of rows that allow either of two codes, each with its rise.

    Codes next to each other are a range, and those that differ in one bit have a mask. Of codes
    that lie apart, one is the field ``other``. Raise Untold if both of these rise.
    """
    (codes, rises), (others, other_rises) = one, two
    low, high, differ = np.minimum(codes, others), np.maximum(codes, others), codes ^ others
    next_to = (rises == other_rises) & (high - low <= np.uint64(1))
    one_bit = (rises == 0) & (other_rises == 0) & (differ & (differ - np.uint64(1)) == 0) & ~next_to
    apart = ~next_to & ~one_bit
    swapped = apart & (other_rises != 0)
    if (swapped & (rises != 0)).any():
        raise Untold("two answers are allowed that rise and lie apart")
    return {
        "first": np.where(apart, np.where(swapped, others, codes), low),
        "last": np.where(apart, np.where(swapped, others, codes), np.where(next_to, high, low)),
        "mask": np.where(one_bit, mask ^ differ, mask),
        "step": np.where(swapped, other_rises, rises),
        "other": np.where(apart, np.where(swapped, codes, others), np.uint64(0)),
        "either": apart,
    }


def disagreements(told: CastIntervals) -> Iterator[int]:
    """Yield the inputs at ends of intervals of which the kernels say otherwise.

    The kernels share neither code nor method with ``exact``, which made the rows. Where they allow
    two codes, each must be allowed; of NaN and open inputs the branch is compared.
    """
    for end in ("lo", "hi"):
        inputs = told.rows[end].astype(told.ruling.source.storage)
        expected = expect_by_kernels.expect(told.ruling, inputs)
        yield from inputs[_differs(told, expected, told.rows[end])].tolist()


def _differs(told: CastIntervals, expected: Expected, inputs: Words) -> NDArray[np.bool_]:
    rows, target = told.rows, told.ruling.target
    differs = np.zeros(rows.size, bool)
    is_one = (rows["first"] == rows["last"]) & (rows["mask"] == target.mask) & (rows["either"] == 0)
    is_wide = rows["last"] - rows["first"] > np.uint64(1)
    for index, branch in enumerate(told.ruling.branches):
        here = expected.branch_indices == index
        match branch.outcome:
            case Anything() | Rejected():
                differs |= here & (rows["last"] - rows["first"] != target.mask)
            case Nan(sign=sign):
                first, last, mask = _nans(target, sign).values()
                is_told = allows(rows, inputs, np.full_like(inputs, first))
                is_told &= (rows["last"] - rows["first"] == last - first) & (rows["mask"] == mask)
                differs |= here & ~is_told
            case _:
                for codes in (expected.codes, expected.others):
                    differs |= here & ~allows(rows, inputs, codes.astype(np.uint64))
                differs |= here & (is_wide | (is_one != (expected.codes == expected.others)))
    return differs


def allows(rows: IntervalRows, inputs: Words, answers: Words) -> NDArray[np.bool_]:
    """Return whether each row allows its answer to its input, which lies in it."""
    rest = (answers - (inputs - rows["lo"]) * rows["step"]) & rows["mask"]
    inside = (rest >= rows["first"]) & (rest <= rows["last"])
    found: NDArray[np.bool_] = inside | ((rows["either"] != 0) & (answers == rows["other"]))
    return found
