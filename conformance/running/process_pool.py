"""The workers of one backend: hands tasks out, restarts workers that died, names what crashed.

A ``TaskPool`` is what a run sees of workers, on this machine or a cluster.
"""

from __future__ import annotations

import math
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Protocol

from conformance.judging.asking import Settings
from conformance.running.fork_server import ForkServer
from conformance.running.plan import Task
from conformance.running.supervisor import (
    SECONDS_BETWEEN_SILENCE_CHECKS,
    Worker,
    WorkerDiedError,
    WorkerFailure,
    spawn,
)
from conformance.running.worker import (
    Progress,
    Ready,
    Roads,
    RoadsRequest,
    TaskDone,
    TaskOrder,
    work,
)
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import can_run_in_process
from oracles.backend.supervised_process import StderrLog, describe_timeout
from oracles.claims import Claim
from oracles.registry import first_variant, forkable_package
from reports.run_store.record import Environment, current_environment
from specs.cases import Case
from specs.errors import CastigateError

Death = tuple[str, bool]
"""The task at which a process died, by name, and whether something outside had killed it.

The name is empty if there was no task."""
BEFORE_ANY_TASK: Death = ("", True)
MAX_CRASHES = 2
"""A task that ends its process this often has crashed."""
MAX_KILLS = 25
"""A task whose process is killed this often, such as for lack of memory, has crashed."""
AT_HAND = 2
"""Tasks of pairs that a worker has at a time, so that it need not wait for the next one."""
SECONDS_OF_SILENCE = 300.0
"""Seconds that a worker may be silent, besides the time limit of an answer."""


@dataclass(eq=False)
class BackendWorker(Worker[Task]):
    """A worker process of one backend; its ``ending`` says if a time limit was exceeded."""

    timeout: float = math.inf
    """Seconds that one answer of the backend may take."""
    has_framework: bool = False
    """Whether it was forked from a process that has imported the backend's framework."""

    @property
    def ending(self) -> str:
        """How the process has ended, as a predicate such as ``was silent for 10 s``."""
        if self.was_silent:
            return describe_timeout(SECONDS_OF_SILENCE)
        if self.process.exitcode == -signal.SIGALRM:
            return describe_timeout(self.timeout)
        return super().ending


