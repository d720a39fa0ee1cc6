"""Assembles the judgements of a run from the results of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import reduce

from conformance.running.plan import Task, Tier, quick_tasks, sweep_tasks
from conformance.sweep.plan import Sweep, completed, is_swept, joined, sweeps
from reports.grading.failure_runs import Runs
from reports.judgement import Judgement
from specs.branches import Ruling
from specs.cases import Case
from specs.ruling import ruling

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
    """Every case with its judgement, in the order of the cases; after each pair its checks.

    At the end come the chains of the ``chained`` editions.
    """
    tasks = [*quick_tasks(backend, backends, cases)]
    if chained:
        from conformance.families.chains.tasks import chain_tasks  # Few runs ask chains.

        tasks += chain_tasks(backend, cases, chained)
    for task in tasks:
        yield from assembled_pair(read, backend, task, tier)


def assembled_pair(
    read: ReadTask, backend: str, task: Task, tier: Tier
) -> Iterator[tuple[Case, Judgement]]:
    """Every case of a pair with its judgement, and then the checks of the pair."""
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
    """The parts of a sweep as one judgement per ruling."""
    parts = (read(task.name) for task in sweep_tasks(backend, sweep))
    return reduce(
        lambda before, part: [joined(*pair) for pair in zip(before, part, strict=True)], parts
    )
