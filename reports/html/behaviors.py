"""A table of what the backends do on open inputs: target families and backends."""

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
class PairsOfBehavior:
    """A sentence about open answers, and a case of each pair to which it applies."""

    text: str
    cases: dict[str, str] = field(default_factory=dict)


@dataclass
class FamilyRow:
    """A family of targets, and what each backend does with it, that of most pairs first."""

    family: str
    behaviors: dict[str, list[PairsOfBehavior]]


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


def behaviors_by_family(report: Report) -> list[FamilyRow]:
    """The rows of the table: every family for which a backend answered open inputs."""
    order = list(formats())
    found: dict[tuple[str, str], dict[str, PairsOfBehavior]] = {}
    cells = sorted(
        ((report.cells[key], lines) for key, lines in report.behaviors.items()),
        key=lambda item: (order.index(item[0].source), order.index(item[0].target)),
    )
    for cell, lines in cells:
        here = found.setdefault((family_of(format_named(cell.target)), cell.backend), {})
        for line in lines:
            text = line.partition(ALL_OF)[0]
            behavior = here.setdefault(text, PairsOfBehavior(text))
            behavior.cases.setdefault(f"{cell.source} → {cell.target}", cell.case)
    return [
        FamilyRow(
            family,
            {
                backend: sorted(behaviors.values(), key=_sort_key)
                for (other, backend), behaviors in found.items()
                if other == family
            },
        )
        for family in FAMILIES
        if any(family == other for other, _ in found)
    ]


def _sort_key(behavior: PairsOfBehavior) -> tuple[bool, int, str]:
    return "unexplained" in behavior.text, -len(behavior.cases), behavior.text
