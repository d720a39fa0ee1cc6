"""Two roads of one framework must agree: eager and compiled, at run time and folded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.judging.backend_judge import BackendJudge
from conformance.judging.row_answers import (
    NOTHING_TO_ASK,
    NoRow,
    Row,
    candidates,
    judgement_of,
    row_of,
)
from oracles.registry import first_road
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.diff.divergences import datum_of, index_of_simplest
from reports.diff.judgement import Fault, Judgement
from reports.diff.verdicts import Verdict
from specs.cases import Case


def first_of(judges: Sequence[BackendJudge], judge: BackendJudge) -> BackendJudge | None:
    """The road to compare with: the first of the same framework; None for that road itself."""
    by_name = {each.backend.name: each for each in judges}
    return by_name.get(first_road(by_name, judge.backend.name))


class RoadAgreement:
    """Compares two roads of a framework on one pair."""

    def __init__(self, first: BackendJudge, second: BackendJudge, cases: Sequence[Case]) -> None:
        self.first = first
        self.second = second
        self.cases = cases

    def judge(self) -> tuple[Case, Judgement]:
        """The verdict on the second road, under the first case that both answer."""
        both = self._rows()
        if isinstance(both, NoRow):
            return self.cases[0], self._judgement(self.cases[0], "unsupported", both.reason)
        row, other = both
        moved, is_forbidden = row.changed(np.arange(row.inputs.size), other.answers)
        if is_forbidden.any():
            worst, message = self._described(row, other, moved[is_forbidden])
            branch = row.branch(worst)
            fault = Fault("answer", branch.rule, branch.clause, branch.level, message)
            verdict = self.second.graded(row.case, {fault.level}, is_open=False)
            return row.case, self._judgement(row.case, verdict, message, row, fault)
        if moved.size:
            _, message = self._described(row, other, moved)
            message = f"where the document is open: {message}"
            return row.case, self._judgement(row.case, "open", message, row)
        return row.case, self._judgement(row.case, "conforms", "", row)

    def _rows(self) -> tuple[Row, Row] | NoRow:
        """Both roads' rows of the first case that both answer."""
        first_reason: NoRow | None = None
        for case in candidates(self.second, self.cases, calls=False):
            row = row_of(self.first, case)
            other = row_of(self.second, case) if isinstance(row, Row) else row
            if isinstance(row, Row) and isinstance(other, Row):
                return _on_same_inputs(row, other)
            first_reason = first_reason or (other if isinstance(other, NoRow) else None)
        return first_reason or NoRow(NOTHING_TO_ASK)

    def _described(self, row: Row, other: Row, moved: NDArray[np.intp]) -> tuple[int, str]:
        """The simplest input that differs, and a sentence on all that do."""
        source, target = row.rules.source, row.rules.target
        differs = np.zeros(row.inputs.size, bool)
        differs[moved] = True
        worst = index_of_simplest(source, row.inputs, differs)
        given = datum_with_value(source, datum_of(row.inputs[worst]))
        there, here = (datum_text(target, datum_of(each.answers[worst])) for each in (row, other))
        return worst, (
            f"{moved.size} of {row.inputs.size} inputs answer otherwise than on"
            f" {self.first.backend.name}, the simplest {given}: {there} there, {here} here"
        )

    def _judgement(
        self, case: Case, verdict: Verdict, message: str, row: Row | None = None, *faults: Fault
    ) -> Judgement:
        return judgement_of(self.second, case, verdict, message, row, *faults)


def _on_same_inputs(row: Row, other: Row) -> tuple[Row, Row]:
    """Both rows on the inputs that both answer: one may have raised on the open ones."""
    if row.inputs.size == other.inputs.size:
        return row, other
    few, many = sorted((row, other), key=lambda each: each.inputs.size)
    kept = many.at(np.flatnonzero(np.isin(many.inputs, few.inputs)))
    return (row, kept) if few is row else (kept, other)
