"""Asks cases of a certified run again, and compares the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from tempfile import TemporaryDirectory

from conformance.running.progress import ProgressReporter
from conformance.running.run import finish_run, request_of, run, selected_cases
from reports.findings.cells import Cell
from reports.findings.read_cells import read_cells
from reports.run_store.open_run import open_run
from reports.run_store.store import RunStore
from specs.cases import Case

COMPARED = ("verdict", "inputs", "open", "wrong", "runs", "asked", "answers")


def replay(
    store: RunStore,
    count: int,
    seed: int,
    jobs: int,
    pythons: tuple[str, ...],
    seconds: float,
    reporter: ProgressReporter,
) -> Iterator[str]:
    """Ask so many random cases of a run again; yield a line for each difference."""
    request = replace(request_of(store.record), pythons=pythons, seconds=seconds)
    picked = random_cases(selected_cases(store.record.selection), count, seed)
    before = {cell.case: cell for cell in read_cells(store)}
    with TemporaryDirectory(prefix="castigate-") as folder:
        again = run(request, f"{folder}/run", jobs, False, sys.argv, reporter, picked)
        for one, other in zip(store.record.backends, again.record.backends, strict=True):
            if one.version != other.version:
                yield f"{one.name}: version {one.version} was certified, this is {other.version}"
        finish_run(again, picked)
        for cell in read_cells(open_run(f"{folder}/run")):
            yield from _differences(before[cell.case], cell)


def random_cases(cases: list[Case], count: int, seed: int) -> list[Case]:
    """Return so many of the cases, chosen at random, in their order."""
    indices = Random(seed).sample(range(len(cases)), min(count, len(cases)))
    return [cases[index] for index in sorted(indices)]


def _differences(before: Cell, now: Cell) -> Iterator[str]:
    for name in COMPARED:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{now.case}: {name} {old} was certified, now it is {new}"
    if before.failure_fingerprint != now.failure_fingerprint and before.verdict == now.verdict:
        yield f"{now.case}: other inputs or answers are wrong than those that were certified"
