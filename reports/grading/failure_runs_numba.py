"""``failure_runs.gather`` compiled by numba, which walks the answers once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from reports.grading.failure_runs import FACTORS, SHIFTS, Runs, capped

SINGLY = 32
"""Elements that are compared one by one before blocks are: many runs are short."""
BLOCK = 1024
"""Elements of a block, which is compared as a whole."""


def gather(
    inputs: NDArray[Any], answers: NDArray[Any], groups: NDArray[np.uint8]
) -> Iterator[tuple[int, Runs]]:
    """Yield each group but 0 with its runs, from patterns of at most 64 bits in rising order.

    ``groups`` has the group of each input.
    """
    total = _count(inputs, groups)
    columns = (
        *(np.empty(total, np.uint64) for _ in range(4)),
        np.empty(total, np.int64),
        np.empty(total, np.bool_),
    )
    group_of_run = np.empty(total, np.uint8)
    checksums = np.empty(total, np.uint64)
    _fill(inputs, answers, groups, columns, group_of_run, checksums)
    runs = Runs(total, *columns)
    for group in np.unique(group_of_run).tolist():
        where = np.flatnonzero(group_of_run == group)
        yield group, capped(runs, where, int(checksums[where].sum(dtype=np.uint64)))


def checksum_of_row(first: int, count: int, answer: int) -> int:
    """Return the checksum of ``count`` inputs from ``first`` on that share an answer."""
    return int(_checksum_of_row(np.uint64(first), count, np.uint64(answer)))


@numba.njit(cache=True, nogil=True)
def differs(array: Any, value: Any) -> Any:
    """Return whether any element of a one-dimensional array of integers differs from a value."""
    width = array.dtype.type
    wrong_bits = width(0)
    for at in range(array.size):
        wrong_bits = width(wrong_bits | (array[at] ^ value))
    return wrong_bits != 0


@numba.njit(cache=True, nogil=True)
def _first_other(column: Any, at: Any) -> Any:
    """Return the index of the first element after ``at`` that differs from the one there.

    It is the size of the column if none does.
    """
    value, singly = column[at], min(column.size, at + SINGLY)
    while at < singly and column[at] == value:
        at += 1
    if at < singly:
        return at
    while at + BLOCK <= column.size and not differs(column[at : at + BLOCK], value):
        at += BLOCK
    while at < column.size and column[at] == value:
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _end(inputs: Any, groups: Any, start: Any) -> Any:
    """Return the index after the last input of the run that begins at ``start``."""
    end = _first_other(groups, start)
    distance = np.uint64(inputs[start]) - np.uint64(start)
    if np.uint64(inputs[end - 1]) - np.uint64(end - 1) == distance:
        # The inputs rise: if one lies as far ahead as its index, so do all before it.
        return end
    at = start + 1
    while np.uint64(inputs[at]) - np.uint64(at) == distance:
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _count(inputs: Any, groups: Any) -> Any:
    """Return how many runs all groups but 0 have."""
    total, at = 0, 0
    while at < groups.size:
        if groups[at] == 0:
            at = _first_other(groups, at)
        else:
            at = _end(inputs, groups, at)
            total += 1
    return total


@numba.njit(cache=True, nogil=True)
def _fill(
    inputs: Any, answers: Any, groups: Any, columns: Any, group_of_run: Any, checksums: Any
) -> None:
    """Write a row of each column for each run; inputs of group 0 are in no run.

    The columns are ``columns``, ``group_of_run`` and ``checksums``, in the order of inputs.
    """
    first, last, answer, last_answer, slope, straight = columns
    row, at = 0, 0
    while at < groups.size:
        if groups[at] == 0:
            at = _first_other(groups, at)
            continue
        end = _end(inputs, groups, at)
        first[row], last[row], group_of_run[row] = inputs[at], inputs[end - 1], groups[at]
        answer[row], last_answer[row] = answers[at], answers[end - 1]
        rise = np.int64(0)
        if end > at + 1:
            rise = _rise(answers, at + 1)
        inside = at + 1
        if rise == 0:
            inside = _first_other(answers[:end], at)
        while inside < end and _rise(answers, inside) == rise:
            inside += 1
        slope[row], straight[row] = rise, inside >= end
        checksums[row] = _checksum(inputs[at:end], answers[at:end])
        row, at = row + 1, end


@numba.njit(cache=True, nogil=True)
def _checksum(inputs: Any, answers: Any) -> Any:
    """Return the sum of the hashes of all inputs, each with its answer, modulo 2**64."""
    total = np.uint64(0)
    for at in range(inputs.size):
        total += _mixed(_mixed(np.uint64(inputs[at])) ^ np.uint64(answers[at]))
    return total


@numba.njit(cache=True, nogil=True)
def _checksum_of_row(first: Any, count: Any, answer: Any) -> Any:
    total = np.uint64(0)
    for at in range(count):
        total += _mixed(_mixed(first + np.uint64(at)) ^ answer)
    return total


@numba.njit(cache=True, nogil=True)
def _rise(answers: Any, at: Any) -> Any:
    return np.int64(np.uint64(answers[at]) - np.uint64(answers[at - 1]))


@numba.njit(cache=True, nogil=True)
def _mixed(word: Any) -> Any:
    """Map a 64-bit word to a word one to one, by the finalizer of splitmix64."""
    word = (word ^ word >> np.uint64(SHIFTS[0])) * np.uint64(FACTORS[0])
    word = (word ^ word >> np.uint64(SHIFTS[1])) * np.uint64(FACTORS[1])
    return word ^ word >> np.uint64(SHIFTS[2])
