"""Grades the answers to rising inputs by the steps of a staircase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expect_by_staircase import locate_steps
from oracles.reference.staircase import Staircase
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    NOT_RECOMMENDED,
    Grades,
    allowed_by_constant,
)

Compared = tuple[NDArray[np.bool_], NDArray[np.uint8]]
"""For each input, whether the answer is outside its step, and the index of the step's branch."""
CompareWithSteps = Callable[[Staircase, NDArray[Any], NDArray[Any]], Compared]


def compare_with_steps(stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]) -> Compared:
    """Return whether each answer is outside the step of its input, and the index of its branch.

    The inputs rise. An answer with a bit beyond its format is outside even where anything is
    allowed.
    """
    steps, periods = locate_steps(stairs, inputs)
    mask = np.uint64(stairs.ruling.target.mask)
    codes = answers.astype(np.uint64)
    outside = np.ones(codes.shape, bool)
    for low, high, rise in (("low", "high", "rise"), ("other_low", "other_high", "other_rise")):
        span = stairs.column(high) - stairs.column(low)
        lifted = stairs.column(low)[steps] + periods * stairs.column(rise)[steps]
        outside &= ((codes - lifted) & mask) > span[steps]
    outside |= codes > mask
    return outside, stairs.column("branch_index")[steps]


def grade_by_staircase(
    stairs: Staircase,
    inputs: NDArray[Any],
    answers: NDArray[Any],
    compare: CompareWithSteps = compare_with_steps,
) -> tuple[Grades, NDArray[np.uint8]]:
    """Return the grade of each answer, and the index of the branch that takes each input.

    The inputs rise. ``compare`` compares the answers with the steps.
    """
    outside, branch_indices = compare(stairs, inputs, answers)
    grades = np.where(outside, np.uint8(NOT_ALLOWED), np.uint8(ALLOWED))
    for index in stairs.ruling.refused_branches:
        grades[branch_indices == index] = NOT_ALLOWED
    for index, branch in enumerate(stairs.ruling.branches):
        # A step holds only what is recommended; the rule itself may allow more.
        if branch.recommended and (here := outside & (branch_indices == index)).any():
            here &= allowed_by_constant(stairs.ruling.target, branch.outcome, answers)
            grades[here] = NOT_RECOMMENDED
    return grades, branch_indices
