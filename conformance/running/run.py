"""A run: cases meet backends in processes of their own, and what is found is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic

from conformance.judging.meeting import Settings
from conformance.running.plan import Task, Tier, quick_tasks, sweeps
from conformance.running.process_pool import Pool
from conformance.running.progress import Reporter
from conformance.running.selection import select
from conformance.sweep.joining import assembled
from oracles.isolation.launch_config import SECONDS, homes
from reports.diff.judgement import Judgement
from reports.diff.totals import Totals, recorded
from reports.run_store.merge import merge_record
from reports.run_store.open_run import open_shard
from reports.run_store.record import (
    BackendRecord,
    RunRecord,
    Selection,
    Shard,
    command_line,
    environment,
    now,
)
from reports.run_store.store import RunStore, create, resume
from reports.run_store.tables import Row
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.loader import documents

TIME_OVER = "the time for all cases was over"


@dataclass(frozen=True)
class Wanted:
    """What the user wants run."""

    backends: tuple[str, ...]
    selection: Selection
    tier: Tier = "quick"
    seed: int = 0
    max_examples: int = 1000
    shard: Shard | None = None
    pythons: tuple[str, ...] = ()
    seconds: float = SECONDS
    limit: float = math.inf
    """Seconds after which what is not done yet is not run."""

    @property
    def settings(self) -> Settings:
        """What every worker has to know."""
        asked_for = frozenset(word.partition(":")[0] for word in self.selection.documents)
        return Settings(self.seed, self.max_examples, asked_for, self.tier)


def wanted_of(record: RunRecord) -> Wanted:
    """What the user wanted when a run was begun."""
    return Wanted(
        tuple(backend.name for backend in record.backends),
        record.selection,
        record.tier,
        record.seed,
        record.max_examples,
        record.shard,
    )


def chosen(selection: Selection) -> list[Case]:
    """The cases of a selection, or an error where there is none."""
    for dtype in (selection.source, selection.target):
        if dtype is not None:
            format_named(dtype)
    cases = [
        case
        for case in select(selection.documents)
        if selection.source in (None, case.source) and selection.target in (None, case.target)
    ]
    if not cases:
        raise CastigateError("no case has this source and target; see castigate specs DOCUMENT")
    return cases


def run(
    wanted: Wanted,
    out: str,
    jobs: int,
    go_on: bool,
    argv: Sequence[str],
    reporter: Reporter,
    only: list[Case] | None = None,
) -> RunStore:
    """Do all tasks that are not done yet, and keep their parts; ``only`` some cases, or all."""
    cases = only or chosen(wanted.selection)
    where = homes(wanted.backends, wanted.pythons, wanted.seconds, jobs)
    with ExitStack() as stack:
        pools = [
            stack.enter_context(Pool(name, wanted.settings, home)) for name, home in where.items()
        ]
        until = monotonic() + wanted.limit
        record = _record(wanted, pools, argv)
        store = resume(out, record) if go_on else create(out, record)
        if store.record.complete:
            return store
        _work(wanted, cases, pools, jobs, store, reporter, until)
    return store


def merge(shards: Sequence[str], out: str, argv: Sequence[str]) -> RunStore:
    """Join the parts of all shards of a run in one store."""
    stores = [open_shard(shard) for shard in shards]
    record = merge_record(stores, argv)
    for shard in stores:
        damaged: list[str] = []
        shard.finished(damaged.append)
        for each in damaged:
            raise CastigateError(
                f"{each.partition('; ')[0]}; run the shard again into another --out"
            )
    store = create(out, record)
    for shard in stores:
        for name in shard.finished():
            store.write(name, shard.read(name))
    return store


def finish(store: RunStore, only: list[Case] | None = None) -> Totals:
    """Write the tables of a run whose tasks are all done, or end a shard."""
    record, totals = store.record, Totals()
    cases = only or chosen(record.selection)
    if record.shard is None:
        rows = _rows(store, cases, totals)
    else:
        rows = iter(())
        known = {case.id: case for case in cases}
        for name in sorted(store.finished()):
            for judgement in store.read(name):
                totals.add(recorded(known[judgement.case], judgement))
    store.finish(rows, lambda: totals.exit_code)
    return totals


def _rows(store: RunStore, cases: list[Case], totals: Totals) -> Iterator[Row]:
    for backend in store.record.backends:
        for case, judgement in assembled(store.read, backend.name, cases, store.record.tier):
            totals.add(recorded(case, judgement))
            yield backend.name, case, judgement


def _record(wanted: Wanted, pools: list[Pool], argv: Sequence[str]) -> RunRecord:
    return RunRecord(
        documents=documents().digests,
        backends=tuple(BackendRecord(name=pool.backend, version=pool.version) for pool in pools),
        selection=wanted.selection,
        tier=wanted.tier,
        seed=wanted.seed,
        max_examples=wanted.max_examples,
        shard=wanted.shard,
        environments=(environment(),),
        command_line=command_line(argv),
        started=now(),
    )


def _work(
    wanted: Wanted,
    cases: list[Case],
    pools: list[Pool],
    jobs: int,
    store: RunStore,
    reporter: Reporter,
    until: float,
) -> None:
    done = store.finished(reporter.say)
    place = 0
    for pool in pools:
        tasks = _tasks(wanted, cases, pool)
        mine = [task for number, task in enumerate(tasks, place) if _is_mine(wanted.shard, number)]
        place += len(tasks)
        left = [task for task in mine if task.name not in done]
        reporter.begin(pool.backend, left)
        try:
            pool.run(left, jobs, store, reporter, until)
        finally:
            if said := pool.log.taken():
                store.add_to_log(said)
        reporter.end()
        pool.close()
        if monotonic() > until:
            _leave(left, pool.backend, store)


def _leave(tasks: list[Task], backend: str, store: RunStore) -> None:
    """Say of the cases of tasks that are not done that they were not run."""
    done = store.finished()
    for task in tasks:
        if task.name not in done:
            left = [Judgement(case.id, backend, "not-run", TIME_OVER) for case in task.cases]
            store.write(task.name, left)


def _tasks(wanted: Wanted, cases: list[Case], pool: Pool) -> list[Task]:
    tasks = list(quick_tasks(pool.backend, cases))
    if wanted.tier == "full":
        for sweep in sweeps(cases, pool.roads(cases)):
            tasks += sweep.tasks(pool.backend)
    return tasks


def _is_mine(shard: Shard | None, number: int) -> bool:
    return shard is None or number % shard.count == shard.index - 1
