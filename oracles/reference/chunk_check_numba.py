"""The same filter compiled by numba: one pass over a chunk, in the answers' own width."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.chunk_table import ANYTHING, CODE, RANGES, ROW, Table


def all_right(table: Table, first: int, answers: NDArray[Any]) -> bool:
    """Whether the answers of the inputs from ``first`` on are all allowed."""
    compiled: Any = _all_right
    right: bool = compiled(*table.laid_out, first, answers)
    return right


@numba.njit(cache=True, nogil=True)
def _all_right(
    firsts: Any,
    kinds: Any,
    bounds: Any,
    rows: Any,
    cares: Any,
    rises: Any,
    mask: Any,
    first: Any,
    answers: Any,
) -> Any:
    first = np.uint64(first)
    segment = np.searchsorted(firsts, first, "right") - 1
    begin = np.int64(0)
    while begin < answers.size:
        stop = answers.size
        if segment + 1 < firsts.size:
            stop = min(stop, np.int64(firsts[segment + 1] - first))
        kind = kinds[segment]
        if kind == CODE:
            wrong = differs(answers[begin:stop], bounds[0, segment])
        elif kind == RANGES:
            wrong = _leaves(answers[begin:stop], bounds[:, segment])
        elif kind == ANYTHING:
            wrong = False
        elif kind >= 0:
            inside = np.int64(first - firsts[segment]) + begin
            wrong = _leaves_row(
                answers[begin:stop], rows[kind], cares[kind], rises[kind], mask, inside
            )
        else:
            wrong = True
        if wrong:
            return False
        begin, segment = stop, segment + 1
    return True


# In all three loops only values of the answers' own width meet, or too few fit into a register:
# what is written `|=` would be widened.


@numba.njit(cache=True, nogil=True)
def differs(answers: Any, code: Any) -> Any:
    """Whether any answer is not that code."""
    width = answers.dtype.type
    seen = width(0)
    for place in range(answers.size):
        seen = width(seen | (answers[place] ^ code))
    return seen != 0


@numba.njit(cache=True, nogil=True)
def _leaves(answers: Any, bounds: Any) -> Any:
    low, other_low = bounds[0], bounds[2]
    width = answers.dtype.type
    span, other_span = width(bounds[1] - low), width(bounds[3] - other_low)
    seen = False
    for place in range(answers.size):
        above, other_above = width(answers[place] - low), width(answers[place] - other_low)
        seen |= (above > span) & (other_above > other_span)
    return seen


@numba.njit(cache=True, nogil=True)
def _leaves_row(answers: Any, row: Any, cares: Any, rise: Any, mask: Any, inside: Any) -> Any:
    width = answers.dtype.type
    seen = width(0)
    nth, begin = inside // ROW, inside % ROW
    codes, cares = row[begin : begin + ROW], cares[begin : begin + ROW]
    # Codes that all count and need no mask are read once for four parts.
    is_plain = not differs(cares, width(~width(0))) and mask == cares[0]
    fours = answers.size // (4 * ROW) if is_plain else 0
    for start in range(0, 4 * fours, 4):
        first, second = _part(answers, start), _part(answers, start + 1)
        third, fourth = _part(answers, start + 2), _part(answers, start + 3)
        lift = _lift(width, rise, nth + start)
        lift_2, lift_3, lift_4 = width(lift + rise), width(lift + 2 * rise), width(lift + 3 * rise)
        for place in range(ROW):
            code = codes[place]
            wrong = width(first[place] ^ width(code + lift))
            wrong = width(wrong | (second[place] ^ width(code + lift_2)))
            wrong = width(wrong | (third[place] ^ width(code + lift_3)))
            wrong = width(wrong | (fourth[place] ^ width(code + lift_4)))
            seen = width(seen | wrong)
    for start in range(4 * fours, -(-answers.size // ROW)):
        part = _part(answers, start)
        lift = _lift(width, rise, nth + start)
        for place in range(part.size):
            wrong = part[place] ^ (width(codes[place] + lift) & mask)
            seen = width(seen | (wrong & cares[place]))
    return seen != 0


@numba.njit(cache=True, nogil=True)
def _part(answers: Any, nth: Any) -> Any:
    """The answers that are compared with a row for the nth time."""
    return answers[nth * ROW : (nth + 1) * ROW]


@numba.njit(cache=True, nogil=True)
def _lift(width: Any, rise: Any, nth: Any) -> Any:
    """By how much a row's codes are higher the nth time."""
    return width(np.uint64(rise) * np.uint64(nth))
