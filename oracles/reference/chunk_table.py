"""A staircase laid out for speed: what proves a whole chunk of consecutive inputs right.

A table is a filter. Where it is content every answer is allowed; where it is not, ``grading`` says
which answer is wrong, and why.
"""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import BOUNDS, staircase
from specs.ruling import Ruling

WORD = np.dtype(np.uint64)
LINE = 8
"""Words of a line of the cache: memory is compared fastest with itself so much further on."""
FEW = 24
"""Stretches that are compared one by one sooner than all words with the one before."""
_compare = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class Seams:
    """Where words of right answers change: stretches of equal words, by the number of their first.

    ``places`` and ``codes`` are two for each stretch: the word before it, and its first.
    ``unfixed`` counts, before each stretch, those for which no certain codes are asked.
    """

    per_word: int
    firsts: list[int]
    unfixed: list[int]
    places: NDArray[np.intp]
    codes: NDArray[np.uint64]

    def hold(self, first: int, answers: NDArray[Any]) -> bool | None:
        """Whether consecutive inputs are answered right; None if words do not tell."""
        number, odd = divmod(first, self.per_word)
        if odd or answers.size % self.per_word or not answers.flags.c_contiguous:
            return None
        words = answers.view(WORD)
        begin = bisect_right(self.firsts, number) - 1
        end = bisect_right(self.firsts, number + words.size - 1)
        if self.unfixed[begin] != self.unfixed[end]:
            return None
        if end == begin + 1:
            return _are_all(words, self.codes[2 * begin + 1])
        # Both sides of each seam are right, and between two seams all words are the same.
        near = slice(2 * begin + 2, 2 * end)
        seen = words.take(self.places[near] - number)
        if seen.tobytes() != self.codes[near].tobytes():
            return False
        if end - begin > FEW:
            return int(np.count_nonzero(words[1:] != words[:-1])) == end - begin - 1
        at, start = _address(words), 0
        for first_of_next in (*self.firsts[begin + 1 : end], number + words.size):
            stop = first_of_next - number
            size = WORD.itemsize * (stop - start)
            # Where codes change within a word, that word is a stretch of its own.
            if stop - start > 1 and not _goes_on(at + WORD.itemsize * start, size, WORD.itemsize):
                return False
            start = stop
        return True


def _are_all(words: NDArray[np.uint64], code: np.uint64) -> bool:
    """Whether all words are one, told in one pass that writes nothing: numpy's has to."""
    line = words[:LINE].tobytes()
    if line != code.tobytes() * (len(line) // WORD.itemsize):
        return False
    return _goes_on(_address(words), words.nbytes, len(line))


def _goes_on(at: int, size: int, period: int) -> bool:
    """Whether so many bytes go on as their first few do."""
    return not _compare(at, at + period, size - period)


def _address(words: NDArray[np.uint64]) -> int:
    """Where words lie: numpy's own way to tell takes as long as half the comparison."""
    if words.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(words.data))
    return words.ctypes.data


