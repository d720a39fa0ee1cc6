"""How each backend's verdicts on each document changed from run to run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from reports.findings.report import Report
from reports.verdicts import WRONG


@dataclass(frozen=True)
class Point:
    """The counts of a run's verdicts on a document, and the change in wrong ones since the last."""

    counts: Counter[str]
    wrong: int
    change: int | None


@dataclass(frozen=True)
class Trend:
    """One backend's runs, oldest first, and for each document a point per run."""

    backend: str
    runs: tuple[tuple[datetime, str], ...]
    """Start of each run and version of the backend."""
    points: dict[str, list[Point]]


def trends(report: Report) -> list[Trend]:
    """Return the trend of every backend of the last run, over the runs that include it."""
    return [_trend(report, backend) for backend in report.backends]


def _trend(report: Report, backend: str) -> Trend:
    runs = [
        (record.started, each.version, counts)
        for record, counts in zip(report.records, report.trend, strict=True)
        for each in record.backends
        if each.name == backend
    ]
    documents = dict.fromkeys(document for document, _ in report.cases)
    points = {
        document: _points([counts.get((backend, document), Counter()) for *_, counts in runs])
        for document in documents
    }
    return Trend(backend, tuple((started, version) for started, version, _ in runs), points)


def _points(counts_per_run: list[Counter[str]]) -> list[Point]:
    points: list[Point] = []
    previous: int | None = None
    for counts in counts_per_run:
        wrong = sum(counts[verdict] for verdict in WRONG)
        change = wrong - previous if counts and previous is not None else None
        points.append(Point(counts, wrong, change))
        previous = wrong if counts else previous
    return points
