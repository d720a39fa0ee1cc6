"""Spreads obligations over processes; their results keep their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from oracles.proof.obligation import Obligation

Task = TypeVar("Task")


def spread(
    prove: Callable[[Task], Obligation],
    tasks: Sequence[Task],
    jobs: int,
    report: Callable[[Obligation], None],
) -> list[Obligation]:
    """Prove so many tasks at a time, and report each as soon as those before it are done.

    Who interrupts gets those that were done so far.
    """
    results = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            for obligation in pool.map(prove, tasks):
                report(obligation)
                results.append(obligation)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    return results