def seams(
    firsts: NDArray[np.uint64], fixed: NDArray[np.bool_], codes: NDArray[Any], inputs: int
) -> Seams:
    """The seams of segments of so many inputs: those that are ``fixed`` have one code."""
    per_word = WORD.itemsize // codes.itemsize
    number, odd = np.divmod(firsts, np.uint64(per_word))
    begins = np.unique(np.concatenate([number, number + (odd > 0)]))
    begins = begins[begins < max(1, inputs // per_word)]
    inside = begins[:, np.newaxis] * np.uint64(per_word) + np.arange(per_word, dtype=np.uint64)
    segments = np.searchsorted(firsts, inside, "right") - 1
    unfixed = np.logical_not(fixed[segments].all(axis=1))
    words = codes[segments].view(WORD)[:, 0]
    new = np.append(True, (words[1:] != words[:-1]) | unfixed[1:] | unfixed[:-1])
    begins, unfixed, words = begins[new].astype(np.intp), unfixed[new], words[new]
    return Seams(
        per_word,
        begins.tolist(),
        [0, *np.cumsum(unfixed).tolist()],
        np.repeat(begins, 2) - np.tile([1, 0], begins.size),
        np.append(words[0], np.repeat(words, 2)[:-1]),
    )


ROW = 1024
"""Answers of a row: short periods are compared row by row, long ones step by step."""
CODE, RANGES, ANYTHING, GRADED = -1, -2, -3, -4
"""What a segment holds, where it is not the number of its row: one code, two ranges, all codes; or
something that only grading tells."""


@dataclass(frozen=True)
class Table:
    """Segments of consecutive inputs in the answers' own width.

    ``bounds`` are a low and a high of each of two ranges. A row is written twice, so that it can be
    read from any place on; from row to row its codes rise by ``rises``. ``cares`` are the bits of a
    row's answers that count: all, or none where anything is allowed.
    """

    ruling: Ruling
    firsts: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    bounds: NDArray[np.unsignedinteger]
    rows: NDArray[np.unsignedinteger]
    cares: NDArray[np.unsignedinteger]
    rises: NDArray[np.unsignedinteger]

    @cached_property
    def laid_out(self) -> tuple[Any, ...]:
        """All that a compiled filter reads, gathered once."""
        mask = self.bounds.dtype.type(self.ruling.target.mask)
        return self.firsts, self.kinds, self.bounds, self.rows, self.cares, self.rises, mask

    @cached_property
    def turns(self) -> NDArray[np.intp]:
        """Before each segment, how many have another code than the one before."""
        codes = self.bounds[0]
        changes = np.concatenate([[0], codes[1:] != codes[:-1]])
        return np.cumsum(changes)

    @cached_property
    def seams(self) -> Seams:
        """Where words of several codes change."""
        return seams(self.firsts, self.kinds == CODE, self.bounds[0], 1 << self.ruling.source.bits)

    @cached_property
    def specials(self) -> NDArray[np.intp]:
        """The segments that are more than one code, and the end."""
        return np.append(np.flatnonzero(self.kinds != CODE), self.kinds.size)


@lru_cache(maxsize=256)
def table(ruling: Ruling) -> Table:
    """The table of a ruling with a numeric source of up to 32 bits and a numeric target."""
    assert ruling.source.bits <= 32, f"{ruling.source.name} has more patterns than a table holds"
    stairs = staircase(ruling)
    storage = np.dtype(ruling.target.storage)
    rows = Rows(ruling.target.mask, storage)
    parts = [
        _segments(stretch, stairs.steps_of(number), rows)
        for number, stretch in enumerate(stairs.stretches)
    ]
    firsts = np.concatenate([part.firsts for part in parts])
    kinds = np.concatenate([part.kinds for part in parts])
    bounds = np.concatenate([part.bounds for part in parts], axis=1)
    # What goes on as before is no segment: infinities and numbers out of range merge.
    new = (kinds[1:] != kinds[:-1]) | (kinds[1:] >= 0) | (bounds[:, 1:] != bounds[:, :-1]).any(0)
    kept = np.concatenate([[True], new])
    return Table(
        ruling,
        firsts[kept],
        kinds[kept],
        bounds[:, kept].astype(storage),
        np.array(rows.codes, storage).reshape(-1, 2 * ROW),
        np.array(rows.cares, storage).reshape(-1, 2 * ROW),
        np.array(rows.rises, storage),
    )


class _Segments(NamedTuple):
    firsts: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    bounds: NDArray[np.uint64]


@dataclass
class Rows:
    """Gathers the rows of a table."""

    mask: int
    storage: np.dtype[Any]
    codes: list[NDArray[np.uint64]] = field(default_factory=list)
    cares: list[NDArray[np.uint64]] = field(default_factory=list)
    rises: list[int] = field(default_factory=list)

    def kind(self, shift: int, steps: NDArray[np.void]) -> int:
        """What a stretch with a short period is: if its steps fit, the number of a new row."""
        free = (steps["low"] == 0) & (steps["high"] == self.mask)
        if free.all():
            return ANYTHING
        rises = np.unique(steps["rise"][~free])
        if rises.size > 1 or (steps["low"] != steps["high"])[~free].any():
            return GRADED
        inside = np.arange(2 * ROW, dtype=np.uint64)
        periods, offsets = inside >> np.uint64(shift), inside & np.uint64((1 << shift) - 1)
        here = np.searchsorted(steps["offset"], offsets, "right") - 1
        codes = (steps["low"][here] + periods * steps["rise"][here]) & np.uint64(self.mask)
        self.codes.append(codes)
        self.cares.append(np.where(free[here], 0, np.iinfo(self.storage).max))
        self.rises.append(int(rises[0]) * (ROW >> shift) & self.mask)
        return len(self.codes) - 1


def _segments(stretch: np.void, steps: NDArray[np.void], rows: Rows) -> _Segments:
    first, last, shift = (int(stretch[name]) for name in ("first", "last", "shift"))
    periods = (last - first >> shift) + 1
    if periods == 1 or (steps.size == 1 and not steps["rise"].any()):
        return _spread(first, last, shift, 1, steps, rows.mask)
    if 1 << shift > ROW:
        return _spread(first, last, shift, periods, steps, rows.mask)
    one, kind = np.array([first], np.uint64), rows.kind(shift, steps)
    return _Segments(one, np.array([kind], np.int32), np.zeros((4, 1), np.uint64))


def _spread(
    first: int, last: int, shift: int, periods: int, steps: NDArray[np.void], mask: int
) -> _Segments:
    """Every step of every period as a segment of its own."""
    nth = np.arange(periods, dtype=np.uint64)[:, np.newaxis]
    firsts = (np.uint64(first) + steps["offset"] + (nth << np.uint64(shift))).ravel()
    inside = firsts <= last
    bounds = np.array(
        [
            ((steps[bound] + nth * steps[rise]) & np.uint64(mask)).ravel()[inside]
            for bound, rise in BOUNDS
        ]
    )
    low, high, other_low, other_high = bounds
    kinds = np.where((low == high) & (low == other_low) & (low == other_high), CODE, RANGES)
    kinds[(low == 0) & (high == mask)] = ANYTHING
    return _Segments(firsts[inside], kinds.astype(np.int32), bounds)
