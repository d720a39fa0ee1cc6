"""Judges pytest's items in the pools that `castigate run` uses, and hands each its judgement.

pytest runs its items one after another. The pool does their pairs in the same order and a little
ahead, so that an item finds its judgement, or waits for that of its own pair only. Nothing runs in
a thread: each item, while it is collected and when it is run, takes what workers have done.

A worker of xdist cannot know which of the items it will be sent. There a pair is judged when the
first of its items is run. Judgements are kept to the end, because plugins run items again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest

from conformance.judging.asking import Settings
from conformance.pytest_plugin.durations import Spent, Stopwatch
from conformance.running.plan import (
    Task,
    Tier,
    assembled_pair,
    chain_tasks,
    quick_tasks,
    sweep_tasks,
)
from conformance.running.process_pool import Listener, ProcessPool
from conformance.running.run import process_pools
from conformance.running.worker import TaskDone
from conformance.sweep.plan import sweeps
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.claims import Claim
from reports.judgement import Judgement
from reports.run_store.task_file import decode_task
from specs.cases import Case
from specs.loader import document_word
from specs.selection import with_house_rules

SECONDS_BETWEEN_POLLS = 1.0
ITEMS_BETWEEN_POLLS = 16
"""Calls of ``judgement`` per poll, which takes as long as it takes to report an item."""
CaseKey = tuple[str, str]
"""The names of a backend and of a case or a check."""
JudgedPair = tuple[Case, Judgement]


@dataclass(frozen=True)
class JudgedBackend:
    """A backend that has been loaded: its name, its version and its claims."""

    name: str
    version: str
    claimed: tuple[Claim, ...]

    def claims(self, case: Case) -> bool:
        """Whether the backend means to implement the edition of a case."""
        return any(each.covers(case.document, case.version) for each in self.claimed)


@dataclass
class _Pair:
    """A pair being judged: its task, the names of tasks not done, and the results of those done."""

    task: Task
    missing: set[str]
    parts: dict[str, list[Judgement]] = field(default_factory=dict)


class PooledJudging(Listener):
    """The pools of a run's backends, and all judgements that they have made so far."""

    def __init__(
        self,
        configs: Mapping[str, LaunchConfig],
        settings: Settings,
        cases: list[Case],
        jobs: int,
        stopwatch: Stopwatch | None = None,
        *,
        has_chains: bool = False,
    ) -> None:
        self.messages: list[str] = []
        """Messages of the pools for the end of the run, such as how a worker ended."""
        self._settings = settings
        self._cases = cases
        self._has_chains = has_chains
        self._stopwatch = stopwatch
        self._names = list(configs)
        self._stack = ExitStack()
        opened = process_pools(configs, settings, cases, jobs, self)
        self._pools = self._stack.enter_context(opened)
        self._waiting: deque[tuple[ProcessPool, list[Task]]] = deque()
        """The pools that have not begun, each with the tasks of the selected cases and checks."""
        self._on_demand: dict[CaseKey, tuple[ProcessPool, Task]] = {}
        """The pool and the task of each item that is judged only when it is run."""
        self._has_begun = False
        self._items = 0
        """How many times ``judgement`` was called."""
        self._pool: ProcessPool | None = None
        """The pool that judges now."""
        self._pairs: dict[str, _Pair] = {}
        """The pair of each task of that pool, by the task's name."""
        self._judged: dict[CaseKey, JudgedPair] = {}

    def close(self) -> None:
        """End all worker processes."""
        self._stack.close()

    @property
    def backends(self) -> list[JudgedBackend]:
        """All backends, in the order in which they were named."""
        return [JudgedBackend(each.backend, each.version, each.claimed) for each in self._pools]

    def tasks(self, backend: str) -> Iterator[Task]:
        """Yield the tasks of a backend's pairs, with their cases and checks.

        Before each of them, take what workers have done, with the errors that ``poll`` raises.
        """
        [pool] = (each for each in self._pools if each.backend == backend)
        for task in self._tasks(pool):
            self.poll(0)
            yield task

    def _tasks(self, pool: ProcessPool) -> Iterator[Task]:
        yield from quick_tasks(pool.backend, self._names, self._cases)
        if self._has_chains and pool.has_chains:
            from conformance.families.chains.asked import chain_editions

            asked_for = self._settings.asked_for
            editions = chain_editions(self._cases, asked_for, pool.claimed)
            yield from chain_tasks(pool.backend, self._cases, editions)

    def begin(self, selected: Iterable[CaseKey] | None = None, on_demand: bool = False) -> None:
        """Begin to judge the selected cases and checks, or all of them for None.

        With ``on_demand`` a pair is judged only when its first item is run. Later calls do nothing.
        """
        if self._has_begun:
            return
        self._has_begun = True
        names = None if selected is None else {*selected}
        for pool in self._pools:
            chosen = [_chosen(pool.backend, task, names) for task in self._tasks(pool)]
            chosen = [each for each in chosen if each.cases or each.checks]
            if not on_demand:
                self._waiting.append((pool, chosen))
                continue
            for task in chosen:
                for name in (*(case.id for case in task.cases), *task.checks):
                    self._on_demand[pool.backend, name] = pool, task
        if self._waiting:
            self._judge(*self._waiting.popleft())

    def judgement(self, key: CaseKey) -> JudgedPair:
        """Return the case and the judgement of an item that ``begin`` selected; wait for its pair.

        A check comes with the case by which it is named. Raises CastigateError as ``poll`` does.
        """
        self._items += 1
        if self._items % ITEMS_BETWEEN_POLLS == 0:
            self.poll(0)
        if key not in self._judged and key in self._on_demand:
            pool, task = self._on_demand[key]
            self._judge(pool, [task])
        while key not in self._judged:
            self.poll(SECONDS_BETWEEN_POLLS)
        return self._judged[key]

    def poll(self, seconds: float) -> None:
        """Take finished tasks, and hand out more; wait up to ``seconds`` if none is finished.

        Raises CastigateError as ``ProcessPool.poll`` does.
        """
        if self._pool is None:
            return
        for task, done in self._pool.poll(seconds):
            self._take(self._pool, task, done)
        if not self._pool.is_busy and self._waiting:
            self._pool.close()
            self._judge(*self._waiting.popleft())

    def _judge(self, pool: ProcessPool, pairs: list[Task]) -> None:
        """Have a pool judge pairs; it must have done all that it was given before."""
        full = [case for task in pairs for case in task.cases if self._settings.is_full(case)]
        roads = pool.roads(full) if full else {}
        tasks: list[Task] = []
        for task in pairs:
            own = [task]
            for sweep in sweeps([case for case in task.cases if case.id in roads], roads):
                own += sweep_tasks(pool.backend, sweep)
            names = {each.name for each in own}
            self._pairs |= dict.fromkeys(names, _Pair(task, names))
            tasks += own
        self._pool = pool
        pool.begin(tasks, self)

    def _take(self, pool: ProcessPool, task: Task, done: TaskDone) -> None:
        """Take the result of a task; the last one of a pair completes its judgements."""
        pair = self._pairs.pop(task.name)
        _, pair.parts[task.name] = decode_task(done.part)
        pair.missing.remove(task.name)
        if self._stopwatch is not None:
            one = (task.among or task.cases)[0]
            dtypes = f"{one.source}/{one.target}"
            self._stopwatch[pool.backend, dtypes] += Spent(done.seconds, done.waited)
        if not pair.missing:
            tier: Tier = "full" if len(pair.parts) > 1 else "quick"
            found = assembled_pair(pair.parts.__getitem__, pool.backend, pair.task, tier)
            for case, judgement in found:
                self._judged[pool.backend, judgement.check or case.id] = case, judgement

    def say(self, message: str) -> None:
        """Keep a message for the end of the run."""
        self.messages.append(message)


def _chosen(backend: str, task: Task, names: set[CaseKey] | None) -> Task:
    if names is None:
        return task
    cases = tuple(case for case in task.cases if (backend, case.id) in names)
    checks = tuple(check for check in task.checks if (backend, check) in names)
    return replace(task, cases=cases, checks=checks)


def documents_asked_for(config: pytest.Config) -> tuple[str, ...]:
    """Return the documents of --document, and those with the house rules of --rules.

    With --rules alone there are only documents with house rules.
    """
    named = [*map(document_word, config.getoption("--document"))]
    return with_house_rules(named, config.getoption("--rules"))
