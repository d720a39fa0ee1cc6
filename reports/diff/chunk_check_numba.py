"""``chunk_check`` compiled by numba: one pass over a chunk, in the answers' own width."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.array_compare_numba import differs
from reports.diff.chunk_check import ChunkCheck
from reports.diff.chunk_table import ANYTHING, CODE, RANGES, ROW, Table


def check_of(table: Table) -> ChunkCheck:
    """Return the check against a table, with the table's arrays at hand: it is called often."""
    return partial(_all_right, *table.arrays)


def is_uniform(answers: NDArray[Any]) -> bool:
    """Whether all answers of an array are the same."""
    return not differs(answers, answers[0])


def exceed(answers: NDArray[Any], mask: int) -> bool:
    """Whether any answer of an array has a bit beyond a format's mask."""
    return bool(_bits_of_any(answers) > mask)


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
            wrong = _outside_ranges(answers[begin:stop], bounds[:, segment])
        elif kind == ANYTHING:
            wrong = False
        elif kind >= 0:
            inside = np.int64(first - firsts[segment]) + begin
            wrong = _differs_from_row(
                answers[begin:stop], rows[kind], cares[kind], rises[kind], mask, inside
            )
        else:
            wrong = True
        if wrong:
            return False
        begin, segment = stop, segment + 1
    return True


# So that as many answers as possible fit into a vector register, all values in the following loops
# have the answers' own width. `|=` would widen them; hence `width(...)`.


@numba.njit(cache=True, nogil=True)
def _bits_of_any(answers: Any) -> Any:
    """The bits that are set in any answer."""
    width = answers.dtype.type
    bits = width(0)
    for at in range(answers.size):
        bits = width(bits | answers[at])
    return bits


@numba.njit(cache=True, nogil=True)
def _outside_ranges(answers: Any, bounds: Any) -> Any:
    """Whether any answer lies in neither of two ranges."""
    low, other_low = bounds[0], bounds[2]
    width = answers.dtype.type
    span, other_span = width(bounds[1] - low), width(bounds[3] - other_low)
    wrong = False
    for at in range(answers.size):
        above, other_above = width(answers[at] - low), width(answers[at] - other_low)
        wrong |= (above > span) & (other_above > other_span)
    return wrong


@numba.njit(cache=True, nogil=True)
def _differs_from_row(answers: Any, row: Any, cares: Any, rise: Any, mask: Any, inside: Any) -> Any:
    """Whether answers, beginning ``inside`` inputs into a segment, do not repeat its row."""
    width = answers.dtype.type
    wrong_bits = width(0)
    nth, begin = inside // ROW, inside % ROW
    codes, cares = row[begin : begin + ROW], cares[begin : begin + ROW]
    # If every bit is compared and no mask is needed, load each code once for four repetitions.
    is_plain = not differs(cares, width(~width(0))) and mask == cares[0]
    fours = answers.size // (4 * ROW) if is_plain else 0
    for start in range(0, 4 * fours, 4):
        first, second = _part(answers, start), _part(answers, start + 1)
        third, fourth = _part(answers, start + 2), _part(answers, start + 3)
        lift = _lift(width, rise, nth + start)
        lift_2, lift_3, lift_4 = width(lift + rise), width(lift + 2 * rise), width(lift + 3 * rise)
        for at in range(ROW):
            code = codes[at]
            wrong = width(first[at] ^ width(code + lift))
            wrong = width(wrong | (second[at] ^ width(code + lift_2)))
            wrong = width(wrong | (third[at] ^ width(code + lift_3)))
            wrong = width(wrong | (fourth[at] ^ width(code + lift_4)))
            wrong_bits = width(wrong_bits | wrong)
    for start in range(4 * fours, -(-answers.size // ROW)):
        part = _part(answers, start)
        lift = _lift(width, rise, nth + start)
        for at in range(part.size):
            wrong = part[at] ^ (width(codes[at] + lift) & mask)
            wrong_bits = width(wrong_bits | (wrong & cares[at]))
    return wrong_bits != 0


@numba.njit(cache=True, nogil=True)
def _part(answers: Any, nth: Any) -> Any:
    """The answers that are compared with the nth repetition of a row."""
    return answers[nth * ROW : (nth + 1) * ROW]


@numba.njit(cache=True, nogil=True)
def _lift(width: Any, rise: Any, nth: Any) -> Any:
    """By how much the nth repetition of a row is higher than the row."""
    return width(np.uint64(rise) * np.uint64(nth))
