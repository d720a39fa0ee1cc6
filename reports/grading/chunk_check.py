"""Checks the answers to a chunk of consecutive inputs against a ``chunk_table``, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.grading.chunk_table import ANYTHING, CODE, NEEDS_GRADING, RANGES, ROW, Table

Moving = NDArray[Any] | None
"""Inputs to each of which a check adds a step, in place; None if there are none to change."""
ChunkCheck = Callable[[int, NDArray[Any], Moving, int], bool]
"""Takes a first pattern, answers, inputs and a step, and adds the step to each of the inputs.

It returns whether the answers to the patterns from the first one on are certainly all allowed.
"""


def check_of(table: Table) -> ChunkCheck:
    """Return the check of chunks against a table."""

    def check(first: int, answers: NDArray[Any], inputs: Moving, step: int) -> bool:
        advance(inputs, step)
        return all_right(table, first, answers)

    return check


def is_uniform(answers: NDArray[Any], inputs: Moving, step: int) -> bool:
    """Return whether all answers (at least one) are equal, and add ``step`` to ``inputs`` in place.

    ``inputs`` are a buffer that the sweep reuses, and are not compared; None if nothing is to be
    advanced.
    """
    advance(inputs, step)
    return not (answers != answers[0]).any()


def advance(inputs: Moving, step: int) -> None:
    """Add ``step`` to each of the inputs in place; None stands for no inputs."""
    if inputs is not None:
        np.add(inputs, inputs.dtype.type(step), inputs)


def exceed(answers: NDArray[Any], mask: int) -> bool:
    """Whether any answer of an array (at least one) has a bit beyond a format's mask."""
    return int(answers.max()) > mask


def all_right(table: Table, first: int, answers: NDArray[Any]) -> bool:
    """Whether the answers to the inputs from ``first`` on are certainly all allowed."""
    for group in segment_groups(table, first, answers.size):
        part, at = answers[group.begin : group.stop], first + group.begin
        is_allowed = (
            _allowed_by_codes(table, group.segment, group.after, at, part)
            if table.kinds[group.segment] == CODE
            else _allowed_by_segment(table, group.segment, at, part)
        )
        if not is_allowed:
            return False
    return True


class SegmentGroup(NamedTuple):
    """Segments of a table, and the places of their answers in a chunk.

    The segments are from ``segment`` to before ``after``, the places from ``begin`` to before
    ``stop``.
    """

    segment: int
    after: int
    begin: int
    stop: int


def segment_groups(table: Table, first: int, size: int) -> Iterator[SegmentGroup]:
    """Yield the segments to check together: neighbors of kind CODE, and each other one alone.

    The chunk has ``size`` inputs from ``first`` on.
    """
    ends = np.array([first, first + size - 1], np.uint64)
    segment, last_segment = (np.searchsorted(table.firsts, ends, "right") - 1).tolist()
    not_codes = table.not_codes
    at = np.searchsorted(not_codes, segment)
    begin = 0
    while segment <= last_segment:
        next_other = int(not_codes[at])
        if next_other == segment:
            after, at = segment + 1, at + 1
        else:
            after = min(next_other, last_segment + 1)
        stop = size if after > last_segment else int(table.firsts[after]) - first
        yield SegmentGroup(segment, after, begin, stop)
        segment, begin = after, stop


def _allowed_by_codes(
    table: Table, begin: int, end: int, first: int, answers: NDArray[Any]
) -> bool:
    """Whether answers are the codes of the segments from ``begin`` to before ``end``.

    ``first`` is the input of the first answer. They are if the answers on both sides of each border
    between segments are right, and the answers change as often as the codes.
    """
    codes = table.bounds[0, begin:end]
    if codes.size == 1:
        return not (answers != codes[0]).any()
    starts = (table.firsts[begin + 1 : end] - np.uint64(first)).astype(np.intp)
    changes = table.code_changes[end - 1] - table.code_changes[begin]
    return bool(
        np.count_nonzero(answers[1:] != answers[:-1]) == changes
        and (answers[starts] == codes[1:]).all()
        and (answers[starts - 1] == codes[:-1]).all()
    )


def _allowed_by_segment(table: Table, segment: int, first: int, answers: NDArray[Any]) -> bool:
    """Whether one segment of a kind other than ``CODE`` certainly allows all answers.

    ``first`` is the input of the first answer.
    """
    match int(table.kinds[segment]):
        case kind if kind == ANYTHING:
            return True
        case kind if kind == RANGES:
            low, high, other_low, other_high = table.bounds[:, segment]
            least, most = answers.min(), answers.max()
            if (low <= least and most <= high) or (other_low <= least and most <= other_high):
                return True  # the usual case, decided by two passes that allocate nothing
            outside = (answers - low > high - low) & (answers - other_low > other_high - other_low)
            return not outside.any()
        case kind if kind == NEEDS_GRADING:
            return False
        case row:
            return _repeats_row(table, row, first - int(table.firsts[segment]), answers)


def _repeats_row(table: Table, row: int, inside: int, answers: NDArray[Any]) -> bool:
    """Whether answers repeat a row, beginning ``inside`` inputs after the segment's first."""
    nth, offset = divmod(inside, ROW)
    codes, cares = table.rows[row, offset : offset + ROW], table.cares[row, offset : offset + ROW]
    whole, remainder = divmod(answers.size, ROW)
    rise = table.rises[row]
    numbers = np.arange(nth, nth + whole + 1).astype(rise.dtype)
    mask = rise.dtype.type(table.ruling.target.mask)
    lifts = numbers * rise
    body = answers[: whole * ROW].reshape(whole, ROW)
    tail = answers[whole * ROW :]
    above = (tail - codes[:remainder] - lifts[-1]) & mask | tail & ~mask
    if (above & cares[:remainder]).any():
        return False
    expected = codes + lifts[:-1, np.newaxis]
    is_narrow = mask != ~rise.dtype.type(0)
    if not (~cares).any():
        return not (body != (expected & mask if is_narrow else expected)).any()
    above = (body - expected) & mask | body & ~mask if is_narrow else body - expected
    return not (above & cares).any()
