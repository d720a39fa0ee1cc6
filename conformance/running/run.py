"""Runs cases against backends in worker processes, and stores the judgements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from time import monotonic
from typing import TYPE_CHECKING

from conformance.extras import EXECUTOR
from conformance.judging.asking import Settings
from conformance.running.fork_server import fork_server
from conformance.running.plan import (
    Task,
    Tier,
    assembled,
    chain_tasks,
    quick_tasks,
    sweep_tasks,
)
from conformance.running.process_pool import Listener, ProcessPool, Setup, TaskPool
from conformance.running.progress import ProgressReporter
from conformance.sweep.plan import is_swept, sweeps
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT, LaunchConfig
from oracles.backend.loading import launch_configs
from reports.findings.read_findings import causes_of
from reports.judgement import Judgement
from reports.outputs.totals import Totals, count_record
from reports.problems import Note
from reports.run_store.record import (
    BackendRecord,
    Environment,
    RunRecord,
    Selection,
    Shard,
    current_time,
    shareable_command,
)
from reports.run_store.store import RunStore, create, resume
from reports.run_store.tables import JudgedCase
from specs.cases import JOINT, Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.house_rules import rules_texts
from specs.loader import document_named, documents, own_documents
from specs.selection import select

if TYPE_CHECKING:
    from reports.ledger.news import RunLedgers

TIME_OVER = "the time for all cases was over"


@dataclass(frozen=True)
class RunRequest:
    """Holds the options of a run: the backends, the cases, the tier and the limits."""

    backends: tuple[str, ...]
    selection: Selection
    tier: Tier = "quick"
    seed: int = 0
    max_examples: int = 1000
    shard: Shard | None = None
    pythons: tuple[str, ...] = ()
    seconds: float = DEFAULT_TIMEOUT
    limit: float = math.inf
    """Seconds for the whole run; cases that are not done by then get the verdict `not-run`."""
    isolates_sweeps: bool = False
    has_chains: bool = False
    """Whether chains of casts are judged too."""
    cluster: str | None = None
    """The address of a cluster that does the tasks, such as `dask://HOST:PORT`."""

    @property
    def settings(self) -> Settings:
        """The settings that every worker needs."""
        return Settings(
            self.seed,
            self.max_examples,
            frozenset(self.selection.documents),
            self.tier,
            self.isolates_sweeps,
            self.selection,
            has_turns=True,
            documents=tuple(own_documents(self.selection.documents).values()),
            rules=rules_texts(self.selection.documents),
        )


def request_of(record: RunRecord) -> RunRequest:
    """Return the request that a run's record describes.

    A record holds no Pythons, time limits or cluster, so that the request has the defaults of
    these.
    """
    return RunRequest(
        tuple(backend.name for backend in record.backends),
        record.selection,
        record.tier,
        record.seed,
        record.max_examples,
        record.shard,
        isolates_sweeps=record.isolates_sweeps,
        has_chains=bool(record.chains),
    )


def selected_cases(selection: Selection) -> list[Case]:
    """Return the cases of a selection.

    Raises CastigateError if there are none, or for an unknown document or dtype.
    """
    for dtype in (*selection.source, *selection.target):
        format_named(dtype)
    cases = [
        case
        for case in select(selection.documents)
        if case.source in (selection.source or (case.source,))
        and case.target in (selection.target or (case.target,))
        and (not selection.choices or selection.choice(case.id) is not None)
    ]
    if not cases:
        raise CastigateError(
            "no case has this source and target; castigate specs DOCUMENT lists the dtypes"
        )
    return cases


def asked_names(record: RunRecord) -> Iterator[str]:
    """Yield the ids of a run's cases, and the names of the pair checks of its first backend."""
    names = [backend.name for backend in record.backends]
    for task in quick_tasks(names[0], names, selected_cases(record.selection)):
        yield from (case.id for case in task.cases)
        yield from task.checks


