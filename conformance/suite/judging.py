"""Judges pytest's items in the pools that `castigate run` uses, and hands each its judgement.

pytest runs its items one after another. The pool does their pairs in the same order and a little
ahead, so that an item finds its judgement, or waits for that of its own pair only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby

from conformance.kinds.subject import Settings
from conformance.running.assembly import assembled_pair
from conformance.running.plan import Task, Tier, quick_tasks, sweep_tasks
from conformance.running.process_pool import ProcessPool
from conformance.running.run import process_pools
from conformance.suite.durations import PairKey, Spent, Stopwatch
from conformance.sweep.plan import sweeps
from oracles.backend.launch_config import LaunchConfig
from oracles.claims import Claim
from reports.judgement import Judgement
from reports.run_store.task_file import decode_task
from specs.cases import Case

Key = tuple[str, str]
"""The names of a backend and of a case or a check."""
Judged = tuple[Case, Judgement]


@dataclass(frozen=True)
class JudgedBackend:
    """What a pool knows of its backend."""

    name: str
    version: str
    claimed: tuple[Claim, ...]

    def claims(self, case: Case) -> bool:
        """Whether the backend means to implement the edition of a case."""
        return any(each.covers(case.document, case.version) for each in self.claimed)


class PooledJudging:
    """The pools of a run's backends, and the judgements that pytest has not asked for yet."""

    def __init__(
        self,
        configs: Mapping[str, LaunchConfig],
        settings: Settings,
        cases: list[Case],
        jobs: int,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.messages: list[str] = []
        """What a pool had to say, such as how a worker ended."""
        self._settings = settings
        self._cases = cases
        self._stopwatch = stopwatch
        self._names = list(configs)
        self._stack = ExitStack()
        self._pools = self._stack.enter_context(process_pools(configs, settings, cases, jobs, self))
        self._judged: dict[Key, Judged] = {}
        self._pairs: Iterator[None] = iter(())

    def close(self) -> None:
        """End all processes."""
        self._stack.close()

    @property
    def backends(self) -> list[JudgedBackend]:
        """All backends, in the order in which they were named."""
        return [JudgedBackend(each.backend, each.version, each.claimed) for each in self._pools]

    def tasks(self, backend: str) -> Iterator[Task]:
        """Yield all pairs of a backend, with the names of their cases and checks."""
        return quick_tasks(backend, self._names, self._cases)

    def begin(self, selected: Iterable[Key]) -> None:
        """Judge these cases and checks, in this order; they must come pair by pair."""
        self._pairs = self._judge_pairs([*selected])

    def judgement(self, key: Key) -> Judged:
        """Return a judgement, and wait for it if its pair is not done."""
        while key not in self._judged:
            next(self._pairs)
        return self._judged.pop(key)

    def _judge_pairs(self, selected: list[Key]) -> Iterator[None]:
        """Judge pair by pair; each is known after a step, or after several."""
        for backend, keys in groupby(selected, key=lambda key: key[0]):
            names = {name for _, name in keys}
            pool = next(each for each in self._pools if each.backend == backend)
            tasks = [
                replace(
                    task,
                    cases=tuple(case for case in task.cases if case.id in names),
                    checks=tuple(check for check in task.checks if check in names),
                )
                for task in self.tasks(backend)
            ]
            yield from self._judge_on(pool, [each for each in tasks if each.cases or each.checks])
            pool.close()

    def _judge_on(self, pool: ProcessPool, pairs: Sequence[Task]) -> Iterator[None]:
        full = [each for task in pairs for each in task.cases if self._settings.is_full(each)]
        roads = pool.roads(full) if full else {}
        parts: dict[str, list[Judgement]] = {}
        missing: dict[str, set[str]] = {}
        pair_of: dict[str, Task] = {}
        tasks = []
        for pair in pairs:
            swept = [case for case in pair.cases if case.id in roads]
            own = [pair]
            for sweep in sweeps(swept, roads):
                own += sweep_tasks(pool.backend, sweep)
            pair_of |= {task.name: pair for task in own}
            missing[pair.name] = {task.name for task in own}
            tasks += own
        tier: Tier = "full" if full else "quick"
        for task, done in pool.results(tasks, self):
            _, parts[task.name] = decode_task(done.part)
            pair = pair_of[task.name]
            if self._stopwatch is not None:
                spent = Spent(done.seconds, done.waited)
                dtypes = f"{pair.among[0].source}/{pair.among[0].target}"
                self._stopwatch.spent[PairKey(pool.backend, dtypes)] += spent
            missing[pair.name].discard(task.name)
            if not missing[pair.name]:
                found = assembled_pair(parts.__getitem__, pool.backend, pair, tier)
                for case, judgement in found:
                    name = judgement.check or case.id
                    self._judged[pool.backend, name] = case, judgement
                yield

    def begin_phase(self, words: str) -> None:
        """Ignore what a pool does besides judging."""

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Ignore how far a task has come."""

    def finish_task(self, task: Task) -> None:
        """Ignore the end of a task."""

    def say(self, message: str) -> None:
        """Keep a message for the end of the run."""
        self.messages.append(message)
