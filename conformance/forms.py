"""The numpy form of what a sweep does to every chunk, and numba's, which gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import checking, grading
from oracles.reference.staircase import Staircase
from oracles.reference.table import Table
from reports import runs
from reports.runs import Runs

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
        return Forms("numpy", checking.all_right, grading.grades, runs.gather)
    from oracles.reference import checking_fast, grading_fast
    from reports import runs_fast

    return Forms("numba", checking_fast.all_right, grading_fast.grades, runs_fast.gather)


def fastest() -> Forms:
    """The fastest forms that are installed."""
    return forms(find_spec("numba") is not None)
