"""``cases.csv``: a row per backend and case, for spreadsheets and scripts."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from reports.findings.cells import Cell
from reports.findings.report import Report

COLUMNS = (
    "backend", "version", "case", "document", "document_version", "source", "target", "mode",
    "verdict", "inputs", "open", "wrong", "rules", "smallest", "answer", "allowed", "message",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would compute where a text begins with it."""


def cases_csv(report: Report) -> str:
    """The whole table, in the order of the run."""
    made = StringIO()
    rows = csv.writer(made, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    rows.writerow(COLUMNS)
    rows.writerows(_rows(report))
    return made.getvalue()


def _rows(report: Report) -> Iterator[list[object]]:
    versions = {backend.name: backend.version for backend in report.record.backends}
    for cell in report.cells.values():
        yield [_plain(each) for each in (cell.backend, versions[cell.backend], *_told(cell))]


def _told(cell: Cell) -> Iterator[object]:
    yield from (cell.case, cell.document, cell.version, cell.source, cell.target, cell.mode)
    yield from (cell.verdict, cell.inputs, cell.open, cell.wrong)
    yield " ".join(dict.fromkeys(broken.rule for broken in cell.broken))
    worst = cell.broken[0] if cell.broken else None
    yield worst.smallest if worst else None
    yield worst.answer if worst else None
    yield " or ".join(worst.allowed) if worst else None
    yield cell.message


def _plain(value: object) -> object:
    """A text that nobody takes for a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
