"""Renders the HTML report of runs, and writes it into a folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.findings.changes import CHANGES
from reports.findings.report import Report, read_report
from reports.findings.verdict_signs import CHANGE_SIGNS, SIGNS_AND_MEANINGS, percentage
from reports.html.behaviors import behaviors_by_family
from reports.html.case_details import case_details
from reports.html.containers import CLASSES as CONTAINER_CLASSES
from reports.html.containers import MEANINGS as CONTAINER_MEANINGS
from reports.html.containers import SIGNS as CONTAINER_SIGNS
from reports.html.containers import ContainerTable, Tables
from reports.html.docket import DocketRow, DocketRows
from reports.html.document_page import (
    cited_lines,
    document_page_file,
    document_pages,
    rule_row_file,
    version_link,
)
from reports.html.findings import SIGNS, finding_pages
from reports.html.front_page import front_page
from reports.html.layouts import layout_checks
from reports.html.open_points import open_points
from reports.html.page_data import data_file, index_data, open_answers_data
from reports.html.portability import CLASSES, MEANINGS, Porting, Portings
from reports.html.portability import SIGNS as PORTABILITY_SIGNS
from reports.html.quantization import quantization_pages
from reports.html.replace_report import check_output_folder, replace_report
from reports.html.trend import trends
from reports.verdicts import VERDICTS, WRONG
from specs.coverage import by_kind
from specs.loader import documents
from specs.plain_text import plain_text

STATIC = Path(__file__).with_name("static")
FIELD_NAMES = {3: ("sign", "exponent", "mantissa"), 2: ("sign", "rest"), 1: ("rest",)}
"""The names of a pattern's fields, by their number."""
OPERATIONS = ("cast", "call", "bitcast")
"""The operations that have a page of their own, if a run has documents of them."""


def write_site(
    runs: Sequence[str],
    out: str | os.PathLike[str],
    docket_rows: DocketRows | None = None,
    portings: Portings | None = None,
    container_tables: Tables | None = None,
) -> Report:
    """Write the report of some runs, oldest first, and replace an older report in the folder.

    ``docket_rows`` decides public threads by the last run, ``portings`` compares every two of its
    backends, ``container_tables`` returns the stored tables of containers; a page of which the
    function is None is left out.
    """
    folder = check_output_folder(os.fspath(out))
    report = read_report(runs)
    rows = docket_rows(runs[-1]) if docket_rows is not None else ()
    compared = portings(runs[-1]) if portings is not None else ()
    held = container_tables(runs[-1]) if container_tables is not None else ()
    replace_report(folder, lambda: _files(report, rows, compared, held))
    return report


def _files(
    report: Report,
    rows: Sequence[DocketRow],
    compared: Sequence[Porting],
    held: Sequence[ContainerTable],
) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file of the report."""
    for name, text in _pages(report, rows, compared, held):
        yield name, plain_text(text).encode()
    for file in sorted(STATIC.iterdir()):
        yield f"static/{file.name}", file.read_bytes()
    yield "data/index.js", data_file("index", index_data(report))
    yield "data/open.js", data_file("open", open_answers_data(report))
    for name, data in case_details(report):
        yield f"data/{name}.js", data_file(name, data)


def _pages(
    report: Report,
    rows: Sequence[DocketRow],
    compared: Sequence[Porting],
    held: Sequence[ContainerTable],
) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page."""
    environment = Environment(
        loader=PackageLoader("reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    quantization = list(quantization_pages(report))
    present = {documents()[document].entry.operation for document, _ in report.cases}
    operations = [each for each in OPERATIONS if each in present]
    environment.globals |= {
        "report": report,
        "percentage": percentage,
        "verdicts": VERDICTS,
        "signs_and_meanings": SIGNS_AND_MEANINGS,
        "change_kinds": CHANGES,
        "change_signs": CHANGE_SIGNS,
        "by_kind": by_kind,
        "rule_row_file": rule_row_file,
        "version_link": version_link,
        "cited_lines": cited_lines,
        "reported": {document for document, _ in report.cases},
        "field_names": FIELD_NAMES,
        "finding_kinds": SIGNS,
        "docket": Counter(each.verdict for each in rows),
        "portings": compared,
        "operations": operations,
        "quantization": quantization,
        "container_tables": held,
        "container_signs": CONTAINER_SIGNS,
        "container_classes": CONTAINER_CLASSES,
        "container_meanings": CONTAINER_MEANINGS,
        "portability_signs": PORTABILITY_SIGNS,
        "portability_classes": CLASSES,
        "portability_meanings": MEANINGS,
    }

    def page(template: str, **variables: Any) -> str:
        return environment.get_template(template).render(**variables)

    yield "index.html", page("index.html", **front_page(report))
    yield "behaviors.html", page("behaviors.html", families=behaviors_by_family(report))
    yield "layouts.html", page("layouts.html", groups=list(layout_checks(report)))
    yield "trend.html", page("trend.html", trends=trends(report), wrong_verdicts=WRONG)
    yield "open.html", page("open.html", points=list(open_points(report)))
    for each in quantization:
        yield f"{each.name}.html", page("quantization.html", page=each)
    if compared:
        yield "portability.html", page("portability.html")
    if held:
        yield "containers.html", page("containers.html")
    if rows:
        asked = {cell.case for cell in report.cells.values()}
        yield "docket.html", page("docket.html", rows=rows, asked=asked)
    for name in ("cases.html", "case.html", "pair.html"):
        yield name, page(name)
    for operation in operations:
        yield f"{operation}s.html", page("use.html", operation=operation)
    for file, variables in finding_pages(report):
        yield file, page("finding.html", **variables)
    for shown in document_pages(report):
        yield document_page_file(shown.document.name), page("document.html", page=shown)
