"""The page on position, length, layout, roads and chains: a section per backend and kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reports import case_patterns
from reports.case_patterns import kind_of_check
from reports.findings.cells import Cell
from reports.findings.report import Report

NOT_TOLD = ("unsupported", "conforms")
"""Verdicts that the page only counts; it lists every other check with its message."""


@dataclass(frozen=True)
class LayoutChecks:
    """The checks of one kind on a backend: how many have each verdict, and those with a message.

    ``says`` names the kind. ``told`` has the first of all checks with the same message.
    """

    backend: str
    says: str
    counts: Counter[str]
    told: list[ToldCheck]


class ToldCheck(NamedTuple):
    """A check, its name on the page, and how many others have the same message."""

    cell: Cell
    name: str
    others: int


def layout_checks(report: Report) -> Iterator[LayoutChecks]:
    """Yield the checks of each backend, in the order of the run."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in report.checks:
        groups.setdefault((cell.backend, kind_of_check(cell.check)), []).append(cell)
    for (backend, kind), cells in groups.items():
        counts = Counter(cell.verdict for cell in cells)
        yield LayoutChecks(backend, _kind_words(kind), counts, [*_told(kind, cells)])


def _kind_words(kind: str) -> str:
    name, _, about = kind.partition("/")
    match name:
        case case_patterns.VARIANTS:
            return f"compared with {about}"
        case case_patterns.CHAINS:
            return f"casts in company, by {about}"
    return "positions, lengths and layouts"


def _told(kind: str, cells: Sequence[Cell]) -> Iterator[ToldCheck]:
    """Yield the checks that the page lists, one for each message."""
    same: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.verdict not in NOT_TOLD:
            same.setdefault(cell.message, []).append(cell)
    for [first, *others] in same.values():
        dtype, *more = first.check.removeprefix(f"{kind}/").split("/")
        path = "".join(f" {part}" if ":" in part else f" → {part}" for part in more)
        yield ToldCheck(first, dtype + path, len(others))
