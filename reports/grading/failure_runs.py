"""Runs of failures: maximal stretches of consecutive inputs whose answers break one rule.

Runs are gathered from the answers to inputs. However the inputs are cut into parts, the joined runs
of the parts are the runs of the whole. The number of stored runs is capped; the count of all runs
is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_RUNS = 1 << 16
"""The most runs that are listed of one rule: more than a target of 16 bits has steps."""
COLUMNS = ("first", "last", "answer", "last_answer", "slope", "straight")
WORD = (1 << 64) - 1
SHIFTS, FACTORS = (30, 27, 31), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64, which maps words to words one to one."""


@dataclass(frozen=True)
class Runs:
    """Columns with one row per run, in input order: the first ``MOST_RUNS`` and the very last.

    The last run is there only so that a later part can be joined to it. ``total`` counts all runs.
    Inputs and answers are patterns or texts. ``slope`` is the second answer of a run minus the
    first, 0 if it has only one; of texts and patterns of 128 bits, 1 if they differ. A run is
    ``straight`` if all its answers rise by that much (modulo 2**64). ``checksum`` covers every
    input of all runs with its answer, in any order.
    """

    total: int
    first: NDArray[Any]
    last: NDArray[Any]
    answer: NDArray[Any]
    last_answer: NDArray[Any]
    slope: NDArray[np.int64]
    straight: NDArray[np.bool_]
    checksum: int = field(default=0, kw_only=True)

    @cached_property
    def listed(self) -> Runs:
        """The runs that a store lists: the first ``MOST_RUNS``."""
        return self.at(slice(MOST_RUNS))

    def at(self, where: Any) -> Runs:
        """Return the rows at indices, a slice or a mask; ``total`` and ``checksum`` stay."""
        columns = (column[where] for column in self.columns)
        return Runs(self.total, *columns, checksum=self.checksum)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns, in the order of the fields."""
        return tuple(getattr(self, name) for name in COLUMNS)

    def joined(self, later: Runs) -> Runs:
        """Return these runs and those of the inputs that come next.

        If the first of the later runs continues the last of these, the two become one.
        """
        if not self.total:
            return later
        if not later.total:
            return self
        end, start = self.at(slice(-1, None)), later.at(slice(0, 1))
        total, checksum = self.total + later.total, self.checksum + later.checksum & WORD
        if not _continues(end, start):
            return _concatenated([self, later], total, checksum)
        seam = _joined_at_seam(end, start)
        if total == 2:
            return replace(seam, checksum=checksum)
        parts = [self.at(slice(-1)), seam, later.at(slice(1, None))]
        return _concatenated(parts, total - 1, checksum)

    def merged(self, other: Runs) -> Runs:
        """Return these runs and those of other inputs, in the order of inputs; none are joined."""
        both = [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)]
        order = np.argsort(both[0], kind="stable")
        shown = order[_within_cap(order.size)]
        checksum = self.checksum + other.checksum & WORD
        columns = (column[shown] for column in both)
        return Runs(self.total + other.total, *columns, checksum=checksum)


Gather = Callable[[NDArray[Any], NDArray[Any], NDArray[np.uint8]], Iterator[tuple[int, Runs]]]
"""Yields each group but 0 with its runs, groups in rising order.

