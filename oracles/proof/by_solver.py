"""The solver's half of the proof: every group's questions, spread over processes."""

from __future__ import annotations

from collections.abc import Callable

from oracles.proof.groups import groups
from oracles.proof.obligation import Obligation
from oracles.proof.questions import Statement, prove, statements
from oracles.proof.spreading import spread

TIME_LIMIT = 60.0
"""Seconds for one obligation; the slowest takes a few."""

Task = tuple[int, Statement, float]


def prove_by_solver(
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    report: Callable[[Obligation], None] = lambda obligation: None,
    every: int = 1,
) -> list[Obligation]:
    """The obligations of every (or every so-manyth) group, in the order of the documents' cases."""
    tasks: list[Task] = [
        (place, statement, time_limit)
        for place, group in list(enumerate(groups()))[::every]
        for statement in statements(group)
    ]
    return spread(_prove, tasks, jobs, report)


def _prove(task: Task) -> Obligation:
    place, statement, time_limit = task
    return prove(groups()[place], statement, time_limit)
