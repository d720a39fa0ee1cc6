"""Writes a report's other forms into files, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from reports.findings.report import Report
from reports.outputs.cases_csv import cases_csv
from reports.outputs.junit import junit
from reports.outputs.summary_md import summary_md
from reports.run_store.storage import place_of

FORMS: Mapping[str, Callable[[Report], str]] = {
    "summary.md": summary_md,
    "cases.csv": cases_csv,
    "junit.xml": junit,
}
"""Each form by the name of the file that usually holds it."""


def write_output(report: Report, form: str, file: Path) -> None:
    """Write one form of a report in the place of a file that may be there."""
    text = FORMS[form](report)
    place = place_of(str(file.parent))
    place.write(file.name, text.encode(), "what was there before is kept")
