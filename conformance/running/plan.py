"""Splits a run into tasks, without regard to processes, shards or restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from conformance.sweep.plan import Sweep
from oracles.reference.sweep_inputs import SAMPLE
from oracles.registry import first_variant
from reports.case_patterns import pair_checks
from specs.cases import Case
from specs.operations import is_cast

PARTS = 16
"""The number of tasks into which a sweep is split."""
Tier = Literal["quick", "full"]


@dataclass(frozen=True)
class Task:
    """A worker's unit of work: all cases and checks of a pair, or a part of a sweep.

    ``among`` are the cases of a pair that its checks may ask; they need not all be judged.
    """

    name: str
    cases: tuple[Case, ...]
    checks: tuple[str, ...] = ()
    sweep: Sweep | None = None
    part: int = 0
    among: tuple[Case, ...] = ()

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the first and the last index + 1 of the task's share of ``size`` inputs."""
        return size * self.part // PARTS, size * (self.part + 1) // PARTS

    @property
    def weight(self) -> int:
        """About how many inputs the task has, for the progress display; 0 at the quick tier."""
        if self.sweep is None:
            return 0
        return (SAMPLE if self.sweep.way == "sample" else 1 << 32) // PARTS


def quick_tasks(backend: str, backends: Iterable[str], cases: Iterable[Case]) -> Iterator[Task]:
    """Yield one task per pair of dtypes; the cases must come pair by pair.

    ``backends`` are all of the run: variants of one framework are compared with its first.
    """
    first = first_variant(backends, backend)
    for (source, target), group in groupby(cases, key=lambda case: (case.source, case.target)):
        asked = tuple(group)
        has_casts = any(map(is_cast, asked))
        checks = pair_checks(f"{source}/{target}", first) if has_casts else ()
        yield Task(f"{backend}/quick/{source}-{target}", asked, checks, among=asked)


def sweep_tasks(backend: str, sweep: Sweep) -> list[Task]:
    """Split a sweep into tasks."""
    name = f"{backend}/{sweep.way}/{sweep.source.name}-{sweep.target.name}/{sweep.road}"
    return [Task(f"{name}/{part}", sweep.cases, (), sweep, part) for part in range(PARTS)]
