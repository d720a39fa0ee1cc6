"""The same gathering of runs compiled by numba: one walk over the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from reports.diff.failure_runs import Runs, capped


def gather(
    inputs: NDArray[Any], answers: NDArray[Any], groups: NDArray[np.uint8]
) -> Iterator[tuple[int, Runs]]:
    """The runs of each group but 0, from patterns in rising order."""
    total = _count(inputs, groups)
    columns = (
        *(np.empty(total, np.uint64) for _ in range(4)),
        np.empty(total, np.int64),
        np.empty(total, np.bool_),
    )
    owners = np.empty(total, np.uint8)
    _walk(inputs, answers, groups, columns, owners)
    runs = Runs(total, *columns)
    for group in np.unique(owners).tolist():
        yield group, capped(runs, np.flatnonzero(owners == group))


@numba.njit(cache=True, nogil=True)
def _end(inputs: Any, groups: Any, start: Any) -> Any:
    """Where the run that begins here has ended."""
    group, distance = groups[start], np.uint64(inputs[start]) - np.uint64(start)
    place = start + 1
    while (
        place < groups.size
        and groups[place] == group
        and np.uint64(inputs[place]) - np.uint64(place) == distance
    ):
        place += 1
    return place


@numba.njit(cache=True, nogil=True)
def _count(inputs: Any, groups: Any) -> Any:
    total, place = 0, 0
    while place < groups.size:
        if groups[place] == 0:
            place += 1
        else:
            place = _end(inputs, groups, place)
            total += 1
    return total


@numba.njit(cache=True, nogil=True)
def _walk(inputs: Any, answers: Any, groups: Any, columns: Any, owners: Any) -> None:
    first, last, answer, last_answer, slope, straight = columns
    row, place = 0, 0
    while place < groups.size:
        if groups[place] == 0:
            place += 1
            continue
        end = _end(inputs, groups, place)
        first[row], last[row], owners[row] = inputs[place], inputs[end - 1], groups[place]
        answer[row], last_answer[row] = answers[place], answers[end - 1]
        rise = np.int64(0)
        if end > place + 1:
            rise = _rise(answers, place + 1)
        inside = place + 1
        while inside < end and _rise(answers, inside) == rise:
            inside += 1
        slope[row], straight[row] = rise, inside >= end
        row, place = row + 1, end


@numba.njit(cache=True, nogil=True)
def _rise(answers: Any, place: Any) -> Any:
    """By how much an answer exceeds the one before."""
    return np.int64(np.uint64(answers[place]) - np.uint64(answers[place - 1]))