def run(
    request: RunRequest,
    out: str,
    jobs: int,
    resumes: bool,
    argv: Sequence[str],
    reporter: ProgressReporter,
    only: list[Case] | None = None,
    checks_pairs: bool = True,
) -> RunStore:
    """Do the tasks of a run that are not done yet, store their parts in ``out``; return the store.

    With ``resumes`` the run in ``out`` is continued. ``only``, unless empty, are cases to judge in
    place of all selected ones. With ``checks_pairs`` the checks of their pairs are made too.
    ``argv`` is recorded. Raises CastigateError for unusable options or backends.
    """
    cases = only or selected_cases(request.selection)
    with _pools(request, cases, jobs, reporter) as pools:
        until = monotonic() + request.limit
        record = _record(request, cases, pools, argv)
        store = resume(out, record) if resumes else create(out, record)
        if not store.record.complete:
            store = _do_tasks(request, cases, pools, store, reporter, until, checks_pairs)
    return store


def _pools(
    request: RunRequest, cases: list[Case], jobs: int, reporter: ProgressReporter
) -> AbstractContextManager[Sequence[TaskPool]]:
    """Open a pool per backend for a ``with`` block, on a cluster if the request names one."""
    if request.cluster is None:
        configs = launch_configs(request.backends, request.pythons, request.seconds, jobs)
        return process_pools(configs, request.settings, cases, jobs, reporter)
    setup = Setup(request.backends, request.pythons, request.seconds, request.settings)
    pools: AbstractContextManager[Sequence[TaskPool]] = resolve_name(EXECUTOR)(
        request.cluster, setup, reporter
    )
    return pools


@contextmanager
def process_pools(
    configs: Mapping[str, LaunchConfig],
    settings: Settings,
    cases: list[Case],
    jobs: int,
    reporter: Listener,
) -> Iterator[list[ProcessPool]]:
    """Open a pool of processes on this machine for each backend; close them after the block.

    Raises CastigateError if a backend cannot be loaded.
    """
    has_sweeps = any(settings.is_full(case) and is_swept(case) for case in cases)
    with ExitStack() as stack:
        server = stack.enter_context(fork_server())
        pools: list[ProcessPool] = []
        for name in configs:
            reporter.begin_phase(f"loading {name}")
            pool = ProcessPool(name, configs, settings, jobs, server, has_sweeps)
            pools.append(stack.enter_context(pool))
        reporter.begin_phase("")
        yield pools


def finish_run(
    store: RunStore,
    only: list[Case] | None = None,
    ledgers: RunLedgers | None = None,
    finds_causes: bool = True,
) -> Totals:
    """Complete a run or shard whose tasks are all done, and return the counts of its verdicts.

    For a whole run, write the tables and, with ``finds_causes``, the causes of what fails, and add
    its judgements to ``ledgers``, if there are any. ``only`` are the judged cases if not all
    selected ones were judged.
    """
    record, totals = store.record, Totals()
    cases = only or selected_cases(record.selection)
    if record.shard is None:
        rows = _rows(store, cases, totals, ledgers)
    else:
        rows = iter(())
        known = {case.id: case for case in cases}
        for name in sorted(store.finished()):
            for judgement in store.read(name):
                totals.add(count_record(known[judgement.case], judgement))
    store.finish(rows, lambda: totals.exit_code, causes_of if finds_causes else None)
    return totals


def _rows(
    store: RunStore, cases: list[Case], totals: Totals, ledgers: RunLedgers | None
) -> Iterator[JudgedCase]:
    names = [backend.name for backend in store.record.backends]
    for name in names:
        tier, chained = store.record.tier, store.record.chains.get(name, ())
        for case, judgement in assembled(store.read, name, names, cases, tier, chained):
            totals.add(count_record(case, judgement))
            if ledgers is not None:
                ledgers.add(case, judgement)
            yield name, case, judgement


