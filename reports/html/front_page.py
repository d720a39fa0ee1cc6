"""What the front page tells: the run, its verdicts, what is broken, what has changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from reports.findings.changes import Change, reservations
from reports.findings.report import Report, Version
from reports.findings.verdict_signs import ABSENT
from reports.html.page_data import page_of
from specs.loader import documents

SHOWN_CHANGES = 40
"""Changes that the front page lists; the others are one filter away."""


@dataclass
class BrokenRule:
    """In how many cases each backend breaks a rule, and one to look at."""

    document: str
    rule: str
    clause: str
    level: str
    cases: Counter[str] = field(default_factory=Counter)
    example: str = ""


def front(report: Report) -> dict[str, Any]:
    """The front page's words for its template."""
    changes = [change for each in report.changes.values() for change in each]
    return {
        "facts": _facts(report),
        "rows": [_row(report, version) for version in report.cases],
        "broken": _broken_rules(report),
        "compared": len(report.records) > 1,
        "previous": report.records[-2] if len(report.records) > 1 else None,
        "reservations": reservations(*report.records[-2:]) if len(report.records) > 1 else [],
        "changed": _counted(report, changes),
        "shown_changes": changes[:SHOWN_CHANGES],
        "all_changes": len(changes),
        "not_compared": _not_compared(report),
    }


def _facts(report: Report) -> dict[str, Any]:
    record = report.record
    return {
        "cases": sum(map(len, report.cases.values())),
        "inputs": sum(cell.inputs for cell in report.cells.values()),
        "record": record,
        "digests": {name: record.documents.get(name, "") for name, _ in report.cases},
    }


def _row(report: Report, version: Version) -> dict[str, Any]:
    name, number = version
    return {
        "document": name,
        "version": number,
        "title": documents()[name].entry.title,
        "page": page_of(version),
        "cases": len(report.cases[version]),
        "counts": {backend: report.counts(version, backend) for backend in report.backends},
    }


def _broken_rules(report: Report) -> list[BrokenRule]:
    """Each broken rule, document by document, the required ones and the most broken first."""
    found: dict[tuple[str, str, str, str], BrokenRule] = {}
    for cell in report.cells.values():
        for each in cell.broken:
            key = (cell.document, *each.name)
            rule = found.setdefault(key, BrokenRule(*key, example=cell.case))
            rule.cases[cell.backend] += 1
    return sorted(
        found.values(),
        key=lambda rule: (
            rule.document,
            rule.level != "required",
            -rule.cases.total(),
            rule.rule,
            rule.clause,
        ),
    )


def _counted(report: Report, changes: list[Change]) -> dict[str, Counter[str]]:
    """How many divergences of each backend came, went or moved."""
    counted = {backend: Counter[str]() for backend in report.backends}
    for change in changes:
        counted[change.backend][change.kind] += 1
    return counted


def _not_compared(report: Report) -> int:
    """Cells that the previous run has not."""
    if len(report.records) < 2:
        return 0
    return sum(letters[-2] == ABSENT for letters in report.history.values())
