"""The functions that compare a chunk of a sweep, in numpy or numba, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from reports.grading import chunk_check, failure_runs, staircase_grades
from reports.grading.chunk_check import ChunkCheck, Moving
from reports.grading.chunk_table import Table
from reports.grading.failure_runs import Gather
from reports.grading.staircase_grades import CompareWithSteps


@dataclass(frozen=True)
class ChunkComparison:
    """The functions that check a chunk as a whole, compare its answers, and gather runs.

    ``check_of`` returns the check against a table. ``checksum_of_row`` is a ``ChecksumOfRow``.
    """

    check_of: Callable[[Table], ChunkCheck]
    is_uniform: Callable[[NDArray[Any], Moving, int], bool]
    """Whether all answers are equal; adds a step to inputs in place, as a ``ChunkCheck`` does."""
    exceed: Callable[[NDArray[Any], int], bool]
    """Whether any answer of an array (at least one) has a bit beyond a format's mask."""
    compare_with_steps: CompareWithSteps
    gather: Gather
    checksum_of_row: Callable[[int, int, int], int]


@cache
def chunk_comparison(compiled: bool) -> ChunkComparison:
    """Return the functions compiled by numba if ``compiled`` is true, otherwise numpy's."""
    if not compiled:
        return ChunkComparison(
            chunk_check.check_of,
            chunk_check.is_uniform,
            chunk_check.exceed,
            staircase_grades.compare_with_steps,
            failure_runs.gather,
            failure_runs.checksum_of_row,
        )
    from reports.grading import chunk_check_numba, failure_runs_numba, staircase_grades_numba

    return ChunkComparison(
        chunk_check_numba.check_of,
        chunk_check_numba.is_uniform,
        chunk_check_numba.exceed,
        staircase_grades_numba.compare_with_steps,
        failure_runs_numba.gather,
        failure_runs_numba.checksum_of_row,
    )


def fastest_comparison() -> ChunkComparison:
    """Return the compiled functions where numba is installed, else numpy's."""
    return chunk_comparison(find_spec("numba") is not None)
