"""``chunk_check`` compiled by numba: one pass over a chunk, in the answers' own width.

The same pass adds a step to each of the inputs, if any are given. Both together take little longer
than the addition alone, which waits for stores to the cache while the answers are loaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from reports.grading.chunk_check import ChunkCheck, Moving
from reports.grading.chunk_table import ANYTHING, CODE, RANGES, ROW, Table


class _Check(partial[bool]):
    """``_all_right`` for one table; also a ``LoopCheck`` of ``oracles/bound_sweep.py``."""

    def over(self, function: Any, first: int, end: int, inputs: Bits, answers: Bits) -> int:
        segments, bounds, rows, rises = self.args
        return int(_over(segments, bounds, rows, rises, function, first, end, inputs, answers))


def check_of(table: Table) -> ChunkCheck:
    """Return the check of chunks against a table, whose arrays are bound to it once."""
    return _Check(_all_right, *table.stacked)


def is_uniform(answers: NDArray[Any], inputs: Moving, step: int) -> bool:
    """Return what ``chunk_check.is_uniform`` returns, and add ``step`` to ``inputs`` in place."""
    return not _differs_from_code(answers, answers[0], inputs, step)


def exceed(answers: NDArray[Any], mask: int) -> bool:
    """Whether any answer of an array has a bit beyond a format's mask."""
    return bool(_bits_of_any(answers) > mask)


@numba.njit(cache=True, nogil=True)
def _all_right(
    segments: Any,
    bounds: Any,
    rows: Any,
    rises: Any,
    first: Any,
    answers: Any,
    inputs: Any,
    step: Any,
) -> Any:
    # Indexed, as arrays that are unpacked lose their layout, and their loops are not vectorized.
    firsts, kinds = segments[0], segments[1]
    codes, cares, rises, slopes, plain = rows[0], rows[1], rises[0], rises[1], rises[2]
    segment = np.searchsorted(firsts, first, "right") - 1
    begin, wrong = 0, False
    while begin < answers.size and not wrong:
        stop = answers.size
        if segment + 1 < firsts.size:
            stop = min(stop, firsts[segment + 1] - first)
        kind, inside = kinds[segment], first - firsts[segment] + begin
        part = answers[begin:stop]
        moving = None if inputs is None else inputs[begin:stop]
        if kind == CODE:
            wrong = _differs_from_code(part, bounds[0, segment], moving, step)
        elif kind == RANGES:
            wrong = _outside_ranges(part, bounds[:, segment], moving, step)
        elif kind >= 0 and slopes[kind]:
            code, mask = _at_slope(codes[kind, 0], slopes[kind], inside), bounds[1, segment]
            wrong = _differs_from_line(part, code, slopes[kind], mask, moving, step)
        elif kind >= 0:
            row, mask = (codes[kind], cares[kind], rises[kind], plain[kind]), bounds[1, segment]
            wrong = _differs_from_row(part, row, mask, inside, moving, step)
        else:
            wrong = kind != ANYTHING
            _advance(moving, step)
        begin, segment = stop, segment + 1
    if inputs is not None:
        _advance(inputs[begin:], step)
    return not wrong


@numba.njit(cache=True, nogil=True)
def _over(
    segments: Any,
    bounds: Any,
    rows: Any,
    rises: Any,
    function: Any,
    first: Any,
    end: Any,
    inputs: Any,
    answers: Any,
) -> Any:
    size, x, y = inputs.size, inputs.ctypes.data, answers.ctypes.data
    while first < end:
        function(size, x, y)
        if not _all_right(segments, bounds, rows, rises, first, answers, inputs, size):
            break
        first += size
    return first


# So that as many answers as possible fit into a vector register, all values in the following loops
# have the answers' own width. `|=` would widen them; hence `width(...)`. The loops over `inputs`
# are compiled twice: numba leaves them out where it is None.


@numba.njit(cache=True, nogil=True)
def _advance(inputs: Any, step: Any) -> None:
    if inputs is not None:
        step = inputs.dtype.type(step)
        for at in range(inputs.size):
            inputs[at] += step


