"""Which behaviors explain the backends' answers to open inputs, by dtype pair."""

from __future__ import annotations

from dataclasses import dataclass

from reports.findings.report import Report
from specs.formats import formats


@dataclass
class SharedBehavior:
    """One sentence about open answers, the backends that it describes, and an example case."""

    text: str
    backends: list[str]
    example: str


@dataclass
class PairBehaviors:
    """The behaviors on one dtype pair: explanations before exceptions, the most shared first."""

    source: str
    target: str
    behaviors: list[SharedBehavior]


def behaviors_by_pair(report: Report) -> list[PairBehaviors]:
    """List the pairs on which a backend answered open inputs, in the order of the formats."""
    found: dict[tuple[str, str], dict[str, SharedBehavior]] = {}
    for (backend, case), lines in report.behaviors.items():
        cell = report.cells[backend, case]
        behaviors = found.setdefault((cell.source, cell.target), {})
        for text in lines:
            behavior = behaviors.setdefault(text, SharedBehavior(text, [], case))
            if backend not in behavior.backends:
                behavior.backends.append(backend)
    order = list(formats())
    return [
        PairBehaviors(*pair, sorted(found[pair].values(), key=_sort_key))
        for pair in sorted(found, key=lambda pair: tuple(map(order.index, pair)))
    ]


def _sort_key(behavior: SharedBehavior) -> tuple[bool, int, str]:
    return "unexplained" in behavior.text, -len(behavior.backends), behavior.text
