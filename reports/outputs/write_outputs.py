"""Writes a report as Markdown, CSV or JUnit XML, each file completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from reports.findings.report import Report
from reports.outputs.cases_csv import cases_csv
from reports.outputs.junit import junit
from reports.outputs.summary_md import summary_md
from reports.run_store.storage import file_to_write

RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "summary.md": summary_md,
    "cases.csv": cases_csv,
    "junit.xml": junit,
}
"""The function that renders each output, by the usual name of its file."""


def write_output(report: Report, output: str, file: str | os.PathLike[str]) -> None:
    """Write one output of a report to a file; an existing file is replaced as a whole."""
    folder, name = file_to_write(os.fspath(file))
    text = RENDERERS[output](report)
    folder.write(name, text.encode(), "the file is unchanged; give another name or folder")
