"""Writes a report as Markdown, CSV or JUnit XML, each file completely or not at all."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from io import StringIO

from reports.findings.cells import Cell
from reports.findings.report import Report
from reports.outputs.junit import junit
from reports.outputs.summary_md import summary_md
from reports.problems import WrongEnd, WrongTensor
from reports.run_store.storage import file_to_write
from specs.plain_text import escape_formula

COLUMNS = (
    "backend", "version", "case", "document", "document_version", "source", "target", "mode",
    "verdict", "inputs", "open", "wrong", "rules", "smallest", "answer", "allowed", "message",
)  # fmt: skip


def cases_csv(report: Report) -> str:
    """Return a report's cells as CSV, a row each, in the order of the run."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(COLUMNS)
    versions = report.record.versions
    for cell in report.cells.values():
        row = (cell.backend, versions[cell.backend], *_values(cell))
        writer.writerow([escape_formula(each) if isinstance(each, str) else each for each in row])
    return text.getvalue()


def _values(cell: Cell) -> Iterator[object]:
    """Yield a cell's values for all of ``COLUMNS`` but the first two."""
    yield from (cell.case, cell.document, cell.version, cell.source, cell.target, cell.mode)
    yield from (cell.verdict, cell.inputs, cell.open, cell.wrong)
    yield " ".join(dict.fromkeys(broken.rule for broken in cell.broken))
    yield from _example(cell)
    yield cell.message


def _example(cell: Cell) -> tuple[object, object, str | None]:
    """Return the simplest failing input, its answer, and what is allowed; None if there is none.

    Of tensors and chains, input and answer are in words.
    """
    first = cell.broken[0] if cell.broken else None
    if first is not None and first.smallest is not None:
        return first.smallest, first.answer, " or ".join(first.allowed)
    for problem in cell.problems:
        if isinstance(problem, WrongTensor | WrongEnd):
            return problem.given, problem.got, " or ".join(problem.allowed)
    return None, None, " or ".join(first.allowed) if first else None


RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "summary.md": summary_md,
    "cases.csv": cases_csv,
    "junit.xml": junit,
}
"""The function that renders each output, by the usual name of its file."""


def write_output(report: Report, output: str, file: str | os.PathLike[str]) -> None:
    """Write a report to a file in the form ``output``, a key of ``RENDERERS``.

    An existing file is replaced as a whole. Raise CastigateError if it cannot be written.
    """
    folder, name = file_to_write(os.fspath(file))
    text = RENDERERS[output](report)
    folder.write(name, text.encode(), "the file is unchanged; give another name or folder")