class ProcessPool:
    """The workers of one backend, at most ``jobs``; entering the context starts the first one.

    Entering raises CastigateError if the backend cannot be loaded. ``server`` forks the workers;
    without one they are spawned. With ``sweeps``, ``server`` forks a second server, which imports
    the backend's framework and forks the workers that sweep. It does so only for a framework that
    can be forked and may be loaded in workers.
    """

    def __init__(
        self,
        backend: str,
        configs: Mapping[str, LaunchConfig],
        settings: Settings,
        jobs: int = 1,
        server: ForkServer | None = None,
        sweeps: bool = False,
    ) -> None:
        self.backend = backend
        self.settings = settings
        self.jobs = jobs
        self.config = configs[backend]
        first = first_variant(configs, backend)
        self.first = (first, configs[first]) if first else None
        self.log = StderrLog()
        self._server = server
        package = forkable_package(backend)
        is_in_process = can_run_in_process(backend, self.config) and not settings.isolates_sweeps
        self._package = package if sweeps and is_in_process else ""
        self._framework_server: ForkServer | None = None
        self._known: Ready | None = None
        """The report of the first worker on the backend."""
        self._workers: list[BackendWorker] = []
        self._waiting: deque[Task] = deque()
        self._listener = Listener()
        self._deaths: Counter[Death] = Counter()
        self._crashes: dict[str, str] = {}
        """How each task that crashed has ended its process."""
        self._hopeless: set[str] = set()
        """Tasks that also end a process that only searches for the input at fault."""
        self._failure: WorkerFailure | None = None
        """Why the pool cannot go on; raised once the tasks that were done before are returned."""

    def __enter__(self) -> ProcessPool:
        first = self._start()
        if self._server is not None and self._package:
            start = self._server.start
            self._framework_server = ForkServer(start, start, self._package)
        self._workers.append(self._greet(first))
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all worker processes."""
        if self._framework_server is not None:
            self._framework_server.close()
            self._framework_server = None
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def version(self) -> str:
        """The backend's own version, which all workers have."""
        return self._known.version if self._known else ""

    @property
    def claimed(self) -> tuple[Claim, ...]:
        """The documents that the backend claims."""
        return self._known.claimed if self._known else ()

    @property
    def has_chains(self) -> bool:
        """Whether the backend casts in company: one cast after another, in one program."""
        return self._known is not None and self._known.has_chains

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The machine of this process, on which all workers run."""
        return (current_environment(),)

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """Return the road of each case, by the case's id; raise CastigateError if that fails."""
        worker = self._workers[0]
        while True:
            try:
                worker.send(RoadsRequest(tuple(cases)))
                match self._next_message(worker):
                    case Roads(roads=roads):
                        return roads
                    case WorkerFailure(message=message):
                        raise CastigateError(message)
            except WorkerDiedError:
                worker = self._replace(worker, BEFORE_ANY_TASK)

    def run(
        self,
        tasks: Iterable[Task],
        keep: Keep,
        listener: Listener,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Do tasks until all are done or ``is_over`` returns true; ``keep`` gets the part of each.

        Raises CastigateError as ``poll`` does.
        """
        for task, done in self.results(tasks, listener, is_over):
            keep(task.name, done.part)
            listener.finish_task(task)

    def results(
        self,
        tasks: Iterable[Task],
        listener: Listener,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[Task, TaskDone]]:
        """Yield each finished task and its result, until all are done or ``is_over`` returns true.

        Raises CastigateError as ``poll`` does.
        """
        self.begin(tasks, listener)
        while self.is_busy and not is_over():
            yield from self.poll(SECONDS_BETWEEN_SILENCE_CHECKS)

    def begin(self, tasks: Iterable[Task], listener: Listener) -> None:
        """Start further workers for tasks, and hand tasks out; ``poll`` returns those done."""
        self._waiting, self._listener = deque(tasks), listener
        for task in list(self._waiting)[len(self._workers) : self.jobs]:
            self._workers.append(self._start(for_sweep=task.sweep is not None))
        self._feed_all()

    @property
    def is_busy(self) -> bool:
        """Whether some tasks are not done yet, or ``poll`` has a failure to raise."""
        is_waiting = bool(self._waiting) or self._failure is not None
        return is_waiting or any(each.tasks for each in self._workers)

    def poll(self, seconds: float) -> list[tuple[Task, TaskDone]]:
        """Return tasks done since the last call; wait up to ``seconds`` for a worker's message.

        Raises CastigateError if a worker that died cannot be replaced. A failure that a worker
        reports is raised by the next call, so that the tasks done before are returned. While there
        are other workers, they take over the tasks of one that cannot load the backend.
        """
        if self._failure is not None:
            raise CastigateError(self._failure.message)
        self._feed_all()
        busy = {each.link: each for each in self._workers if each.tasks or not each.is_ready}
        found = []
        for link in wait(list(busy), timeout=seconds):
            worker = busy[link]  # type: ignore[index]
            try:
                message = worker.receive()
            except WorkerDiedError:
                try:
                    self._replace_dead(worker)
                except CastigateError as error:
                    # Raised by the next call, so that no task done by others is lost.
                    self._failure = WorkerFailure(str(error))
                continue
            match message:
                case Ready() as ready:
                    self.admit(worker, ready)
                case Progress(inputs=inputs, wrong=wrong):
                    self._listener.add_inputs(inputs, wrong)
                case TaskDone() as done:
                    task = worker.tasks.popleft()
                    self._feed(worker)  # so that it works while the result is used
                    self.log.append(done.stderr)
                    found.append((task, done))
                case WorkerFailure() as failure:
                    self._do_without(worker, failure)
        for worker in busy.values():
            worker.check_silence()
        return found

    def _do_without(self, worker: BackendWorker, failure: WorkerFailure) -> None:
        """Remove a worker that could not load the backend, and leave its tasks to the others.

        If it failed otherwise, or is the only one, the next ``poll`` raises its failure.
        """
        if not failure.is_of_loading or len(self._workers) == 1:
            self._failure = failure
            return
        self._listener.say(f"{failure.message}; the other workers go on")
        self._waiting.extendleft(reversed(worker.tasks))
        self._workers.remove(worker)
        worker.end()

    def _feed_all(self) -> None:
        for worker in [*self._workers]:
            self._feed(worker)

    def _feed(self, worker: BackendWorker) -> None:
        """Send a ready worker up to ``AT_HAND`` tasks; a share of a sweep only if it has none."""
        while self._waiting and worker.is_ready:
            is_sweep = self._waiting[0].sweep is not None
            if len(worker.tasks) >= (1 if is_sweep else AT_HAND):
                return
            if is_sweep and self._exchange_for_sweep(worker):
                return
            task = self._waiting.popleft()
            worker.add(task)
            # If an idle worker died, the next receive reports it.
            with suppress(WorkerDiedError):
                worker.send(self._order(task))

    def _replace_dead(self, worker: BackendWorker) -> None:
        if worker.tasks:
            ended = f"a worker of {self.backend} {worker.ending}"
            self._listener.say(f"{ended}; its task is done again")
            self._waiting.extendleft(reversed(worker.tasks))
        self._bury(worker)

    def _start(self, for_sweep: bool = False) -> BackendWorker:
        """Start a worker; one ``for_sweep`` comes with the framework imported, if possible."""
        framework = self._framework_server if for_sweep else None
        server = framework or self._server
        named = (self.backend, self.config)
        start = spawn if server is None else server.start
        process, link = start(work, named, self.first, self.settings, self._known)
        limit = SECONDS_OF_SILENCE + self.config.seconds
        return BackendWorker(
            process,
            link,
            limit,
            timeout=self.config.seconds,
            has_framework=framework is not None,
        )

    def _exchange_for_sweep(self, worker: BackendWorker) -> bool:
        if worker.has_framework or self._framework_server is None:
            return False
        worker.end()
        self._workers[self._workers.index(worker)] = self._start(for_sweep=True)
        return True

    def _next_message(self, worker: BackendWorker) -> object:
        while isinstance(message := worker.receive(SECONDS_OF_SILENCE), Progress):
            continue
        return message

    def _greet(self, worker: BackendWorker) -> BackendWorker:
        """Wait until a worker has loaded its backend; return it, or its replacement if it died.

        Raises CastigateError if the backend cannot be loaded.
        """
        try:
            match self._next_message(worker):
                case Ready() as ready:
                    self.admit(worker, ready)
                case WorkerFailure(message=message):
                    raise CastigateError(message)
        except WorkerDiedError:
            return self._replace(worker, BEFORE_ANY_TASK)
        return worker

    def admit(self, worker: BackendWorker, ready: Ready) -> None:
        """Mark a worker as ready for tasks, and keep the first worker's report on the backend."""
        self._known = self._known or ready
        worker.is_ready = True

    def _replace(self, worker: BackendWorker, death: Death) -> BackendWorker:
        """Start a new worker in a dead one's place, wait until it is ready, and return it.

        ``death`` is counted. Raises CastigateError if the dead one had no task and nothing outside
        had killed it, or if ``MAX_KILLS`` without a task were killed.
        """
        worker.end()
        self._deaths[death] += 1
        is_given_up = self._deaths[BEFORE_ANY_TASK] >= MAX_KILLS
        if is_given_up or not (worker.was_killed or worker.tasks):
            raise CastigateError(f"backend `{self.backend}` {worker.ending} before its first task")
        new = self._start()
        if worker in self._workers:
            self._workers[self._workers.index(worker)] = new
        return self._greet(new)

    def give_up(self, task: Task, reason: str) -> None:
        """Have all cases and checks of a task judged as crashed by ``reason``, without requests."""
        self._crashes[task.name] = reason
        self._hopeless.add(task.name)

    def _order(self, task: Task) -> TaskOrder:
        is_asked_again = task.name not in self._hopeless
        return TaskOrder(task, self._crashes.get(task.name, ""), is_asked_again)

    def _bury(self, worker: BackendWorker) -> None:
        """Replace a dead worker; a task that has ended workers repeatedly counts as crashed.

        That is after ``MAX_CRASHES``, or after ``MAX_KILLS`` if something outside Castigate killed
        them. The task is the first that the worker had. If it ends more workers while the input at
        fault is searched for, that search is given up too.
        """
        if not worker.tasks:
            self._replace(worker, BEFORE_ANY_TASK)
            return
        task = worker.tasks[0]
        death = (task.name, worker.was_killed)
        if self._deaths[death] + 1 >= (MAX_KILLS if worker.was_killed else MAX_CRASHES):
            if task.name in self._crashes:
                self._hopeless.add(task.name)
            self._crashes[task.name] = f"the process {worker.ending}"
        self._replace(worker, death)


Keep = Callable[[str, bytes], None]
"""Receives the name of each finished task and the bytes of its part."""


@dataclass(frozen=True)
class Setup:
    """The options of a run that every worker needs, on whatever machine it is.

    ``pythons`` are texts ``NAME=PATH``, and ``seconds`` is the time limit of an answer.
    """

    backends: tuple[str, ...]
    pythons: tuple[str, ...]
    seconds: float
    settings: Settings


class Listener:
    """Is notified of the progress of a run; this one ignores every call."""

    def begin_phase(self, words: str) -> None:
        """Show the name of the step that begins; an empty text ends the display."""

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""

    def finish_task(self, task: Task) -> None:
        """Count a task as done."""

    def say(self, message: str) -> None:
        """Show a message to the user."""


class TaskPool(Protocol):
    """The workers of one backend: processes on this machine, or workers of a cluster."""

    backend: str
    log: StderrLog

    @property
    def version(self) -> str:
        """The backend's own version, the same on all workers."""

    @property
    def claimed(self) -> tuple[Claim, ...]:
        """The documents that the backend claims."""

    @property
    def has_chains(self) -> bool:
        """Whether the backend casts in company: one cast after another, in one program."""

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The machines of the workers."""

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """Return the road of each case, by the case's id; raise CastigateError if that fails."""

    def run(
        self,
        tasks: Iterable[Task],
        keep: Keep,
        listener: Listener,
        is_over: Callable[[], bool],
    ) -> None:
        """Do tasks until all are done or ``is_over`` returns true; ``keep`` gets each part."""

    def close(self) -> None:
        """Release what the workers hold for this backend, such as processes."""
