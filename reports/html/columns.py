"""The backends of a report as columns of its tables: each framework's roads stand beside it.

A road whose results are those of its framework in every case is folded: the head of its framework
names it, and its column is shown on request.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.findings.report import Report

WIDE = 8
"""Pages with more backends than this have filters, and tables whose heads stay in view."""


@dataclass(frozen=True)
class Column:
    """A backend's column: how its head names it, and the roads that are folded into it.

    ``framework`` stands before a road's name, and is empty for a plain backend.
    """

    backend: str
    version: str
    framework: str
    name: str
    is_folded: bool
    folds: tuple[str, ...]


def columns(report: Report) -> list[Column]:
    """Return a column for each backend of a report, those of a framework beside each other."""
    versions = report.record.versions
    found = []
    for group in report.road_groups:
        folded = tuple(each for each in group.roads if not report.differing_cases[each])
        for each in group.backends:
            is_plain = each == group.plain
            found.append(
                Column(
                    each,
                    versions[each],
                    "" if is_plain else group.framework,
                    each if is_plain else group.road_of(each),
                    each in folded,
                    tuple(map(group.road_of, folded)) if is_plain else (),
                )
            )
    return found
