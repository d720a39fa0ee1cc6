"""Some cases of a certified run asked again, to see whether the same comes out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from tempfile import TemporaryDirectory

from conformance.running.progress import ProgressReporter
from conformance.running.run import finish_run, request_of, run, selected_cases
from reports.findings.cells import Cell
from reports.findings.read_cells import cells
from reports.run_store.open_run import open_run
from reports.run_store.store import RunStore
from specs.cases import Case

COMPARED = ("verdict", "inputs", "open", "wrong", "runs", "asked", "answers")


def replayed(
    store: RunStore,
    count: int,
    seed: int,
    jobs: int,
    pythons: tuple[str, ...],
    seconds: float,
    reporter: ProgressReporter,
) -> Iterator[str]:
    """Ask so many random cases of a run again; says what is not as it was."""
    wanted = replace(request_of(store.record), pythons=pythons, seconds=seconds)
    picked = some_of(selected_cases(store.record.selection), count, seed)
    before = {cell.case: cell for cell in cells(store)}
    with TemporaryDirectory(prefix="castigate-") as folder:
        again = run(wanted, f"{folder}/run", jobs, False, sys.argv, reporter, picked)
        for one, other in zip(store.record.backends, again.record.backends, strict=True):
            if one.version != other.version:
                yield f"{one.name}: version {one.version} was certified, this is {other.version}"
        finish_run(again, picked)
        for cell in cells(open_run(f"{folder}/run")):
            yield from _changed(before[cell.case], cell)


def some_of(cases: list[Case], count: int, seed: int) -> list[Case]:
    """So many of the cases, by chance, in their order."""
    places = Random(seed).sample(range(len(cases)), min(count, len(cases)))
    return [cases[place] for place in sorted(places)]


def _changed(before: Cell, now: Cell) -> Iterator[str]:
    for name in COMPARED:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{now.case}: {name} {old} was certified, {new} comes now"
    if before.behaves != now.behaves and before.verdict == now.verdict:
        yield f"{now.case}: other inputs or answers are wrong than was certified"
