"""Which roads are swept, and by which cases their answers are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oracles.reference.sweep_inputs import SequenceKind, sequence_kinds
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.loader import document_named
from specs.ruling import ruling


@dataclass(frozen=True)
class Sweep:
    """A road, the first case of each ruling that shares it, and the sequence of its inputs."""

    road: str
    cases: tuple[Case, ...]
    way: SequenceKind

    @property
    def source(self) -> Format:
        return format_named(self.cases[0].source)

    @property
    def target(self) -> Format:
        return format_named(self.cases[0].target)


def is_swept(case: Case) -> bool:
    """Whether the full tier asks a case more inputs than the quick tier."""
    if case.example is not None or document_named(case.document).entry.operation != "cast":
        return False
    rules = ruling(case)
    return (
        rules.source.is_numeric
        and rules.source.bits > EXHAUSTIVE_BITS
        and rules.target.is_numeric
        and not rules.is_rejection
        and not rules.is_open
    )


def sweeps(cases: Iterable[Case], roads: Mapping[str, str]) -> list[Sweep]:
    """Return the sweeps of a backend; ``roads`` has the road of each case, if it is known."""
    found: dict[tuple[str, str, str], dict[Ruling, Case]] = {}
    for case in cases:
        road = roads.get(case.id, "")
        if road and is_swept(case):
            pair = (case.source, case.target, road)
            found.setdefault(pair, {}).setdefault(ruling(case), case)
    return [
        Sweep(road, tuple(rulings.values()), way)
        for (source, _, road), rulings in found.items()
        for way in sequence_kinds(format_named(source))
    ]
