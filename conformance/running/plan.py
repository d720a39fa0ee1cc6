"""Splits a run into tasks, and puts the judgements of tasks together again.

Tasks know nothing of processes, shards or restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Literal

from conformance.sweep.plan import Sweep, completed, is_swept, joined, sweeps
from oracles.reference.sweep_inputs import SAMPLE
from oracles.registry import first_variant
from reports.case_patterns import CHAINS, pair_checks
from reports.grading.failure_runs import Runs
from reports.judgement import Judgement
from specs.branches import Ruling
from specs.cases import Case
from specs.operations import is_cast
from specs.ruling import ruling

PARTS = 16
"""The number of tasks into which a sweep is split."""
Tier = Literal["quick", "full"]


@dataclass(frozen=True)
class Task:
    """A worker's unit of work: all cases and checks of a pair, or a share of a sweep.

    ``among`` are the cases of a pair that its checks may use; they need not all be judged.
    """

    name: str
    cases: tuple[Case, ...]
    checks: tuple[str, ...] = ()
    sweep: Sweep | None = None
    part: int = 0
    among: tuple[Case, ...] = ()

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the bounds of the task's share of ``size`` inputs: the first index, and the end.

        The end is the index after the last.
        """
        return size * self.part // PARTS, size * (self.part + 1) // PARTS

    @property
    def weight(self) -> int:
        """About how many inputs the task has, for the progress display; 0 if it is no sweep."""
        if self.sweep is None:
            return 0
        return (SAMPLE if self.sweep.way == "sample" else 1 << 32) // PARTS


def quick_tasks(backend: str, backends: Iterable[str], cases: Iterable[Case]) -> Iterator[Task]:
    """Yield one task per pair of dtypes; the ``cases`` must come pair by pair.

    ``backends`` are the names of all backends of the run: variants of one framework are compared
    with the first of them.
    """
    first = first_variant(backends, backend)
    for (source, target), group in groupby(cases, key=lambda case: (case.source, case.target)):
        asked = tuple(group)
        has_casts = any(map(is_cast, asked))
        checks = pair_checks(f"{source}/{target}", first) if has_casts else ()
        yield Task(f"{backend}/quick/{source}-{target}", asked, checks, among=asked)


def chain_tasks(backend: str, cases: Iterable[Case], editions: Collection[str]) -> Iterator[Task]:
    """Yield a task for each source and target between which ``editions`` have chains to ask.

    ``editions`` are spelled `DOCUMENT:VERSION`. A task's checks are the chains of two casts whose
    middle dtype does not hold every value of the source, and of which at most one cast has a mode
    other than the default. Pairs for which ``cases`` has no case of these editions are left out.
    """
    if editions:
        from conformance.families.chains.asked import chains_by_pair  # Few runs ask chains.

        for source, target, checks, among in chains_by_pair(cases, editions):
            yield Task(f"{backend}/{CHAINS}/{source}-{target}", (), checks, among=among)


def sweep_tasks(backend: str, sweep: Sweep) -> list[Task]:
    """Split a sweep into ``PARTS`` tasks."""
    name = f"{backend}/{sweep.way}/{sweep.source.name}-{sweep.target.name}/{sweep.road}"
    return [Task(f"{name}/{part}", sweep.cases, (), sweep, part) for part in range(PARTS)]


ReadTask = Callable[[str], list[Judgement]]
"""Reads the judgements of a task by its name."""


def assembled(
    read: ReadTask,
    backend: str,
    backends: Iterable[str],
    cases: list[Case],
    tier: Tier,
    chained: Collection[str] = (),
) -> Iterator[tuple[Case, Judgement]]:
    """Yield every case with its judgement, in the order of the cases; after each pair its checks.

    A check comes with the case that it is named by. ``read`` returns the judgements of a task. At
    the end come the chains of the ``chained`` editions.
    """
    for task in [*quick_tasks(backend, backends, cases), *chain_tasks(backend, cases, chained)]:
        yield from assembled_pair(read, backend, task, tier)


def assembled_pair(
    read: ReadTask, backend: str, task: Task, tier: Tier
) -> Iterator[tuple[Case, Judgement]]:
    """Yield every case of a pair with its judgement, and then a case with each check of the pair.

    At the full tier, the judgements of sweeps are joined with those of the cases that are swept.
    """
    stored = read(task.name)
    quick, checks = stored[: len(task.cases)], stored[len(task.cases) :]
    swept: dict[tuple[str, Ruling], Judgement] = {}
    if tier == "full":
        roads = {judgement.case: judgement.road for judgement in quick}
        for sweep in sweeps(task.cases, roads):
            for case, judgement in zip(sweep.cases, _joined(read, backend, sweep), strict=True):
                key = (sweep.road, ruling(case))
                before = swept.get(key)
                swept[key] = judgement if before is None else joined(before, judgement, Runs.merged)
    for case, judgement in zip(task.cases, quick, strict=True):
        if swept and is_swept(case) and (values := swept.get((judgement.road, ruling(case)))):
            judgement = completed(judgement, values)
        yield case, judgement
    by_id = {case.id: case for case in task.among}
    for check in checks:
        yield by_id[check.case], check


def _joined(read: ReadTask, backend: str, sweep: Sweep) -> list[Judgement]:
    parts = (read(task.name) for task in sweep_tasks(backend, sweep))
    return reduce(
        lambda before, part: [joined(*pair) for pair in zip(before, part, strict=True)], parts
    )
