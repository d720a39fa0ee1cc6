"""Writes the HTML report into a folder: all of it, or nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.diff.verdicts import VERDICTS, WRONG
from reports.findings.changes import CHANGES
from reports.findings.report import Report, read_report
from reports.findings.verdict_signs import CHANGE_SIGNS, SIGNS_AND_MEANINGS, percentage
from reports.html.behaviors import behaviors_by_family
from reports.html.case_details import case_details
from reports.html.findings import SIGNS, finding_pages
from reports.html.front_page import front_page
from reports.html.layouts import layout_checks
from reports.html.open_points import open_points
from reports.html.page_data import data_file, index_data, open_answers_data, version_page
from reports.html.rules_page import (
    cited_lines,
    rule_row_file,
    rules_page_file,
    rules_pages,
)
from reports.html.trend import trends
from reports.run_store.storage import UNFINISHED
from specs.coverage import by_kind
from specs.errors import CastigateError
from specs.loader import documents
from specs.plain_text import plain_text

STATIC = Path(__file__).with_name("static")
FIELD_NAMES = {3: ("sign", "exponent", "mantissa"), 2: ("sign", "rest"), 1: ("rest",)}
"""The fields of a pattern by how many it has."""
OPERATIONS = ("cast", "call", "bitcast")
"""The operations of documents; each has a page of its own."""
MARK = "castigate-report"
"""An empty file that marks a folder as a report, which may be replaced."""


def write_site(runs: Sequence[str], out: Path) -> Report:
    """Write the report of some runs, oldest first, and replace an older report in the folder."""
    folder = check_output_folder(out)
    report = read_report(runs)
    temporary = folder.with_name(f".{folder.name}.{token_hex(8)}{UNFINISHED}")
    try:
        temporary.mkdir(parents=True)
        try:
            _write_files(report, temporary)
            _replace(folder, temporary)
        finally:
            rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise CastigateError(
            f"report cannot be written to {out}: {error.strerror}; give another --out"
        ) from None
    return report


def check_output_folder(out: Path) -> Path:
    """Return the real path of a report's folder, or raise an error if it holds anything else."""
    if re.match(r"\w+:/", str(out)):
        raise CastigateError(
            f"report folder {out} is a URL; give a folder on this machine as --out"
        )
    folder = Path(os.path.realpath(out))
    try:
        if folder.exists() and not folder.is_dir():
            raise CastigateError(f"report folder {out} is a file; give a folder as --out")
        names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise CastigateError(
            f"report folder {out} cannot be read: {error.strerror}; give another --out"
        ) from None
    if names and MARK not in names:
        raise CastigateError(
            f"report folder {out} holds other files (`{names[0]}`) and is not a report; "
            "give a new folder or an empty one as --out"
        )
    return folder


def _replace(folder: Path, new: Path) -> None:
    """Move a finished report to a folder that is missing, empty, or an older report."""
    if not (folder / MARK).exists():
        new.replace(folder)
        return
    old = new.with_name(f"{new.name}.old")
    folder.replace(old)
    try:
        new.replace(folder)
    except OSError:
        old.replace(folder)
        raise
    rmtree(old, ignore_errors=True)


def _write_files(report: Report, folder: Path) -> None:
    for name, text in _pages(report):
        (folder / name).write_text(plain_text(text), encoding="utf-8", newline="\n")
    (folder / "static").mkdir()
    for file in sorted(STATIC.iterdir()):
        (folder / "static" / file.name).write_bytes(file.read_bytes())
    (folder / "data").mkdir()
    (folder / "data" / "index.js").write_bytes(data_file("index", index_data(report)))
    (folder / "data" / "open.js").write_bytes(data_file("open", open_answers_data(report)))
    for name, data in case_details(report):
        (folder / "data" / f"{name}.js").write_bytes(data_file(name, data))
    (folder / MARK).touch()


def _pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page."""
    environment = Environment(
        loader=PackageLoader("reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "report": report,
        "percentage": percentage,
        "verdicts": VERDICTS,
        "signs_and_meanings": SIGNS_AND_MEANINGS,
        "change_kinds": CHANGES,
        "change_signs": CHANGE_SIGNS,
        "by_kind": by_kind,
        "rule_row_file": rule_row_file,
        "rules_page_file": rules_page_file,
        "cited_lines": cited_lines,
        "reported": {document for document, _ in report.cases},
        "field_names": FIELD_NAMES,
        "finding_kinds": SIGNS,
    }

    def page(template: str, **variables: Any) -> str:
        return environment.get_template(template).render(**variables)

    yield "index.html", page("index.html", **front_page(report))
    yield "behaviors.html", page("behaviors.html", rows=behaviors_by_family(report))
    yield "layouts.html", page("layouts.html", groups=list(layout_checks(report)))
    yield "trend.html", page("trend.html", trends=trends(report), wrong_verdicts=WRONG)
    yield "open.html", page("open.html", points=list(open_points(report)))
    for name in ("cases.html", "case.html", "pair.html"):
        yield name, page(name)
    for operation in OPERATIONS:
        yield f"{operation}s.html", page("use.html", operation=operation)
    for file, variables in finding_pages(report):
        yield file, page("finding.html", **variables)
    for each in rules_pages(report):
        yield rules_page_file(each.document.name), page("page.html", page=each)
    for version in report.cases:
        document, number = version
        yield (
            version_page(version),
            page(
                "document.html",
                document=document,
                version=number,
                title=documents()[document].entry.title,
                cases=len(report.cases[version]),
            ),
        )
