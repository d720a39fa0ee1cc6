"""The answers to a case with their grades, and the wrong values among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from reports.grading.divergences import find_failures, wrong_values
from reports.grading.failure_runs import Gather, gather
from reports.grading.grades import ALLOWED, Grades
from reports.problems import WrongValues
from specs.branches import Ruling


@dataclass(frozen=True)
class GradedAnswers:
    """Inputs in rising order, with the answer to each, its grade and its branch of the rules."""

    inputs: Bits
    answers: Bits
    grades: Grades
    branch_indices: NDArray[np.uint8]

    @property
    def fails(self) -> NDArray[np.bool_]:
        """Which answers are not allowed."""
        fails: NDArray[np.bool_] = self.grades != ALLOWED
        return fails


@dataclass(frozen=True)
class Followed:
    """The wrong values of a case, each with its smallest input.

    ``inputs`` were asked beyond those of the quick tier. ``reaches_ends``: every failing input
    of each stretch is among them.
    """

    values: tuple[tuple[WrongValues, Bits], ...]
    inputs: int
    reaches_ends: bool


def not_followed(rules: Ruling, known: GradedAnswers) -> Followed:
    """The wrong values of the known answers alone."""
    found = wrong_values_of(rules, known, gather) if known.fails.any() else ()
    return Followed(found, 0, reaches_ends=False)


def wrong_values_of(
    rules: Ruling, graded: GradedAnswers, gather_runs: Gather
) -> tuple[tuple[WrongValues, Bits], ...]:
    """The wrong values among graded answers, each with its smallest input."""
    found = find_failures(
        rules, graded.inputs, graded.branch_indices, graded.answers, graded.grades, gather_runs
    )
    return tuple(
        (wrong_values(rules, each), graded.inputs[at : at + 1].copy()) for each, at in found
    )
