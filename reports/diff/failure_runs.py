"""Runs: the longest stretches of consecutive inputs whose answers break one rule.

Gathering is associative: however a range is cut, the joined parts give the same runs. What is kept
is capped, what is counted is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT_RUNS = 1 << 16
"""Runs that are kept of one rule: more than a target of 16 bits has steps."""


@dataclass(frozen=True)
class Runs:
    """Columns of runs in the order of their inputs: the first ``KEPT_RUNS`` and the very last.

    Inputs and answers are patterns, or texts. ``slope`` is by how much the second answer of a run
    exceeds the first; a run is ``straight`` if every further answer rises as much (modulo 2**64).
    """

    total: int
    first: NDArray[Any]
    last: NDArray[Any]
    answer: NDArray[Any]
    last_answer: NDArray[Any]
    slope: NDArray[np.int64]
    straight: NDArray[np.bool_]

    @cached_property
    def kept(self) -> Runs:
        """The runs that are stored."""
        return self.at(slice(KEPT_RUNS))

    def at(self, where: Any) -> Runs:
        """Some of the runs; the total stays."""
        return Runs(self.total, *(column[where] for column in self.columns))

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns in their order."""
        return tuple(getattr(self, column.name) for column in fields(self)[1:])

    def joined(self, later: Runs) -> Runs:
        """These runs and those of the inputs that come next; a run may go on over the seam."""
        if not self.total:
            return later
        if not later.total:
            return self
        end, start = self.at(slice(-1, None)), later.at(slice(0, 1))
        if not _go_on(end, start):
            return _concatenated([self, later], self.total + later.total)
        seam = _merged(end, start)
        parts = [self.at(slice(-1)), seam, later.at(slice(1, None))]
        return _concatenated(parts, self.total + later.total - 1)

    def merged(self, other: Runs) -> Runs:
        """These runs and those of other inputs that lie among them, each run as it is."""
        both = [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)]
        order = np.argsort(both[0], kind="stable")
        total = self.total + other.total
        return Runs(total, *(column[order[_kept(order.size)]] for column in both))


def no_runs(inputs: NDArray[Any], answers: NDArray[Any]) -> Runs:
    """Runs of nothing, with the columns of such inputs and answers."""
    return _built(inputs[:0], answers[:0], np.empty(0, np.intp))


def gather(
    inputs: NDArray[Any], answers: NDArray[Any], groups: NDArray[np.uint8]
) -> Iterator[tuple[int, Runs]]:
    """The runs of each group but 0, from inputs in rising order."""
    where = np.flatnonzero(groups)
    inputs, answers, groups = inputs[where], answers[where], groups[where]
    if not where.size:
        return
    starts = np.flatnonzero((groups[1:] != groups[:-1]) | ~_follow(inputs)) + 1
    starts = np.concatenate([np.zeros(1, np.intp), starts])
    runs = _built(inputs, answers, starts)
    owners = groups[starts]
    for group in np.unique(owners).tolist():
        yield group, capped(runs, np.flatnonzero(owners == group))


def capped(runs: Runs, where: NDArray[np.intp]) -> Runs:
    """Some of the runs, as runs of their own."""
    return replace(runs.at(where[_kept(where.size)]), total=where.size)


def _follow(inputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each input but the first is the next pattern; texts have no order."""
    if inputs.dtype == object or inputs.dtype.kind == "V":
        return np.zeros(inputs.size - 1, bool)
    follows: NDArray[np.bool_] = inputs[1:] == inputs[:-1] + inputs.dtype.type(1)
    return follows


def _built(inputs: NDArray[Any], answers: NDArray[Any], starts: NDArray[np.intp]) -> Runs:
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
        _wide(inputs[starts]),
        _wide(inputs[ends]),
        _wide(answers[starts]),
        _wide(answers[ends]),
        slope,
        straight,
    )


def _rises(answers: NDArray[Any]) -> NDArray[np.int64]:
    """By how much each answer exceeds the one before; of texts, whether it is another."""
    if answers.dtype == object or answers.dtype.kind == "V":
        changes: NDArray[np.bool_] = answers[1:] != answers[:-1]
        return changes.astype(np.int64)
    rises: NDArray[np.int64] = np.diff(answers.astype(np.uint64)).view(np.int64)
    return rises


def _wide(column: NDArray[Any]) -> NDArray[Any]:
    """Patterns as 64-bit words; texts, and numbers for patterns of 128 bits, as objects."""
    if column.dtype == object:
        return column
    if column.dtype.kind == "V":
        numbers = [int.from_bytes(one.tobytes(), "little") for one in column]
        return np.array(numbers, object)
    return column.astype(np.uint64)


def _go_on(end: Runs, start: Runs) -> bool:
    if end.last.dtype == object:
        return False
    return int(end.last[0]) + 1 == int(start.first[0])


def _merged(end: Runs, start: Runs) -> Runs:
    """Two runs that meet, as one."""
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


def _concatenated(parts: list[Runs], total: int) -> Runs:
    columns = zip(*(part.columns for part in parts), strict=True)
    joined = Runs(total, *map(np.concatenate, columns))
    return joined.at(_kept(joined.first.size))


def _kept(rows: int) -> Any:
    """Which of so many runs are kept: the first, and the last of all."""
    if rows <= KEPT_RUNS:
        return slice(None)
    return np.append(np.arange(KEPT_RUNS), rows - 1)