@numba.njit(cache=True, nogil=True)
def _bits_of_any(answers: Any) -> Any:
    width = answers.dtype.type
    bits = width(0)
    for at in range(answers.size):
        bits = width(bits | answers[at])
    return bits


@numba.njit(cache=True, nogil=True)
def _differs_from_code(answers: Any, code: Any, inputs: Any, step: Any) -> Any:
    """Return whether any answer is not ``code``; add ``step`` to ``inputs``, if any, in place."""
    width = answers.dtype.type
    wrong_bits = width(0)
    if inputs is not None:
        step = inputs.dtype.type(step)
    for at in range(answers.size):
        wrong_bits = width(wrong_bits | (answers[at] ^ code))
        if inputs is not None:
            inputs[at] += step
    return wrong_bits != 0


@numba.njit(cache=True, nogil=True)
def _outside_ranges(answers: Any, bounds: Any, inputs: Any, step: Any) -> Any:
    """Return whether any answer lies in neither of two ranges; add ``step`` to ``inputs`` in place.

    ``bounds`` has the low and the high end of each range. ``inputs`` may be None.
    """
    low, other_low = bounds[0], bounds[2]
    width = answers.dtype.type
    span, other_span = width(bounds[1] - low), width(bounds[3] - other_low)
    wrong = False
    if inputs is not None:
        step = inputs.dtype.type(step)
    for at in range(answers.size):
        above, other_above = width(answers[at] - low), width(answers[at] - other_low)
        wrong |= (above > span) & (other_above > other_span)
        if inputs is not None:
            inputs[at] += step
    return wrong


@numba.njit(cache=True, nogil=True)
def _differs_from_line(
    answers: Any, code: Any, slope: Any, mask: Any, inputs: Any, step: Any
) -> Any:
    """Return whether any answer is not the one before plus ``slope``, from ``code`` on.

    Sums are cut by ``mask``. ``step`` is added to ``inputs`` in place, unless they are None.
    """
    width = answers.dtype.type
    wrong_bits = width(0)
    if inputs is not None:
        step = inputs.dtype.type(step)
    for at in range(answers.size):
        wrong_bits = width(wrong_bits | (answers[at] ^ (code & mask)))
        code = width(code + slope)
        if inputs is not None:
            inputs[at] += step
    return wrong_bits != 0


@numba.njit(cache=True, nogil=True)
def _differs_from_row(
    answers: Any, row: Any, mask: Any, inside: Any, inputs: Any, step: Any
) -> Any:
    """Return whether answers, beginning ``inside`` inputs into a segment, do not repeat its row.

    ``row`` has its codes, its cares, its rise, and whether no mask is needed. ``step`` is added to
    ``inputs`` in place, unless they are None.
    """
    width = answers.dtype.type
    codes, cares, rise, is_plain = row
    wrong_bits = width(0)
    nth, begin = inside // ROW, inside % ROW
    codes, cares = codes[begin : begin + ROW], cares[begin : begin + ROW]
    beyond = width(~mask)
    if inputs is not None:
        step = inputs.dtype.type(step)
    for start in range(0, answers.size, ROW):
        part = answers[start : start + ROW]
        moving = None if inputs is None else inputs[start : start + ROW]
        lift = _at_slope(width(0), rise, nth)
        if is_plain:
            for at in range(part.size):
                wrong_bits = width(wrong_bits | (part[at] ^ width(codes[at] + lift)))
                if moving is not None:
                    moving[at] += step
        elif not beyond:
            for at in range(part.size):
                above = width(part[at] - width(codes[at] + lift))
                wrong_bits = width(wrong_bits | (above & cares[at]))
                if moving is not None:
                    moving[at] += step
        else:
            for at in range(part.size):
                above = width(part[at] - width(codes[at] + lift)) & mask | part[at] & beyond
                wrong_bits = width(wrong_bits | (above & cares[at]))
                if moving is not None:
                    moving[at] += step
        nth += 1
    return wrong_bits != 0


@numba.njit(cache=True, nogil=True)
def _at_slope(code: Any, slope: Any, steps: Any) -> Any:
    return type(code)(np.uint64(code) + np.uint64(slope) * np.uint64(steps))
