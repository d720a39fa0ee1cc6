"""The filter in numpy: whether a chunk of consecutive inputs is certainly answered right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.chunk_table import ANYTHING, GRADED, RANGES, ROW, Table


def all_right(table: Table, first: int, answers: NDArray[Any]) -> bool:
    """Whether the answers of the inputs from ``first`` on are all allowed."""
    in_words = table.seams.hold(first, answers)
    if in_words is not None:
        return in_words
    ends = np.array([first, first + answers.size - 1], np.uint64)
    segment, end = (np.searchsorted(table.firsts, ends, "right") - 1).tolist()
    specials = table.specials
    at = np.searchsorted(specials, segment)
    begin = 0
    while segment <= end:
        special = int(specials[at])
        if special == segment:
            after, at = segment + 1, at + 1
        else:
            after = min(special, end + 1)
        stop = answers.size if after > end else int(table.firsts[after]) - first
        part = answers[begin:stop]
        right = (
            _special(table, segment, first + begin, part)
            if special == segment
            else _codes(table, segment, after, first + begin, part)
        )
        if not right:
            return False
        segment, begin = after, stop
    return True


def _codes(table: Table, begin: int, end: int, first: int, answers: NDArray[Any]) -> bool:
    """Whether answers change just where codes do: then the ends of every segment tell the rest."""
    codes = table.bounds[0, begin:end]
    if codes.size == 1:
        return not (answers != codes[0]).any()
    starts = (table.firsts[begin + 1 : end] - np.uint64(first)).astype(np.intp)
    turns = table.turns[end - 1] - table.turns[begin]
    return bool(
        np.count_nonzero(answers[1:] != answers[:-1]) == turns
        and (answers[starts] == codes[1:]).all()
        and (answers[starts - 1] == codes[:-1]).all()
    )


def _special(table: Table, segment: int, first: int, answers: NDArray[Any]) -> bool:
    match int(table.kinds[segment]):
        case kind if kind == ANYTHING:
            return True
        case kind if kind == RANGES:
            low, high, other_low, other_high = table.bounds[:, segment]
            least, most = answers.min(), answers.max()
            if (low <= least and most <= high) or (other_low <= least and most <= other_high):
                return True  # told in two passes that write nothing
            outside = (answers - low > high - low) & (answers - other_low > other_high - other_low)
            return not outside.any()
        case kind if kind == GRADED:
            return False
        case row:
            return _row(table, row, first - int(table.firsts[segment]), answers)


def _row(table: Table, row: int, inside: int, answers: NDArray[Any]) -> bool:
    """Whether answers follow a row, from so far inside its segment on."""
    nth, place = divmod(inside, ROW)
    codes, cares = table.rows[row, place : place + ROW], table.cares[row, place : place + ROW]
    whole, rest = divmod(answers.size, ROW)
    rise = table.rises[row]
    numbers = np.arange(nth, nth + whole + 1).astype(rise.dtype)
    mask = rise.dtype.type(table.ruling.target.mask)
    lifts = numbers * rise
    body = answers[: whole * ROW].reshape(whole, ROW)
    tail = (codes[:rest] + lifts[-1]) & mask
    if ((answers[whole * ROW :] ^ tail) & cares[:rest]).any():
        return False
    expected = codes + lifts[:-1, np.newaxis]
    if table.ruling.target.bits < 8 * rise.dtype.itemsize:
        expected &= mask
    if cares.all():
        return not (body != expected).any()
    return not ((body ^ expected) & cares).any()
