"""What backends do where documents are silent, pair by pair: each behaviour, and who shares it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.findings.report import Report
from specs.formats import formats


@dataclass
class Shared:
    """One sentence, the backends of which it is true, and a case to look at."""

    words: str
    backends: list[str]
    example: str


@dataclass
class PairBehaviours:
    """All sentences of a pair: those that explain first, and of these those that most share."""

    source: str
    target: str
    shared: list[Shared]


def pair_behaviours(report: Report) -> list[PairBehaviours]:
    """Every pair on which a backend has answered open inputs, in the order of the formats."""
    found: dict[tuple[str, str], dict[str, Shared]] = {}
    for (backend, case), lines in report.behaviours.items():
        cell = report.cells[backend, case]
        pair = found.setdefault((cell.source, cell.target), {})
        for words in lines:
            shared = pair.setdefault(words, Shared(words, [], case))
            if backend not in shared.backends:
                shared.backends.append(backend)
    order = list(formats())
    return [
        PairBehaviours(*pair, sorted(found[pair].values(), key=_rank))
        for pair in sorted(found, key=lambda pair: tuple(map(order.index, pair)))
    ]


def _rank(shared: Shared) -> tuple[bool, int, str]:
    return "unexplained" in shared.words, -len(shared.backends), shared.words
