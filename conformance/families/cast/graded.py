"""The answers to a case with their grades, the wrong values among them, and inputs to be refused.

A trap, or an error about one value, refuses a whole tensor. So where a document wants some inputs
refused and the others answered, the former are kept out of every tensor, and a spread of them is
asked one by one, each in a tensor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.judging.asking import Ask
from oracles.backend.replies import Answered, Raised, Unanswered
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from oracles.reference.expectations import Expected, has_branch
from reports.grading.allowed_answers import ALLOWED, NOT_ALLOWED, Grades
from reports.grading.divergences import find_failures, wrong_values
from reports.grading.failure_runs import Gather, gather
from reports.problems import WrongValues
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format


@dataclass(frozen=True)
class GradedAnswers:
    """Inputs in rising order, with the answer to each, its grade and its branch of the rules."""

    inputs: Bits
    answers: Bits
    grades: Grades
    branch_indices: NDArray[np.uint8]

    @property
    def fails(self) -> NDArray[np.bool_]:
        """A mask of the answers that are not allowed."""
        fails: NDArray[np.bool_] = self.grades != ALLOWED
        return fails


@dataclass(frozen=True)
class Followed:
    """The wrong values of a case, each with its simplest input.

    ``inputs`` is how many were graded beyond those of the quick tier, without a last round of leaps
    in which none fails. If ``reaches_ends``, the ``values`` have every failing input of each of
    their stretches.
    """

    values: tuple[tuple[WrongValues, Bits], ...]
    inputs: int
    reaches_ends: bool


def not_followed(rules: Ruling, known: GradedAnswers) -> Followed:
    """Return the wrong values of the ``known`` answers, without further requests."""
    found = wrong_values_of(rules, known, gather) if known.fails.any() else ()
    return Followed(found, 0, reaches_ends=False)


def wrong_values_of(
    rules: Ruling, graded: GradedAnswers, gather_runs: Gather
) -> tuple[tuple[WrongValues, Bits], ...]:
    """Return the wrong values among graded answers, each with its simplest input.

    ``gather_runs`` gathers failing inputs into runs.
    """
    found = find_failures(
        rules, graded.inputs, graded.branch_indices, graded.answers, graded.grades, gather_runs
    )
    return tuple(
        (wrong_values(rules, each), graded.inputs[at : at + 1].copy()) for each, at in found
    )


MOST_ALONE = 320
"""About how many inputs are requested alone; an error costs as much time as a large tensor."""


WIDEST = 32
"""How many stretches, the widest ones, have their ends requested."""


@dataclass(frozen=True)
class RefusedInputs:
    """The inputs of a case that must be refused, in rising order, each with its branch.

    ``stretches`` has one number per input; it is the same for inputs between which none may be
    answered. Beyond a target's range lies one stretch, and between two integers one of fractions.
    """

    inputs: Bits
    branch_indices: NDArray[np.uint8]
    stretches: NDArray[np.intp]

    def spread(self, source: Format) -> RefusedInputs:
        """Choose both ends of each branch, sign and wide stretch, powers of two, and some between.

        There must be inputs. The widest stretches are those beyond the range: their ends are where
        a check of the range may be off by one. Powers of two are chosen of integers: a check that
        misses some bits fails there.
        """
        last = self.inputs.size - 1
        sign = self.inputs >> (8 * self.inputs.dtype.itemsize - 1)
        changes = (np.diff(self.branch_indices) != 0) | (np.diff(sign) != 0)
        begins = np.flatnonzero(changes) + 1
        first = np.concatenate([[0], np.flatnonzero(np.diff(self.stretches)) + 1])
        final = np.concatenate([first[1:] - 1, [last]])
        widest = np.argsort(self.inputs[final] - self.inputs[first], kind="stable")[-WIDEST:]
        powers = np.zeros(0, np.intp)
        if source.kind == "integer":
            magnitudes = np.where(sign == 1, -self.inputs, self.inputs)
            powers = np.flatnonzero(magnitudes & (magnitudes - 1) == 0)
        ends = np.concatenate(
            [[0], begins, begins - 1, [last], first[widest], final[widest], powers]
        )
        even = np.linspace(0, last, min(self.inputs.size, max(2, MOST_ALONE - ends.size)))
        chosen = np.unique(np.concatenate([ends, even.astype(np.intp)]))
        columns = (self.inputs, self.branch_indices, self.stretches)
        return RefusedInputs(*(column[chosen] for column in columns))


def without_refused(rules: Ruling, inputs: Bits, expected: Expected) -> tuple[Bits, RefusedInputs]:
    """Divide inputs into those that can go into one tensor, and those that must be refused.

    ``expected`` is what ``rules`` expect for each input.
    """
    is_refused = has_branch(expected.branch_indices, rules.refused_branches)
    stretches = np.cumsum(~is_refused, dtype=np.intp)[is_refused]
    refused = RefusedInputs(inputs[is_refused], expected.branch_indices[is_refused], stretches)
    return inputs[~is_refused], refused


def ask_alone(case: Case, rules: Ruling, chosen: RefusedInputs) -> Ask[GradedAnswers]:
    """Request inputs one by one; return those that are answered, graded as not allowed.

    Raises ``Unanswered`` if the reply to an input is neither an answer nor an error.
    """
    replies = yield [Cast(case, chosen.inputs[at : at + 1]) for at in range(chosen.inputs.size)]
    answers = np.zeros(chosen.inputs.size, rules.target.storage)
    is_answered = np.zeros(chosen.inputs.size, bool)
    for at, reply in enumerate(replies):
        match reply:
            case Raised():
                continue
            case Answered(answer):
                answers[at], is_answered[at] = answer[0], True
            case missing:
                raise Unanswered(missing)
    return GradedAnswers(
        chosen.inputs[is_answered],
        answers[is_answered],
        np.full(np.count_nonzero(is_answered), NOT_ALLOWED, np.uint8),
        chosen.branch_indices[is_answered],
    )


def both(one: GradedAnswers, other: GradedAnswers) -> GradedAnswers:
    """Join two sets of graded answers, in rising order of the inputs."""
    order = np.argsort(np.concatenate([one.inputs, other.inputs]), kind="stable")

    def joined(name: str) -> NDArray[Any]:
        """Return the column of both, in the order of the inputs."""
        column: NDArray[Any] = np.concatenate([getattr(each, name) for each in (one, other)])
        return column[order]

    return GradedAnswers(*(joined(column.name) for column in fields(GradedAnswers)))
