"""A staircase laid out as a table against which a chunk of consecutive inputs is checked at once.

The check (``chunk_check``, ``chunk_check_numba``) is a pre-check: if it passes, every answer of the
chunk is allowed. If not, ``staircase_grades`` tells which answers are wrong, and why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import BOUNDS, staircase
from specs.branches import Ruling

ROW = 1024
"""The answers of a row. Longer periods are not stored as rows, but step by step."""
CODE, RANGES, ANYTHING, NEEDS_GRADING = -1, -2, -3, -4
"""Kinds of segments: all answers are one code; each lies in one of two ranges; any word is allowed;
the table cannot tell, so that the pre-check fails. A kind of 0 or more is the number of the row
that the answers repeat. Where any code of a target is allowed that does not fill its storage, the
kind is ``RANGES``, so that a word with other bits fails."""


@dataclass(frozen=True)
class Table:
    """Segments of consecutive inputs, each with its kind, in the answers' own width.

    ``firsts`` has the first input of each segment. ``bounds`` are the low and high ends of each of
    two ranges; of a row, those of all codes. A row is stored with its first repetition, so that
    ``ROW`` codes can be read from any offset; each repetition raises its codes by ``rises``.
    ``cares`` masks the bits of an answer minus its code that must be 0: all, or all but the lowest
    if the next code is allowed too, or those beyond the target's if any code is. The slope of a row
    is the amount by which each code is above the one before it. It is 0 if that amount is not the
    same for all codes, also where the row is repeated, or if more than these codes are allowed.
    """

    ruling: Ruling
    firsts: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    bounds: NDArray[np.unsignedinteger]
    rows: NDArray[np.unsignedinteger]
    cares: NDArray[np.unsignedinteger]
    rises: NDArray[np.unsignedinteger]
    slopes: NDArray[np.unsignedinteger]

    @cached_property
    def stacked(self) -> tuple[Any, ...]:
        """The arrays as numba's check takes them, stacked into four.

        These are firsts with kinds, bounds, rows with cares, and rises with slopes and, per row,
        whether every bit of its answers must be that of its code (1 or 0). numba examines each
        argument of each call, so few are best.
        """
        plain = (self.cares == self.bounds.dtype.type(self.ruling.target.mask)).all(axis=1)
        return (
            np.stack([self.firsts.astype(np.int64), self.kinds.astype(np.int64)]),
            self.bounds,
            np.stack([self.rows, self.cares]),
            np.stack([self.rises, self.slopes, plain.astype(self.rises.dtype)]),
        )

    @cached_property
    def code_changes(self) -> NDArray[np.intp]:
        """For each segment, how many up to it have another low end than the segment before."""
        codes = self.bounds[0]
        changes = np.concatenate([[0], codes[1:] != codes[:-1]])
        return np.cumsum(changes)

    @cached_property
    def not_codes(self) -> NDArray[np.intp]:
        """The indices of segments not of kind ``CODE``, and the number of segments as the end."""
        return np.append(np.flatnonzero(self.kinds != CODE), self.kinds.size)


@lru_cache(maxsize=256)
def table(ruling: Ruling) -> Table:
    """Return the table of a numeric ruling whose source has at most 32 bits."""
    assert ruling.source.bits <= 32, f"{ruling.source.name} has too many patterns for a table"
    stairs = staircase(ruling)
    storage = np.dtype(ruling.target.storage)
    rows = Rows(ruling.target.mask, storage, ruling.refused_branches)
    parts = [
        _segments(stretch, stairs.steps_of(number), rows)
        for number, stretch in enumerate(stairs.stretches)
    ]
    firsts = np.concatenate([part.firsts for part in parts])
    kinds = np.concatenate([part.kinds for part in parts])
    bounds = np.concatenate([part.bounds for part in parts], axis=1)
    # Merge segments that allow the same: infinities and numbers out of range, for instance.
    is_new = (kinds[1:] != kinds[:-1]) | (kinds[1:] >= 0) | (bounds[:, 1:] != bounds[:, :-1]).any(0)
    starts = np.concatenate([[True], is_new])
    return Table(
        ruling,
        firsts[starts],
        kinds[starts],
        bounds[:, starts].astype(storage),
        np.array(rows.codes, storage).reshape(-1, 2 * ROW),
        np.array(rows.cares, storage).reshape(-1, 2 * ROW),
        np.array(rows.rises, storage),
        np.array(rows.slopes, storage),
    )


class _Segments(NamedTuple):
    firsts: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    bounds: NDArray[np.uint64]


@dataclass
class Rows:
    """Collects the rows of a table.

    ``mask`` is that of the target's codes, and ``storage`` the dtype of the answers. The steps of
    ``refused_branches`` allow no answer, so a stretch with one gets no row.
    """

    mask: int
    storage: np.dtype[Any]
    refused_branches: tuple[int, ...] = ()
    codes: list[NDArray[np.uint64]] = field(default_factory=list)
    cares: list[NDArray[np.uint64]] = field(default_factory=list)
    rises: list[int] = field(default_factory=list)
    slopes: list[int] = field(default_factory=list)

    @property
    def word(self) -> int:
        """The mask of all bits of an answer's storage."""
        return int(np.iinfo(self.storage).max)

    @property
    def anything(self) -> int:
        """The kind of a segment in which every code is allowed.

        It is ``RANGES`` if codes do not fill their storage, so that other bits are noticed.
        """
        return ANYTHING if self.mask == self.word else RANGES

    def are_refused(self, steps: NDArray[np.void]) -> NDArray[np.bool_]:
        """Return which steps are of inputs that must be refused."""
        return np.isin(steps["branch_index"], self.refused_branches)

    def add(self, shift: int, steps: NDArray[np.void]) -> int:
        """Add a row for a stretch with periods of ``1 << shift`` inputs; return its number.

        A period has at most ``ROW`` inputs, and ``steps`` are those of one. A step may allow a
        code, two neighboring codes, as documents do that leave the direction of rounding open, or
        any code. Without adding a row, return the kind ``NEEDS_GRADING`` if none can hold what is
        allowed, or ``anything`` if every code is.
        """
        if self.are_refused(steps).any():
            return NEEDS_GRADING
        free = (steps["low"] == 0) & (steps["high"] == self.mask)
        if free.all():
            return self.anything
        fixed, mask = steps[~free], np.uint64(self.mask)
        rises = np.unique([fixed["rise"], fixed["other_rise"]])
        is_range = (fixed["low"] != fixed["high"]) | (fixed["other_low"] != fixed["other_high"])
        # Of two neighboring codes, which a step has in either order, the row gets the lower.
        up = (steps["other_low"] - steps["low"]) & mask
        beyond = np.minimum(up, -up & mask)
        if rises.size > 1 or is_range.any() or (beyond[~free] > 1).any():
            return NEEDS_GRADING
        lower = np.where(up == beyond, steps["low"], steps["other_low"])
        ignored = np.where(free, mask, beyond)
        inside = np.arange(2 * ROW, dtype=np.uint64)
        periods, offsets = inside >> np.uint64(shift), inside & np.uint64((1 << shift) - 1)
        step = np.searchsorted(steps["offset"], offsets, "right") - 1
        codes = (lower[step] + periods * steps["rise"][step]) & mask
        rise = int(rises[0]) * (ROW >> shift) & self.mask
        slopes = np.unique(np.diff(codes) & mask)
        is_line = (
            slopes.size == 1 and int(slopes[0]) * ROW & self.mask == rise and not ignored.any()
        )
        self.codes.append(codes)
        self.cares.append(np.uint64(self.word) & ~ignored[step])
        self.rises.append(rise)
        self.slopes.append(int(slopes[0]) if is_line else 0)
        return len(self.codes) - 1


