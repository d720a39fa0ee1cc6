"""The findings on the front page, and a page for each of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from reports.changes.change import ChangeKind
from reports.counterexample.drawing import DatumColumns, allowed_columns, stored_columns
from reports.dtype_order import usual_first
from reports.findings.finding import KINDS, ExplainedCase, Finding
from reports.findings.finding_text import extent_words, find_sharing, mode_or_path
from reports.findings.intervals import number_line
from reports.findings.issue_text import script_or_command
from reports.findings.report import Report
from reports.findings.roads import RoadGroup, finding_key, same_findings, together
from specs.formats import Format, format_named

SIGNS = dict(zip(KINDS, "✕‡∅!†≠+", strict=True))
"""The sign of each kind of finding, so that no page depends on color alone."""
MOST_FINDINGS = 5
"""The most findings of a backend that a wide front page shows at first."""
LONGEST_NAME = 120
"""The most characters of a finding that the name of its page has; file systems allow 255."""
MOST_ROWS = 40
"""The most rows of a finding's table of pairs that are shown at first; others are collapsed."""


def finding_page(finding: Finding) -> str:
    """Return the file name of a finding's page.

    A backend's name may have options and paths: then a digest tells it from similar ones.
    """
    name = re.sub(r"[^a-zA-Z0-9_.-]+", "-", finding.id)
    if {*"=,"} & {*finding.backend} or len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{sha256(finding.id.encode()).hexdigest()[:8]}"
    return f"finding-{name}.html"


@dataclass(frozen=True)
class FindingLine:
    """A finding on the front page, and how it changed.

    ``changes`` are the kinds of changes that name it. ``shared`` names the other backends with the
    same finding.
    """

    finding: Finding
    changes: list[ChangeKind]
    shared: str


@dataclass(frozen=True)
class BackendFindings:
    """A backend on the front page: its findings, how many of each kind, and how they changed.

    ``alike`` are other roads of its framework with the same findings. ``lines`` are its findings,
    but for those of ``plain``, of which it has ``common`` as well; ``plain`` is empty unless the
    backend is a road. ``cases`` counts its judged cases. ``failing`` counts the cases and checks
    with a finding. ``changes`` counts the cases that changed, by kind.
    """

    name: str
    version: str
    alike: tuple[str, ...]
    plain: str
    common: int
    cases: int
    failing: int
    kinds: Counter[str]
    changes: Counter[str]
    lines: list[FindingLine]

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends with these findings."""
        return self.name, *self.alike


def backend_findings(report: Report) -> list[BackendFindings]:
    """Return the findings of every backend, the frameworks with most findings first."""
    found = [[*_framework(report, each)] for each in report.road_groups]
    found.sort(key=lambda some: -some[0].kinds.total())
    return [each for some in found for each in some]


def _framework(report: Report, group: RoadGroup) -> Iterator[BackendFindings]:
    """Yield the findings of a framework's plain backend, and of the roads with other findings."""
    of_plain = report.findings.get(group.plain, ())
    unlike = [each for each in group.roads if not same_findings(report.findings, each, group.plain)]
    alike = tuple(each for each in group.roads if each not in unlike)
    yield _backend(report, group.plain, of_plain, alike)
    known = {*map(finding_key, of_plain)}
    for road in unlike:
        own = [each for each in report.findings.get(road, ()) if finding_key(each) not in known]
        yield _backend(report, road, own, plain=group.plain)


def _backend(
    report: Report,
    name: str,
    shown: Sequence[Finding],
    alike: tuple[str, ...] = (),
    plain: str = "",
) -> BackendFindings:
    findings = report.findings.get(name, ())
    step = report.step(name)
    lines = [
        FindingLine(
            each,
            report.kinds_of_change(each),
            together(find_sharing(report.findings, each), report.backends),
        )
        for each in shown
    ]
    judged = [cell for cell in report.cells.values() if cell.backend == name and cell.is_judged]
    return BackendFindings(
        name,
        report.record.versions[name],
        alike,
        plain,
        len(findings) - len(shown),
        len(judged),
        len({case for each in findings for case in each.cases}),
        Counter(each.kind for each in findings),
        Counter(step.counts if step is not None else {}),
        lines,
    )


@dataclass(frozen=True)
class PairRow:
    """A row of a finding's table: a dtype pair in a mode, and its share of the finding by version.

    For a chain of casts, ``mode`` holds all its dtypes and modes. ``region`` describes the inputs.
    """

    source: str
    target: str
    mode: str
    region: str
    versions: dict[str, ExplainedCase]


def finding_pages(report: Report) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each finding's page: its file name, and the variables of ``finding.html`` by name."""
    for findings in report.findings.values():
        for each in findings:
            yield finding_page(each), _variables(report, each)


def _variables(report: Report, finding: Finding) -> dict[str, Any]:
    rows = _pair_rows(finding)
    shown = finding.simplest
    source, target = format_named(shown.cell.source), format_named(shown.cell.target)
    others = {
        each.backend: finding_page(each)
        for name in find_sharing(report.findings, finding)
        for each in report.findings[name]
        if (each.kind, each.name) == (finding.kind, finding.name)
    }
    return {
        "finding": finding,
        "sign": SIGNS[finding.kind],
        "version": report.record.versions[finding.backend],
        "extent": extent_words(finding),
        "since": report.since.get(finding.id, ""),
        "changes": report.kinds_of_change(finding),
        "shown": shown,
        "example": _example(source, target, shown) if shown.smallest else [],
        "line": number_line(source) if shown.segments else None,
        "rules": sorted(
            {
                (each.cell.document, each.rule, each.clause, each.level)
                for each in finding.explained
                if each.rule
            }
        ),
        "versions": [
            name
            for name in map(":".join, report.cases)
            if any(name in row.versions for row in rows)
        ],
        "has_regions": any(row.region for row in rows),
        "rows": rows[:MOST_ROWS],
        "more_rows": rows[MOST_ROWS:],
        "script": script_or_command(finding),
        "others": others,
    }


def _pair_rows(finding: Finding) -> list[PairRow]:
    rows: dict[tuple[str, str, str, str], dict[str, ExplainedCase]] = {}
    for each in finding.explained:
        cell = each.cell
        versions = rows.setdefault((cell.source, cell.target, mode_or_path(cell), each.region), {})
        name = f"{cell.document}:{cell.version}"
        known = versions.get(name)
        # A case may break several rules.
        versions[name] = replace(known, inputs=known.inputs + each.inputs) if known else each
    place = usual_first()
    found = (PairRow(*key, versions) for key, versions in rows.items())
    return sorted(found, key=lambda row: (place[row.source], place[row.target]))


def _example(
    source: Format, target: Format, shown: ExplainedCase
) -> list[tuple[str, DatumColumns]]:
    rows = [("input", stored_columns(source, shown.smallest))]
    rows += [("expected", allowed_columns(target, each)) for each in shown.allowed]
    return [*rows, ("answer", stored_columns(target, shown.answer))]
