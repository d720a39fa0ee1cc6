"""Workers of one backend: starts them, hands tasks out, and outlives their deaths."""

from __future__ import annotations

import math
import signal
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Protocol

from conformance.judging.meeting import Settings
from conformance.running.child_process import spawned
from conformance.running.plan import Task
from conformance.running.worker import AskRoads, Begun, Do, Done, Failed, Hello, Roads, Told, work
from oracles.isolation.launch_config import Home
from oracles.isolation.supervised_process import end_in_words, silence_in_words
from oracles.wire.stderr_log import Log
from reports.run_store.store import RunStore
from specs.cases import Case
from specs.errors import CastigateError

Death = tuple[str, str, bool]
"""A task, a case of it, and whether the worker was killed from outside."""
OWN_DEATHS = 2
"""How often a task may end its process before that is its verdict."""
KILLS = 25
"""How often a task may be killed from outside, for want of memory say."""
SECONDS_OF_SILENCE = 300.0
"""What a worker may take for its own work; what a backend may take is added to it."""


class Listener(Protocol):
    """Is told how a backend's tasks go on."""

    def told(self, inputs: int, wrong: int) -> None:
        """Some inputs were visited."""

    def done(self, task: Task) -> None:
        """A task is done."""

    def say(self, message: str) -> None:
        """Something happened that the user should know."""


@dataclass(eq=False)
class Worker:
    """A process, the link to it, and what it was sent."""

    process: SpawnProcess
    link: Connection
    seconds: float
    """What one answer of the backend may take."""
    task: Task | None = None
    case: str = ""
    heard: float = field(default_factory=monotonic)
    silent: bool = False

    @property
    def end(self) -> str:
        """How the process has ended, in words."""
        if self.silent:
            return silence_in_words(SECONDS_OF_SILENCE)
        if self.process.exitcode == -signal.SIGALRM:
            return silence_in_words(self.seconds)
        return end_in_words(self.process.exitcode)

    @property
    def was_killed(self) -> bool:
        """Whether somebody else has ended the process."""
        return not self.silent and self.process.exitcode == -signal.SIGKILL


class Pool:
    """Workers of one backend; there is one from the start."""

    def __init__(self, backend: str, settings: Settings, home: Home) -> None:
        self.backend = backend
        self.settings = settings
        self.home = home
        self.version = ""
        self.log = Log()
        self._workers: list[Worker] = []
        self._deaths: Counter[Death] = Counter()
        self._crashed: dict[str, dict[str, str]] = {}
        self._hopeless: set[str] = set()
        """Tasks that end a process even where it is only to be found out what does."""

    def __enter__(self) -> Pool:
        self._workers.append(self._greeted(self._started()))
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.link.close()
        self._workers.clear()

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """The road of each case."""
        worker = self._workers[0]
        while True:
            try:
                worker.link.send(AskRoads(tuple(cases)))
                match self._next_word(worker):
                    case Roads(roads=roads):
                        return roads
                    case Failed(message=message):
                        raise CastigateError(message)
            except (EOFError, OSError):
                worker = self._replaced(worker, ("", "", True))

    def run(
        self,
        tasks: Iterable[Task],
        jobs: int,
        store: RunStore,
        listener: Listener,
        until: float = math.inf,
    ) -> None:
        """Do all tasks by so many workers, or as many tasks as can be done in time."""
        waiting = deque(tasks)
        more = min(jobs, len(waiting)) - len(self._workers)
        self._workers += [self._greeted(new) for new in [self._started() for _ in range(more)]]
        while monotonic() <= until:
            for worker in [worker for worker in self._workers if worker.task is None]:
                if waiting:
                    self._hand_out(worker, waiting.popleft(), store)
            busy = {worker.link: worker for worker in self._workers if worker.task is not None}
            if not busy:
                return
            for link in wait(list(busy), timeout=1.0):
                worker = busy[link]  # type: ignore[index]
                try:
                    self._heard(worker, listener)
                except (EOFError, OSError):
                    waiting.appendleft(self._buried(worker, listener))
            for worker in busy.values():
                if monotonic() - worker.heard > SECONDS_OF_SILENCE + self.home.seconds:
                    worker.silent = True
                    worker.process.kill()

    def _started(self) -> Worker:
        process, link = spawned(work, self.backend, self.settings, self.home)
        return Worker(process, link, self.home.seconds)

    def _next_word(self, worker: Worker) -> object:
        """What a worker says next, unless it is silent too long."""
        word: object = Told(0, 0)
        while isinstance(word, Told):
            if not worker.link.poll(SECONDS_OF_SILENCE):
                worker.silent = True
                worker.process.kill()
            word = worker.link.recv()
        return word

    def _greeted(self, worker: Worker) -> Worker:
        """A worker that has loaded its backend: this one, or another where it was killed."""
        try:
            match self._next_word(worker):
                case Hello(version=version):
                    self.version = version
                case Failed(message=message):
                    raise CastigateError(message)
        except (EOFError, OSError):
            return self._replaced(worker, ("", "", True))
        return worker

    def _replaced(self, worker: Worker, death: Death) -> Worker:
        """A new worker in a dead one's place, unless the backend cannot be loaded at all."""
        worker.process.join()
        worker.link.close()
        self._deaths[death] += 1
        if self._deaths["", "", True] >= KILLS or not (worker.was_killed or worker.task):
            raise CastigateError(f"backend `{self.backend}` {worker.end} before its first task")
        new = self._started()
        if worker in self._workers:
            self._workers[self._workers.index(worker)] = new
        return self._greeted(new)

    def _hand_out(self, worker: Worker, task: Task, store: RunStore) -> None:
        worker.task, worker.case, worker.heard = task, "", monotonic()
        # A worker that died in its rest is met when it is heard next.
        with suppress(OSError):
            crashed, is_asked_again = (
                self._crashed.get(task.name, {}),
                task.name not in self._hopeless,
            )
            worker.link.send(Do(task, store, crashed, is_asked_again))

    def _heard(self, worker: Worker, listener: Listener) -> None:
        worker.heard = monotonic()
        match worker.link.recv():
            case Begun(case=case):
                worker.case = case
            case Told(inputs=inputs, wrong=wrong):
                listener.told(inputs, wrong)
            case Done(said=said):
                assert worker.task is not None
                self.log.keep(said)
                listener.done(worker.task)
                worker.task = None
            case Failed(message=message):
                raise CastigateError(message)

    def _buried(self, worker: Worker, listener: Listener) -> Task:
        """Put a new worker in a dead one's place, and its task back."""
        worker.process.join()
        task = worker.task
        assert task is not None
        death = (task.name, worker.case, worker.was_killed)
        if self._deaths[death] + 1 >= (KILLS if worker.was_killed else OWN_DEATHS):
            known = self._crashed.setdefault(task.name, {})
            if worker.case in known:
                self._hopeless.add(task.name)
            known[worker.case] = f"the process {worker.end}"
        listener.say(f"a worker of {self.backend} {worker.end}; its task is done again")
        self._replaced(worker, death)
        return task
