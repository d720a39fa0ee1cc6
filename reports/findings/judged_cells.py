"""Turns judgements into cells without storing them in tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.findings.cells import Cell, Divergence, FailingInputs
from reports.judgement import Judgement
from reports.problems import Note, WrongValues
from reports.run_store.tables import case_row, input_counts
from specs.cases import Case


def cell_of(case: Case, judgement: Judgement, digests: Sequence[str]) -> Cell:
    """Return a judgement on a case as a cell of a run's tables, without segments and shown runs.

    ``digests`` are those of its inputs and answers, or empty if they are not stored.
    """
    row = case_row(judgement.backend, case, judgement)
    broken = tuple(_broken_rules(judgement, row.pop("broken")))
    asked, answers = digests or (None, None)
    return Cell(
        **row | {"asked": asked, "answers": answers},
        broken=broken,
        check=judgement.check,
        problems=tuple(
            each for each in judgement.problems if not isinstance(each, WrongValues | Note)
        ),
    )


def _broken_rules(judgement: Judgement, rows: Sequence[dict[str, object]]) -> Iterator[Divergence]:
    for part, row in zip(judgement.broken_rules, rows, strict=True):
        failing = None
        if isinstance(part, WrongValues):
            listed = part.runs.listed
            failing = FailingInputs(part.count, listed, input_counts(listed))
        row["allowed"] = tuple(part.allowed) if isinstance(part, WrongValues) else ()
        yield Divergence(**row, segments=(), shown_runs=(), failing=failing)  # type: ignore[arg-type]