def _segments(stretch: np.void, steps: NDArray[np.void], rows: Rows) -> _Segments:
    """Return one segment for a stretch of several short periods, else one per step and period.

    A single period needs no row. One step that does not rise makes one segment of all periods.
    """
    first, last, shift = (int(stretch[name]) for name in ("first", "last", "shift"))
    periods = (last - first >> shift) + 1
    if periods == 1 or (steps.size == 1 and not steps["rise"].any()):
        return _segment_per_step(first, last, shift, 1, steps, rows)
    if 1 << shift > ROW:
        return _segment_per_step(first, last, shift, periods, steps, rows)
    kind = rows.add(shift, steps)
    every_code = np.array([[0], [rows.mask], [0], [rows.mask]], np.uint64)
    return _Segments(np.array([first], np.uint64), np.array([kind], np.int32), every_code)


def _segment_per_step(
    first: int, last: int, shift: int, periods: int, steps: NDArray[np.void], rows: Rows
) -> _Segments:
    """Return a segment for every step of each of the ``periods`` of a stretch."""
    nth = np.arange(periods, dtype=np.uint64)[:, np.newaxis]
    firsts = (np.uint64(first) + steps["offset"] + (nth << np.uint64(shift))).ravel()
    inside = firsts <= last
    bounds = np.array(
        [
            ((steps[bound] + nth * steps[rise]) & np.uint64(rows.mask)).ravel()[inside]
            for bound, rise in BOUNDS
        ]
    )
    low, high, other_low, other_high = bounds
    kinds = np.where((low == high) & (low == other_low) & (low == other_high), CODE, RANGES)
    kinds[(low == 0) & (high == rows.mask)] = rows.anything
    kinds[np.tile(rows.are_refused(steps), periods)[inside]] = NEEDS_GRADING
    return _Segments(firsts[inside], kinds.astype(np.int32), bounds)
