"""The content of the front page: the run, its findings, verdicts, broken rules and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reports.case_patterns import INVARIANCES, kind_of_check
from reports.changes.change import KIND_WORDS, BackendChanges
from reports.changes.divergences import DivergenceChange, setup_differences
from reports.changes.words import details, heading
from reports.drawn_tensors import DRAWS, PAIRS_OF_A_KERNEL, TIMES_FULL, rows
from reports.findings.finding import KINDS
from reports.findings.report import Report, Version
from reports.findings.verdict_signs import NO_VERDICT
from reports.html.findings import backend_findings
from specs.loader import documents

SHOWN_CHANGES = 40
"""How many changes the front page lists; it links to the others."""


@dataclass
class RuleSummary:
    """In how many cases each backend breaks a rule, and the id of an example case."""

    document: str
    rule: str
    clause: str
    level: str
    cases: Counter[str] = field(default_factory=Counter)
    example: str = ""


def front_page(report: Report) -> dict[str, Any]:
    """Return the variables of the template ``index.html``, by name."""
    previous = report.records[-2] if len(report.records) > 1 else None
    changes = [change for each in report.changes.values() for change in each]
    return {
        "facts": _facts(report),
        "steps": [_step(each) for each in report.steps],
        "found": (found := backend_findings(report)),
        "kinds": [kind for kind in KINDS if any(each.kinds[kind] for each in found)],
        "rows": [_version_row(report, version) for version in report.cases],
        "broken": _rule_summaries(report),
        "previous": previous,
        "setup_differences": setup_differences(previous, report.record) if previous else [],
        "change_counts": _change_counts(report, changes),
        "shown_changes": changes[:SHOWN_CHANGES],
        "all_changes": len(changes),
        "not_compared": _count_not_compared(report),
        "drawn": _drawn(report),
    }


def _step(changes: BackendChanges) -> dict[str, Any]:
    """Return the heading and the changes of a backend for the template."""
    found = [
        {
            "kind": each.kind,
            "kind_words": KIND_WORDS[each.kind],
            "says": each.says,
            "details": details(each),
        }
        for each in changes.changes
    ]
    return {"heading": heading(changes), "changes": found}


def _drawn(report: Report) -> dict[str, Any] | None:
    """Return how many tensors of a pair are drawn, and by condition how likely they meet a fault.

    Return None if the run asked no pair in tensors.
    """
    if not any(kind_of_check(each.check) == INVARIANCES for each in report.checks):
        return None
    number = DRAWS * (TIMES_FULL if report.record.tier == "full" else 1)
    found = rows(number, PAIRS_OF_A_KERNEL * number)
    return {"tensors": number, "pairs": PAIRS_OF_A_KERNEL, "rows": list(found)}


def _facts(report: Report) -> dict[str, Any]:
    record = report.record
    return {
        "cases": sum(map(len, report.cases.values())),
        "inputs": sum(cell.inputs for cell in report.cells.values()),
        "record": record,
        "digests": {name: record.documents.get(name, "") for name, _ in report.cases},
    }


def _version_row(report: Report, version: Version) -> dict[str, Any]:
    name, number = version
    return {
        "document": name,
        "version": number,
        "title": documents()[name].entry.title,
        "cases": len(report.cases[version]),
        "counts": {backend: report.verdict_counts(version, backend) for backend in report.backends},
        "as_plain": dict(_roads_as_plain(report, version)),
    }


def _roads_as_plain(report: Report, version: Version) -> Iterator[tuple[str, str]]:
    """Yield roads that differ somewhere, but not in this version, each with the plain backend."""
    cases = {cell.case for cell in report.cases[version]}
    for group in report.road_groups:
        for road in group.roads:
            differs = report.differing_cases[road]
            if differs and cases.isdisjoint(differs):
                yield road, group.plain


def _rule_summaries(report: Report) -> list[RuleSummary]:
    """Return the broken rules by document, required ones first, then those broken in most cases."""
    found: dict[tuple[str, str, str, str], RuleSummary] = {}
    for cell in report.cells.values():
        for each in cell.broken:
            key = (cell.document, *each.key)
            rule = found.setdefault(key, RuleSummary(*key, example=cell.case))
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


def _change_counts(report: Report, changes: list[DivergenceChange]) -> dict[str, Counter[str]]:
    counts = {backend: Counter[str]() for backend in report.backends}
    for change in changes:
        counts[change.backend][change.kind] += 1
    return counts


def _count_not_compared(report: Report) -> int:
    if len(report.records) < 2:
        return 0
    return sum(history[-2] == NO_VERDICT for history in report.history.values())
