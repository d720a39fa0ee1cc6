"""A backend's answers to a case in one row, with which all further answers are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from conformance.judging.answers import Answered, Crashed, NoAnswer, Raised, one_line
from conformance.judging.backend_judge import BackendJudge
from conformance.judging.quick_inputs import inputs_of
from oracles.protocol import Bits
from oracles.reference.expectations import Expected, has_branch
from reports.diff.allowed_answers import grade_answers
from reports.diff.grades import ALLOWED
from reports.diff.judgement import Fault, Judgement
from reports.diff.verdicts import Verdict
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.loader import document_named
from specs.operations import is_bitcast
from specs.outcomes import Anything, Nan
from specs.ruling import Branch, Ruling, ruling

NOTHING_TO_ASK = "every document rejects this pair"


@dataclass(frozen=True)
class NoRow:
    """Why a backend does not answer a case in one row."""

    reason: str


@dataclass(frozen=True)
class Row:
    """Inputs of a case, and the answers to them in one row."""

    case: Case
    rules: Ruling
    inputs: Bits
    expected: Expected
    answers: Bits

    def at(self, indices: NDArray[np.intp]) -> Row:
        """The same for some of the inputs."""
        return Row(
            self.case,
            self.rules,
            self.inputs[indices],
            self.expected.at(indices),
            self.answers[indices],
        )

    @cached_property
    def is_open(self) -> NDArray[np.bool_]:
        """Which inputs the document gives no pattern for: it allows any answer, or any NaN."""
        without_pattern = [
            index
            for index, branch in enumerate(self.rules.branches)
            if isinstance(branch.outcome, Anything | Nan)
        ]
        return has_branch(self.expected.branch_indices, without_pattern)

    def branch(self, index: int) -> Branch:
        """The rule's branch that takes an input."""
        return self.rules.branches[int(self.expected.branch_indices[index])]

    def changed(
        self, picked: NDArray[np.intp], answers: Bits
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Find where other answers to picked inputs differ, and tell if the document forbids that.

        An open input may be answered differently, but only with what is allowed.
        """
        moved = np.flatnonzero(answers != self.answers[picked])
        if not moved.size:
            return moved, np.zeros(0, bool)
        there = picked[moved]
        grades = grade_answers(
            self.rules, self.inputs[there], self.expected.at(there), answers[moved]
        )
        return moved, ~self.is_open[there] | (grades != ALLOWED)


def candidates(judge: BackendJudge, cases: Sequence[Case], *, calls: bool) -> list[Case]:
    """The cases of a pair that expect answers: claimed ones first, newest versions first."""
    order = {name: index for index, name in enumerate(dict.fromkeys(c.document for c in cases))}

    def rank(case: Case) -> tuple[bool, bool, int, int]:
        versions = list(document_named(case.document).entry.versions)
        claimed = judge.claimed(case)
        return (
            not claimed,
            ruling(case).is_open,
            order[case.document],
            -versions.index(case.version),
        )

    asked = [
        case
        for case in cases
        if not is_bitcast(case)
        and case.example is None
        and (receiver_of(case.document) is not None) == calls
        and not ruling(case).is_rejection
    ]
    return sorted(asked, key=rank)


def row_of(judge: BackendJudge, case: Case) -> Row | NoRow:
    """The answers to all inputs of a case; if they raise, to those that must be answered."""
    for dtype in (case.source, case.target):
        if dtype in judge.broken:
            return NoRow(f"the adapter, not the framework: {dtype}: {judge.broken[dtype]}")
    rules, settings = ruling(case), judge.settings
    inputs = inputs_of(case, rules, settings.seed, settings.max_examples)
    expected = judge.expectations.of(rules, inputs)
    is_specified = ~has_branch(expected.branch_indices, rules.open_branches)
    answer = judge.answer_to(case, rules, inputs)
    if isinstance(answer, Raised) and is_specified.any() and not is_specified.all():
        inputs, expected = inputs[is_specified], expected.at(is_specified)
        answer = judge.ask(case, rules, inputs)
    if isinstance(answer, Answered):
        return Row(case, rules, inputs, expected, answer.value)
    return NoRow(_reason(answer))


def _reason(missing: NoAnswer) -> str:
    if isinstance(missing, Crashed):
        return f"its process ends: {one_line(missing.death)}"
    return missing.text


def first_row(judge: BackendJudge, cases: Sequence[Case]) -> Row | NoRow:
    """The row of the first case that the backend answers; else why the first is not answered."""
    first_reason: NoRow | None = None
    for case in cases:
        found = row_of(judge, case)
        if isinstance(found, Row):
            return found
        first_reason = first_reason or found
    return first_reason or NoRow(NOTHING_TO_ASK)


def rows(judge: BackendJudge, cases: Sequence[Case]) -> Iterator[Row]:
    """The rows of all cases that the backend answers."""
    for case in cases:
        found = row_of(judge, case)
        if isinstance(found, Row):
            yield found


def judgement_of(
    judge: BackendJudge,
    case: Case,
    verdict: Verdict,
    message: str,
    row: Row | None,
    *faults: Fault,
) -> Judgement:
    """A judgement on a pair, under the case that was asked; without a row nothing was answered."""
    return Judgement(
        case.id,
        judge.backend.name,
        verdict,
        message,
        inputs=row.inputs.size if row else 0,
        open_inputs=int(np.count_nonzero(row.is_open)) if row else 0,
        faults=faults,
    )
