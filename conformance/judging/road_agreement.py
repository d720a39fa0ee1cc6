"""Two roads of one framework, asked the same: eager and compiled, at run time and folded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.judging.meeting import Meeting
from conformance.judging.row_answers import (
    NOTHING_TO_ASK,
    NoRowError,
    Row,
    candidates,
    judgement_of,
    row_of,
)
from oracles.registry import framework_of
from reports.counterexample.drawing import brief, pattern
from reports.diff.divergences import datum_of, simplest
from reports.diff.judgement import Fault, Judgement, Verdict
from specs.cases import Case


def first_of(meetings: Sequence[Meeting], meeting: Meeting) -> Meeting | None:
    """The road that another is compared with: the first that was named of its framework."""
    name = _framework(meeting)
    first = next(each for each in meetings if _framework(each) == name)
    return None if first is meeting else first


def _framework(meeting: Meeting) -> str:
    """What the names of a framework's roads have in common."""
    return framework_of(meeting.backend.name)


class Variants:
    """Compares two roads on one pair."""

    def __init__(self, first: Meeting, second: Meeting, cases: Sequence[Case]) -> None:
        self.first = first
        self.second = second
        self.cases = cases

    def judge(self) -> tuple[Case, Judgement]:
        """The verdict on the second road, under the first case that both answer."""
        try:
            row, other = self._rows()
        except NoRowError as reason:
            return self.cases[0], self._judgement(self.cases[0], "unsupported", str(reason))
        moved, is_forbidden = row.changed(np.arange(row.inputs.size), other.answers)
        if is_forbidden.any():
            worst, said = self._told(row, other, moved[is_forbidden])
            branch = row.branch(worst)
            fault = Fault("answer", branch.rule, branch.clause, branch.level, said)
            verdict = self.second.graded(row.case, {fault.level}, is_open=False)
            return row.case, self._judgement(row.case, verdict, said, row, fault)
        if moved.size:
            _, said = self._told(row, other, moved)
            return row.case, self._judgement(
                row.case, "open", f"where the document is open: {said}", row
            )
        return row.case, self._judgement(row.case, "conforms", "", row)

    def _rows(self) -> tuple[Row, Row]:
        reasons = []
        for case in candidates(self.second, self.cases, calls=False):
            try:
                return _alike(row_of(self.first, case), row_of(self.second, case))
            except NoRowError as reason:
                reasons.append(str(reason))
        raise NoRowError(reasons[0] if reasons else NOTHING_TO_ASK)

    def _told(self, row: Row, other: Row, moved: NDArray[np.intp]) -> tuple[int, str]:
        """The simplest input that differs, and what is said of all of them."""
        source, target = row.rules.source, row.rules.target
        differs = np.zeros(row.inputs.size, bool)
        differs[moved] = True
        worst = simplest(source, row.inputs, differs)
        given = brief(source, datum_of(row.inputs[worst]))
        there, here = (pattern(target, datum_of(each.answers[worst])) for each in (row, other))
        return worst, (
            f"{moved.size} of {row.inputs.size} inputs answer otherwise than on"
            f" {self.first.backend.name}, the simplest {given}: {there} there, {here} here"
        )

    def _judgement(
        self, case: Case, verdict: Verdict, message: str, row: Row | None = None, *faults: Fault
    ) -> Judgement:
        return judgement_of(self.second, case, verdict, message, row, *faults)


def _alike(row: Row, other: Row) -> tuple[Row, Row]:
    """Both on the same inputs: where one raises on the open ones, neither has these."""
    if row.inputs.size == other.inputs.size:
        return row, other
    few, many = sorted((row, other), key=lambda each: each.inputs.size)
    kept = many.at(np.flatnonzero(np.isin(many.inputs, few.inputs)))
    return (row, kept) if few is row else (kept, other)