def _record(
    request: RunRequest, cases: list[Case], pools: Sequence[TaskPool], argv: Sequence[str]
) -> RunRecord:
    return RunRecord(
        documents={**documents().digests, **_digests_with_rules(request.selection)},
        backends=tuple(BackendRecord(name=pool.backend, version=pool.version) for pool in pools),
        selection=request.selection,
        tier=request.tier,
        seed=request.seed,
        max_examples=request.max_examples,
        isolates_sweeps=request.isolates_sweeps,
        chains=_chained(request, cases, pools) if request.has_chains else {},
        own_documents=own_documents(request.selection.documents),
        rules=dict(request.settings.rules),
        shard=request.shard,
        environments=_machines(pools),
        command_line=shareable_command(argv),
        started=current_time(),
    )


def _digests_with_rules(selection: Selection) -> dict[str, str]:
    """Return the digests of the selected documents that have house rules, by name."""
    names = {name.partition(":")[0] for name in selection.documents}
    return {name: document_named(name).digest for name in sorted(names) if JOINT in name}


def _chained(
    request: RunRequest, cases: list[Case], pools: Sequence[TaskPool]
) -> dict[str, tuple[str, ...]]:
    """Return the editions whose chains are requested, by backend.

    Raises CastigateError if no backend makes chains.
    """
    from conformance.families.chains.asked import chain_editions  # Few runs ask chains.

    asked_for = request.settings.asked_for
    found: dict[str, tuple[str, ...]] = {}
    for pool in pools:
        if pool.has_chains:
            found[pool.backend] = chain_editions(cases, asked_for, pool.claimed)
    if not found:
        names = ", ".join(pool.backend for pool in pools)
        raise CastigateError(f"--chains: no backend makes chains of casts here ({names})")
    return found


def _machines(pools: Sequence[TaskPool]) -> tuple[Environment, ...]:
    found: list[Environment] = []
    for pool in pools:
        found += [each for each in pool.environments if each not in found]
    return tuple(found)


def _do_tasks(
    request: RunRequest,
    cases: list[Case],
    pools: Sequence[TaskPool],
    store: RunStore,
    reporter: ProgressReporter,
    until: float,
    checks_pairs: bool,
) -> RunStore:
    done = store.finished(reporter.say)
    first = 0
    for pool in pools:
        tasks = _tasks(request, cases, pool)
        tasks += chain_tasks(pool.backend, cases, store.record.chains.get(pool.backend, ()))
        if not checks_pairs:
            tasks = [replace(task, checks=()) for task in tasks]
        # Tasks are numbered across all backends, so that shards get about the same share.
        own = [task for number, task in enumerate(tasks, first) if _is_in(request.shard, number)]
        first += len(tasks)
        left = [task for task in own if task.name not in done]
        reporter.begin(pool.backend, left)
        try:
            pool.run(left, store.write_part, reporter, lambda: monotonic() > until)
        finally:
            if stderr := pool.log.drain():
                store.add_to_log(stderr)
            # Workers that came later may run on other machines.
            store = store.with_environments(pool.environments)
        reporter.end()
        pool.close()
        if monotonic() > until:
            _store_not_run(left, pool.backend, store)
    return store


def _store_not_run(tasks: list[Task], backend: str, store: RunStore) -> None:
    """Store the verdict `not-run` for all cases and checks of the tasks that are not done."""
    done = store.finished()
    for task in tasks:
        if task.name not in done:
            over = (Note(TIME_OVER),)
            left = [Judgement(case.id, backend, "not-run", over) for case in task.cases]
            if task.checks:
                pair = Judgement(task.among[0].id, backend, "not-run", over)
                left += [replace(pair, check=check) for check in task.checks]
            store.write(task.name, left)


def _tasks(request: RunRequest, cases: list[Case], pool: TaskPool) -> list[Task]:
    tasks = list(quick_tasks(pool.backend, request.backends, cases))
    if request.tier == "full":
        full = [case for case in cases if request.settings.is_full(case)]
        for sweep in sweeps(full, pool.roads(full)):
            tasks += sweep_tasks(pool.backend, sweep)
    return tasks


def _is_in(shard: Shard | None, number: int) -> bool:
    return shard is None or number % shard.count == shard.index - 1
