"""Renders the HTML report of runs, and writes it into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from oracles.backend.resource_limits import return_freed_memory
from reports.changes.change import KIND_MEANINGS, BackendChanges
from reports.changes.divergences import CHANGES
from reports.findings.finding_text import extent_words
from reports.findings.report import Report, read_report
from reports.findings.verdict_signs import CHANGE_SIGNS, KIND_SIGNS, SIGNS_AND_MEANINGS, percentage
from reports.html.case_details import case_details
from reports.html.columns import WIDE, columns
from reports.html.document_page import (
    cited_lines,
    document_page_file,
    document_pages,
    rule_row_file,
    version_link,
)
from reports.html.findings import MOST_FINDINGS, SIGNS, finding_page, finding_pages
from reports.html.front_page import front_page
from reports.html.modes import mode_pages
from reports.html.page_data import data_file, index_data, open_answers_data
from reports.html.pages import behaviors_by_family, layout_checks, open_points, trends
from reports.html.replace_report import check_output_folder, replace_report
from reports.judgement import VERDICTS, WRONG, Verdict
from reports.run_store.open_run import open_run
from reports.run_store.store import RunStore
from specs.coverage import by_kind
from specs.loader import documents
from specs.model.vocabulary import operations
from specs.operations import of_family
from specs.plain_text import plain_text

STATIC = Path(__file__).with_name("static")
FIELD_NAMES = {3: ("sign", "exponent", "mantissa"), 2: ("sign", "rest"), 1: ("rest",)}
"""The names of a pattern's fields, by the number of fields."""


@dataclass(frozen=True)
class Page:
    """A page that a caller adds to a report.

    The folder ``templates`` of the package has ``NAME.html``, which shows ``content``. It may have
    ``NAME_front.html``, a paragraph of the front page.
    """

    name: str
    title: str
    package: str
    content: Any


class Mark(NamedTuple):
    """How a page marks a result: the mark, the class of its color, and what it means."""

    mark: str
    color: str
    meaning: str


Pages = Callable[[RunStore], Sequence[Page]]
"""Returns the pages that are added to the report, from its last run."""


def write_site(
    runs: Sequence[str],
    out: str | os.PathLike[str],
    pages: Pages = lambda _: (),
    steps: Sequence[BackendChanges] = (),
) -> Report:
    """Write the report of runs, oldest first, in place of an older report; return what it shows.

    ``pages`` makes further pages from the last run. ``steps`` are what changed for each backend;
    without any, the last two runs are compared. Raise CastigateError if a run cannot be read,
    if the runs are out of order, or if ``out`` holds other files or cannot be written.
    """
    folder = check_output_folder(os.fspath(out))
    # First, so that the answers that these pages compare are dropped before all cells are read.
    added = pages(open_run(runs[-1]))
    return_freed_memory()
    report = read_report(runs, steps)
    replace_report(folder, lambda: _files(report, added))
    return report


def _files(report: Report, added: Sequence[Page]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file of the report."""
    for name, text in _pages(report, added):
        yield name, plain_text(text).encode()
    for file in sorted(STATIC.iterdir()):
        yield f"static/{file.name}", file.read_bytes()
    yield "data/index.js", data_file("index", index_data(report))
    yield "data/open.js", data_file("open", open_answers_data(report))
    for name, data in case_details(report):
        yield f"data/{name}.js", data_file(name, data)


def _present_verdicts(report: Report) -> list[Verdict]:
    """Return the verdicts that a case or a check has in one of the runs; legends explain them."""
    found = {str(each.verdict) for each in (*report.cells.values(), *report.checks)}
    found.update(*(counts for run in report.trend for counts in run.values()))
    return [each for each in VERDICTS if each in found]


def _pages(report: Report, added: Sequence[Page]) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page."""
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(name) for name in ("reports.html", *(each.package for each in added))]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    of_modes = list(mode_pages(report))
    present = {documents()[document].entry.operation for document, _ in report.cases}
    of_pairs = [each for each in operations() if each in present and not of_family(each, "page")]
    in_tables = columns(report)
    environment.globals |= {
        "report": report,
        "columns": in_tables,
        "road_groups": report.road_groups,
        "is_wide": len(in_tables) > WIDE,
        "most_findings": MOST_FINDINGS,
        "finding_page": finding_page,
        "extent_words": extent_words,
        "percentage": percentage,
        "verdicts": VERDICTS,
        "explained_verdicts": _present_verdicts(report),
        "signs_and_meanings": SIGNS_AND_MEANINGS,
        "change_kinds": CHANGES,
        "change_signs": CHANGE_SIGNS,
        "kind_signs": KIND_SIGNS,
        "kind_meanings": KIND_MEANINGS,
        "by_kind": by_kind,
        "rule_row_file": rule_row_file,
        "version_link": version_link,
        "cited_lines": cited_lines,
        "reported": {document for document, _ in report.cases},
        "field_names": FIELD_NAMES,
        "finding_kinds": SIGNS,
        "pages": added,
        "navigation": navigation(
            [
                *(PageLink(f"{each}s.html", f"{each.capitalize()}s") for each in of_pairs),
                *(PageLink(f"{each.name}.html", each.title) for each in of_modes),
            ],
            [PageLink(f"{each.name}.html", each.title) for each in added],
        ),
    }

    def page(file: str, template: str = "", **variables: Any) -> tuple[str, str]:
        found = environment.get_template(template or file)
        return file, found.render(file=file, **variables)

    yield page("index.html", **front_page(report))
    yield page("behaviors.html", families=behaviors_by_family(report))
    yield page("layouts.html", groups=list(layout_checks(report)))
    yield page("trend.html", trends=trends(report), wrong_verdicts=WRONG)
    yield page("open.html", points=list(open_points(report)))
    for shown in of_modes:
        yield page(f"{shown.name}.html", "modes.html", page=shown)
    for each in added:
        yield page(f"{each.name}.html", content=each.content)
    for name in ("cases.html", "case.html", "pair.html"):
        yield page(name)
    for operation in of_pairs:
        yield page(f"{operation}s.html", "use.html", operation=operation)
    for file, variables in finding_pages(report):
        yield page(file, "finding.html", **variables)
    for document in document_pages(report):
        file = document_page_file(document.document.name)
        yield page(file, "document.html", page=document)


class PageLink(NamedTuple):
    """A page's file and its title."""

    file: str
    title: str


class NavigationSection(NamedTuple):
    """A group of pages; ``title`` names several pages, while a single one has its own title."""

    title: str
    links: Sequence[PageLink]

    @property
    def link(self) -> PageLink:
        """The section's entry, which leads to its first page."""
        [first, *more] = self.links
        return PageLink(first.file, self.title) if more else first

    def holds(self, file: str) -> bool:
        """Return whether the page in a file belongs to the section."""
        return any(each.file == file for each in self.links)


def navigation(
    conversions: Sequence[PageLink], added: Sequence[PageLink]
) -> list[NavigationSection]:
    """Return the sections of a report with these pages of conversions and of extras.

    There are at most six, besides the link to the front page. Sections without pages are left out.
    """
    sections = [
        NavigationSection("Conversions", conversions),
        NavigationSection("Cases", [PageLink("cases.html", "Cases")]),
        NavigationSection(
            "Open points",
            [PageLink("open.html", "Open points"), PageLink("behaviors.html", "Behaviors")],
        ),
        NavigationSection("Layouts", [PageLink("layouts.html", "Layouts")]),
        NavigationSection("Trend", [PageLink("trend.html", "Trend")]),
        NavigationSection("More", added),
    ]
    return [each for each in sections if each.links]