Its arguments are inputs in rising order, the answers to them, and the group of each, which is 0 for
allowed answers.
"""


def one_run(first: int, last: int, answer: int, checksum: int) -> Runs:
    """Return ``Runs`` with one run, from ``first`` to ``last``, whose inputs share an answer."""
    start, end, code = (np.array([each], np.uint64) for each in (first, last, answer))
    flat, straight = np.zeros(1, np.int64), np.ones(1, bool)
    return Runs(1, start, end, code, code, flat, straight, checksum=checksum)


def checksum_of_row(first: int, count: int, answer: int) -> int:
    """Return the checksum of ``count`` inputs from ``first`` on that share an answer."""
    inputs = np.arange(first, first + count, dtype=np.uint64)
    return int(_hashes(inputs, np.array([answer], np.uint64)).sum(dtype=np.uint64))


def gather(
    inputs: NDArray[Any], answers: NDArray[Any], groups: NDArray[np.uint8]
) -> Iterator[tuple[int, Runs]]:
    """Yield each group but 0 with its runs, from rising inputs and the group of each input.

    ``answers`` are the answers to the inputs.
    """
    where = np.flatnonzero(groups)
    inputs, answers, groups = inputs[where], answers[where], groups[where]
    if not where.size:
        return
    starts = np.flatnonzero((groups[1:] != groups[:-1]) | ~_is_successor(inputs)) + 1
    starts = np.concatenate([np.zeros(1, np.intp), starts])
    runs = _build(inputs, answers, starts)
    owners = groups[starts]
    hashes = _hashes(inputs, answers)
    for group in np.unique(owners).tolist():
        total = int(hashes[groups == group].sum(dtype=np.uint64))
        yield group, capped(runs, np.flatnonzero(owners == group), total)


def capped(runs: Runs, where: NDArray[np.intp], checksum: int) -> Runs:
    """Return the runs at the rows ``where``, at most as many as are kept.

    ``checksum`` becomes theirs, and their ``total`` counts also the rows that are not kept.
    """
    shown = runs.at(where[_within_cap(where.size)])
    return replace(shown, total=where.size, checksum=checksum)


def _hashes(inputs: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.uint64]:
    return _mixed(_mixed(_words(inputs)) ^ _words(answers))


def _words(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Return each pattern as a 64-bit word; of a text or a pattern of 128 bits, a digest."""
    if column.dtype != object and column.dtype.kind != "V":
        return column.astype(np.uint64)
    encoded = (
        each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each.tobytes()
        for each in column
    )
    digests = b"".join(blake2b(each, digest_size=8).digest() for each in encoded)
    return np.frombuffer(digests, np.uint64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Map 64-bit words to words one to one, by the finalizer of splitmix64."""
    first, second, third = map(np.uint64, SHIFTS)
    words = (words ^ words >> first) * np.uint64(FACTORS[0])
    words = (words ^ words >> second) * np.uint64(FACTORS[1])
    return words ^ words >> third


def _is_successor(inputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Return, for each input but the first, whether it is the one before plus 1.

    Texts and patterns of 128 bits never are.
    """
    if inputs.dtype == object or inputs.dtype.kind == "V":
        return np.zeros(inputs.size - 1, bool)
    follows: NDArray[np.bool_] = inputs[1:] == inputs[:-1] + inputs.dtype.type(1)
    return follows


def _build(inputs: NDArray[Any], answers: NDArray[Any], starts: NDArray[np.intp]) -> Runs:
    ends = np.append(starts[1:], inputs.size)[: starts.size] - 1
    rises = _rises(answers)
    slope = np.zeros(starts.size, np.int64)
    several = ends > starts
    slope[several] = rises[starts[several]]
    # turns[i]: how often the rise has changed between the first and the i-th step.
    turns = np.concatenate([np.zeros(1, np.intp), np.cumsum(rises[1:] != rises[:-1])])
    straight = ~several
    straight[several] = turns[ends[several] - 1] == turns[starts[several]]
    return Runs(
        starts.size,
        _as_column(inputs[starts]),
        _as_column(inputs[ends]),
        _as_column(answers[starts]),
        _as_column(answers[ends]),
        slope,
        straight,
    )


def _rises(answers: NDArray[Any]) -> NDArray[np.int64]:
    """Return, for each answer but the first, its difference from the one before, modulo 2**64.

    For texts and patterns of 128 bits it is 1 where the answer changes, otherwise 0.
    """
    if answers.dtype == object or answers.dtype.kind == "V":
        changes: NDArray[np.bool_] = answers[1:] != answers[:-1]
        return changes.astype(np.int64)
    rises: NDArray[np.int64] = np.diff(answers.astype(np.uint64)).view(np.int64)
    return rises


def _as_column(column: NDArray[Any]) -> NDArray[Any]:
    """Return patterns as uint64, those of 128 bits as Python integers, and texts as they are."""
    if column.dtype == object:
        return column
    if column.dtype.kind == "V":
        numbers = [int.from_bytes(pattern.tobytes(), "little") for pattern in column]
        return np.array(numbers, object)
    return column.astype(np.uint64)


def _continues(end: Runs, start: Runs) -> bool:
    """Return whether the run ``start`` begins at the pattern after the last of the run ``end``.

    Runs of texts and of patterns of 128 bits never do.
    """
    if end.last.dtype == object:
        return False
    return int(end.last[0]) + 1 == int(start.first[0])


def _joined_at_seam(end: Runs, start: Runs) -> Runs:
    """Return one run from the run ``end`` and the run ``start`` that continues it."""
    rise = _rises(np.concatenate([end.last_answer, start.answer]))
    end_alone, start_alone = end.first == end.last, start.first == start.last
    return Runs(
        1,
        end.first,
        start.last,
        end.answer,
        start.last_answer,
        np.where(end_alone, rise, end.slope),
        (end_alone | (end.straight & (end.slope == rise)))
        & (start_alone | (start.straight & (start.slope == rise))),
    )


def _concatenated(parts: list[Runs], total: int, checksum: int) -> Runs:
    columns = zip(*(part.columns for part in parts), strict=True)
    joined = Runs(total, *map(np.concatenate, columns), checksum=checksum)
    return joined.at(_within_cap(joined.first.size))


def _within_cap(rows: int) -> Any:
    """Return an index of the rows to keep: all, or the first ``MOST_RUNS`` and the very last."""
    if rows <= MOST_RUNS:
        return slice(None)
    return np.append(np.arange(MOST_RUNS), rows - 1)
