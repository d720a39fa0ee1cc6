"""How the verdicts on each document went from run to run, backend by backend."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from reports.findings.cells import FAILED
from reports.findings.report import Report

NOT_RIGHT = ("violates", "deviates", "differs", *FAILED)
"""Verdicts of which fewer are better."""


@dataclass(frozen=True)
class Point:
    """What one run said of a document; without counts it was not asked."""

    counts: Counter[str]
    not_right: int
    rises: int | None


@dataclass(frozen=True)
class Trend:
    """One backend's runs, the oldest first, and a row of points per document."""

    backend: str
    runs: tuple[tuple[datetime, str], ...]
    rows: dict[str, list[Point]]


def trends(report: Report) -> list[Trend]:
    """The trend of every backend of the last run, over the runs that had it."""
    return [_trend(report, backend) for backend in report.backends]


def _trend(report: Report, backend: str) -> Trend:
    told = [
        (record.started, each.version, counts)
        for record, counts in zip(report.records, report.trend, strict=True)
        for each in record.backends
        if each.name == backend
    ]
    documents = dict.fromkeys(document for document, _ in report.cases)
    rows = {
        document: _points([counts.get((backend, document), Counter()) for *_, counts in told])
        for document in documents
    }
    return Trend(backend, tuple((started, version) for started, version, _ in told), rows)


def _points(columns: list[Counter[str]]) -> list[Point]:
    points: list[Point] = []
    before: int | None = None
    for counts in columns:
        wrong = sum(counts[verdict] for verdict in NOT_RIGHT)
        rises = wrong - before if counts and before is not None else None
        points.append(Point(counts, wrong, rises))
        before = wrong if counts else before
    return points
