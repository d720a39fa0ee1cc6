"""The numpy form of what a sweep does to every chunk, and numba's, which gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import chunk_check, staircase_grades
from oracles.reference.chunk_table import Table
from oracles.reference.staircase import Staircase
from reports.diff import failure_runs
from reports.diff.failure_runs import Runs

Codes = NDArray[Any]
Grades = NDArray[np.uint8]


@dataclass(frozen=True)
class Forms:
    """How a chunk is checked, graded, and gathered into runs."""

    name: str
    all_right: Callable[[Table, int, Codes], bool]
    grades: Callable[[Staircase, Codes, Codes], Grades]
    gather: Callable[[Codes, Codes, Grades], Iterator[tuple[int, Runs]]]


@cache
def forms(fast: bool) -> Forms:
    """The forms compiled by numba, or numpy's."""
    if not fast:
        return Forms("numpy", chunk_check.all_right, staircase_grades.grades, failure_runs.gather)
    from oracles.reference import chunk_check_numba, staircase_grades_numba
    from reports.diff import failure_runs_numba

    return Forms(
        "numba",
        chunk_check_numba.all_right,
        staircase_grades_numba.grades,
        failure_runs_numba.gather,
    )


def fastest() -> Forms:
    """The fastest forms that are installed."""
    return forms(find_spec("numba") is not None)
