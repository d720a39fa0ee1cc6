"""Writes the report: all of it, or nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.diff.judgement import VERDICTS
from reports.findings.changes import CHANGES
from reports.findings.report import Report, read_report
from reports.findings.verdict_signs import CHANGE_SIGNS, MEANINGS, share
from reports.html.behaviors import pair_behaviours
from reports.html.case_details import details
from reports.html.front_page import front
from reports.html.open_points import open_points
from reports.html.page_data import index, packed, page_of
from reports.html.rules_page import cited_lines, pages_of_rules, rule_page, rules_page
from reports.html.trend import NOT_RIGHT, trends
from reports.run_store.storage import UNFINISHED
from specs.coverage import by_kind
from specs.errors import CastigateError
from specs.loader import documents

STATIC = Path(__file__).with_name("static")
MARK = "castigate-report"
"""An empty file by which a folder is known to be a report, which may be replaced."""


def write_site(runs: Sequence[str], out: Path) -> Report:
    """Make the report of runs, the oldest first, in the place of one that is there."""
    where = room_for(out)
    report = read_report(runs)
    temporary = where.with_name(f".{where.name}.{token_hex(8)}{UNFINISHED}")
    try:
        temporary.mkdir(parents=True)
        try:
            _write(report, temporary)
            _put(temporary, where)
        finally:
            rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise CastigateError(f"cannot write {out}: {error.strerror}; give another --out") from None
    return report


def room_for(out: Path) -> Path:
    """Where a report is to be put; nothing that is no report may be overwritten."""
    if re.match(r"\w+:/", str(out)):
        raise CastigateError(f"{out} is no folder of this machine; give one as --out")
    where = Path(os.path.realpath(out))
    try:
        if where.exists() and not where.is_dir():
            raise CastigateError(f"{out} is a file; give a folder as --out")
        names = sorted(each.name for each in where.iterdir()) if where.is_dir() else []
    except OSError as error:
        raise CastigateError(f"cannot read {out}: {error.strerror}; give another --out") from None
    if names and MARK not in names:
        raise CastigateError(
            f"{out} holds files and is no report (`{names[0]}`); "
            "give an empty folder or a new one as --out"
        )
    return where


def _put(new: Path, where: Path) -> None:
    """Let a finished folder take the place of an empty one, or of an older report."""
    if not (where / MARK).exists():
        new.replace(where)
        return
    old = new.with_name(f"{new.name}.old")
    where.replace(old)
    try:
        new.replace(where)
    except OSError:
        old.replace(where)
        raise
    rmtree(old, ignore_errors=True)


def _write(report: Report, folder: Path) -> None:
    for name, text in _pages(report):
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    (folder / "static").mkdir()
    for file in sorted(STATIC.iterdir()):
        (folder / "static" / file.name).write_bytes(file.read_bytes())
    (folder / "data").mkdir()
    (folder / "data" / "index.js").write_bytes(packed("index", index(report)))
    for name, data in details(report):
        (folder / "data" / f"{name}.js").write_bytes(packed(name, data))
    (folder / MARK).touch()


def _pages(report: Report) -> Iterator[tuple[str, str]]:
    """Each page's file and text."""
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
        "share": share,
        "verdicts": VERDICTS,
        "meanings": MEANINGS,
        "change_kinds": CHANGES,
        "change_signs": CHANGE_SIGNS,
        "by_kind": by_kind,
        "rule_page": rule_page,
        "rules_page": rules_page,
        "cited_lines": cited_lines,
        "reported": {document for document, _ in report.cases},
    }

    def page(template: str, **words: Any) -> str:
        return environment.get_template(template).render(**words)

    yield "index.html", page("index.html", **front(report))
    yield "behaviours.html", page("behaviours.html", pairs=pair_behaviours(report))
    yield "trend.html", page("trend.html", trends=trends(report), not_right=NOT_RIGHT)
    yield "open.html", page("open.html", points=list(open_points(report)))
    for name in ("cases.html", "case.html", "pairs.html", "pair.html"):
        yield name, page(name)
    for each in pages_of_rules(report):
        yield rules_page(each.document.name), page("page.html", page=each)
    for version in report.cases:
        document, number = version
        title = documents()[document].entry.title
        yield (
            page_of(version),
            page(
                "document.html",
                document=document,
                version=number,
                title=title,
                cases=len(report.cases[version]),
            ),
        )
