"""The page on position, length, layout and roads: a section per backend and kind of check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from reports.case_patterns import kind_of_check
from reports.findings.cells import Cell
from reports.findings.report import Report

NOT_TOLD = ("unsupported", "conforms")
"""Verdicts that the page only counts; it lists every other check with its message."""


@dataclass(frozen=True)
class LayoutChecks:
    """The checks of one kind on a backend: how many have each verdict, and those with a message.

    ``road`` is the one that the backend is compared with, if that is what is checked.
    """

    backend: str
    road: str
    counts: Counter[str]
    told: list[Cell]


def layout_checks(report: Report) -> Iterator[LayoutChecks]:
    """Yield the checks of each backend, in the order of the run."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in report.checks:
        kind = kind_of_check(cell.check)
        _, _, road = kind.partition("/")
        groups.setdefault((cell.backend, road), []).append(cell)
    for (backend, road), cells in groups.items():
        counts = Counter(cell.verdict for cell in cells)
        yield LayoutChecks(backend, road, counts, [c for c in cells if c.verdict not in NOT_TOLD])
