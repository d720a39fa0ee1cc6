"""Compares what backends do on open inputs: a row per behavior, a column per backend."""

from __future__ import annotations

from dataclasses import dataclass, field

from reports.findings.report import Report
from reports.html.page_data import ALL_OF
from specs.formats import Format, format_named, formats

NARROW_BITS = 8
"""The widest of the narrow floats."""
FAMILIES = (
    "signed integers",
    "unsigned integers",
    "bool",
    f"floats of at most {NARROW_BITS} bits",
    "wider floats",
    "complex numbers and texts",
)
"""The families of targets, in the order of the table."""


@dataclass
class ComparedBehavior:
    """A sentence about open answers; by backend, a case of each pair to which it applies."""

    text: str
    pairs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether a closed form gives all the answers."""
        return "unexplained" not in self.text

    @property
    def order(self) -> tuple[int, int, str]:
        """Sorts behaviors: first those of most backends, then those of most pairs."""
        return -len(self.pairs), -sum(map(len, self.pairs.values())), self.text


@dataclass
class Family:
    """A family of targets, and the behaviors of backends on it, the most common first."""

    name: str
    whole: list[ComparedBehavior]
    others: list[ComparedBehavior]


def family_of(target: Format) -> str:
    """The family of a target."""
    signed, unsigned, boolean, narrow, wide, others = FAMILIES
    match target.kind:
        case "integer":
            return signed if target.is_signed else unsigned
        case "boolean":
            return boolean
        case "float":
            return narrow if target.bits <= NARROW_BITS else wide
    return others


def behaviors_by_family(report: Report) -> list[Family]:
    """Every family for which a backend answered open inputs."""
    order = list(formats())
    found: dict[str, dict[str, ComparedBehavior]] = {}
    cells = sorted(
        ((report.cells[key], lines) for key, lines in report.behaviors.items()),
        key=lambda item: (order.index(item[0].source), order.index(item[0].target)),
    )
    for cell, lines in cells:
        here = found.setdefault(family_of(format_named(cell.target)), {})
        for line in lines:
            text = line.partition(ALL_OF)[0]
            behavior = here.setdefault(text, ComparedBehavior(text))
            pairs = behavior.pairs.setdefault(cell.backend, {})
            pairs.setdefault(f"{cell.source} → {cell.target}", cell.case)
    return [_family(name, found[name]) for name in FAMILIES if name in found]


def _family(name: str, behaviors: dict[str, ComparedBehavior]) -> Family:
    in_order = sorted(behaviors.values(), key=lambda each: each.order)
    return Family(
        name,
        [each for each in in_order if each.is_whole],
        [each for each in in_order if not each.is_whole],
    )
