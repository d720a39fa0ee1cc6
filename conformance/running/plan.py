"""Splits a run into tasks, without regard to processes, shards or restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from oracles.reference.sweep_inputs import SAMPLE, SequenceKind, sequence_kinds
from oracles.registry import first_road
from reports.case_patterns import pair_checks
from specs.cases import Case
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling

PARTS = 16
"""The number of tasks into which a sweep is split."""
EXHAUSTIVE_BITS = 16
Tier = Literal["quick", "full"]


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

    def tasks(self, backend: str) -> list[Task]:
        """Split the sweep into tasks."""
        name = f"{backend}/{self.way}/{self.source.name}-{self.target.name}/{self.road}"
        return [Task(f"{name}/{part}", self.cases, (), self, part) for part in range(PARTS)]


@dataclass(frozen=True)
class Task:
    """A worker's unit of work: all cases and checks of a pair, or a part of a sweep."""

    name: str
    cases: tuple[Case, ...]
    checks: tuple[str, ...] = ()
    sweep: Sweep | None = None
    part: int = 0

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the first and the last index + 1 of the task's share of so many inputs."""
        return size * self.part // PARTS, size * (self.part + 1) // PARTS

    @property
    def weight(self) -> int:
        """About how many inputs the task has, for the progress display; 0 at the quick tier."""
        if self.sweep is None:
            return 0
        return (SAMPLE if self.sweep.way == "sample" else 1 << 32) // PARTS


def quick_tasks(backend: str, backends: Iterable[str], cases: Iterable[Case]) -> Iterator[Task]:
    """Yield one task per pair of dtypes; the cases must come pair by pair.

    ``backends`` are all of the run: roads of one framework are compared with its first.
    """
    first = first_road(backends, backend)
    for (source, target), group in groupby(cases, key=lambda case: (case.source, case.target)):
        asked = tuple(group)
        is_cast = not all(map(is_bitcast, asked))
        checks = pair_checks(f"{source}/{target}", first) if is_cast else ()
        yield Task(f"{backend}/quick/{source}-{target}", asked, checks)


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
