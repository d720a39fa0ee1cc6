"""From the parts of a run to one judgement per case, pair after pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from conformance.joining import completed, joined
from conformance.plan import Sweep, Tier, is_swept, quick_tasks, sweeps
from reports.judgement import Judgement
from reports.runs import Runs
from specs.cases import Case
from specs.ruling import Ruling, ruling

Read = Callable[[str], list[Judgement]]
"""The judgements of a task by its name."""


def assembled(
    read: Read, backend: str, cases: list[Case], tier: Tier
) -> Iterator[tuple[Case, Judgement]]:
    """Every case with its judgement, in the order of the cases."""
    for task in quick_tasks(backend, cases):
        quick = read(task.name)
        swept: dict[tuple[str, Ruling], Judgement] = {}
        if tier == "full":
            roads = {judgement.case: judgement.road for judgement in quick}
            for sweep in sweeps(task.cases, roads):
                for case, judgement in zip(sweep.cases, _joined(read, backend, sweep), strict=True):
                    key = (sweep.road, ruling(case))
                    before = swept.get(key)
                    swept[key] = (
                        judgement if before is None else joined(before, judgement, Runs.merged)
                    )
        for case, judgement in zip(task.cases, quick, strict=True):
            if swept and is_swept(case) and (values := swept.get((judgement.road, ruling(case)))):
                judgement = completed(judgement, values)
            yield case, judgement


def _joined(read: Read, backend: str, sweep: Sweep) -> list[Judgement]:
    """The parts of a sweep as one judgement per ruling."""
    parts = (read(task.name) for task in sweep.tasks(backend))
    return reduce(
        lambda before, part: [joined(*pair) for pair in zip(before, part, strict=True)], parts
    )
