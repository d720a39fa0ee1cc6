"""The workers of one backend: hands tasks out, restarts workers that died, names crashing cases."""

from __future__ import annotations

import math
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from conformance.judging.backend_judge import Settings
from conformance.running.fork_server import ForkServer
from conformance.running.plan import Task
from conformance.running.supervisor import (
    Failure,
    Worker,
    WorkerDiedError,
    spawn,
    supervise,
)
from conformance.running.task_pool import Keep, Listener
from conformance.running.worker import (
    CaseStarted,
    Progress,
    Ready,
    Roads,
    RoadsRequest,
    TaskDone,
    TaskOrder,
    work,
)
from oracles.isolation.launch_config import LaunchConfig
from oracles.isolation.loading import can_run_in_process
from oracles.isolation.supervised_process import describe_timeout
from oracles.registry import first_road, forkable_package
from oracles.wire.stderr_log import StderrLog
from reports.run_store.record import Environment, current_environment
from specs.cases import Case
from specs.errors import CastigateError

Death = tuple[str, str, bool]
"""A task's name, the id of the case that was asked, and whether the process was killed."""
BEFORE_ANY_TASK: Death = ("", "", True)
MAX_CRASHES = 2
"""A case that ends its process so often has crashed."""
MAX_KILLS = 25
"""A case whose process is killed so often from outside, for want of memory say, has crashed."""
SECONDS_OF_SILENCE = 300.0
"""Seconds that a worker may be silent, besides the time limit of an answer."""


@dataclass(eq=False)
class BackendWorker(Worker[Task]):
    """A worker, with the case that it is at."""

    timeout: float = math.inf
    """Seconds that one answer of the backend may take."""
    has_framework: bool = False
    """Whether it was forked from a process that has imported the backend's framework."""
    case: str = ""

    @property
    def ending(self) -> str:
        """How the process has ended, as a predicate."""
        if self.was_silent:
            return describe_timeout(SECONDS_OF_SILENCE)
        if self.process.exitcode == -signal.SIGALRM:
            return describe_timeout(self.timeout)
        return super().ending


class ProcessPool:
    """The workers of one backend; the first is started on entering the context.

    ``server`` forks the workers, without one they are spawned. If ``sweeps`` says that there may be
    sweeps, a second server imports the backend's framework while the first worker loads the
    backend. The workers that sweep are forked from it.
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
        first = first_road(configs, backend)
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
        self._deaths: Counter[Death] = Counter()
        self._crashed: dict[str, dict[str, str]] = {}
        """The crashed cases of each task, with the reason."""
        self._hopeless: set[str] = set()
        """Tasks that also end a process that only searches for the input at fault."""

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
        """End all workers."""
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
    def environments(self) -> tuple[Environment, ...]:
        """The machine of this process, on which all workers run."""
        return (current_environment(),)

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """Return the road of each case, by its id."""
        worker = self._workers[0]
        while True:
            try:
                worker.send(RoadsRequest(tuple(cases)))
                match self._next_message(worker):
                    case Roads(roads=roads):
                        return roads
                    case Failure(message=message):
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
        """Do all tasks, or as many as can be done in time."""
        waiting = deque(tasks)
        for task in list(waiting)[len(self._workers) : self.jobs]:
            self._workers.append(self._start(for_sweep=task.sweep is not None))
        supervise(self._workers, _TaskQueue(self, waiting, keep, listener), is_over)

    def _start(self, for_sweep: bool = False) -> BackendWorker:
        """Start a worker, with the framework imported if it is for a sweep."""
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

    def exchange_for_sweep(self, worker: BackendWorker) -> bool:
        """Replace an idle worker by one that has imported the framework, if there can be one."""
        if worker.has_framework or self._framework_server is None:
            return False
        worker.end()
        self._workers[self._workers.index(worker)] = self._start(for_sweep=True)
        return True

    def _next_message(self, worker: BackendWorker) -> object:
        """Return a worker's next message that is not about progress."""
        while isinstance(message := worker.receive(SECONDS_OF_SILENCE), Progress):
            continue
        return message

    def _greet(self, worker: BackendWorker) -> BackendWorker:
        """Wait until a worker has loaded its backend; replace it if it was killed meanwhile."""
        try:
            match self._next_message(worker):
                case Ready() as ready:
                    self.admit(worker, ready)
                case Failure(message=message):
                    raise CastigateError(message)
        except WorkerDiedError:
            return self._replace(worker, BEFORE_ANY_TASK)
        return worker

    def admit(self, worker: BackendWorker, ready: Ready) -> None:
        """Note that a worker can be given tasks."""
        self._known = self._known or ready
        worker.is_ready = True

    def _replace(self, worker: BackendWorker, death: Death) -> BackendWorker:
        """Start a new worker in a dead one's place; raise if the backend cannot be loaded."""
        worker.end()
        self._deaths[death] += 1
        is_given_up = self._deaths[BEFORE_ANY_TASK] >= MAX_KILLS
        if is_given_up or not (worker.was_killed or worker.task):
            raise CastigateError(f"backend `{self.backend}` {worker.ending} before its first task")
        new = self._start()
        if worker in self._workers:
            self._workers[self._workers.index(worker)] = new
        return self._greet(new)

    def give_up(self, task: Task, reason: str) -> None:
        """Count all cases and checks of a task as crashed; the backend is not asked about them."""
        names = ("", *(case.id for case in task.cases), *task.checks)
        self._crashed[task.name] = dict.fromkeys(names, reason)
        self._hopeless.add(task.name)

    def order(self, task: Task) -> TaskOrder:
        """Build the message that hands a task to a worker."""
        is_asked_again = task.name not in self._hopeless
        return TaskOrder(task, self._crashed.get(task.name, {}), is_asked_again)

    def bury(self, worker: BackendWorker) -> None:
        """Replace a worker that died at a task; the case counts as crashed if that is repeated."""
        task = worker.task
        if task is None:
            self._replace(worker, BEFORE_ANY_TASK)
            return
        death = (task.name, worker.case, worker.was_killed)
        if self._deaths[death] + 1 >= (MAX_KILLS if worker.was_killed else MAX_CRASHES):
            crashed = self._crashed.setdefault(task.name, {})
            if worker.case in crashed:
                self._hopeless.add(task.name)
            crashed[worker.case] = f"the process {worker.ending}"
        self._replace(worker, death)


class _TaskQueue:
    """The tasks of a run that are not done yet, as the supervisor's client."""

    def __init__(
        self, pool: ProcessPool, waiting: deque[Task], keep: Keep, listener: Listener
    ) -> None:
        self._pool = pool
        self._waiting = waiting
        self._keep = keep
        self._listener = listener

    def feed(self, worker: BackendWorker) -> None:
        """Hand out the next task."""
        if not self._waiting:
            return
        if self._waiting[0].sweep is not None and self._pool.exchange_for_sweep(worker):
            return
        task = self._waiting.popleft()
        worker.task, worker.case, worker.last_heard = task, "", monotonic()
        # If an idle worker died, the next receive reports it.
        with suppress(WorkerDiedError):
            worker.send(self._pool.order(task))

    def receive(self, worker: BackendWorker, message: object) -> None:
        """Note how far a task has come."""
        match message:
            case Ready() as ready:
                self._pool.admit(worker, ready)
            case CaseStarted(case=case):
                worker.case = case
            case Progress(inputs=inputs, wrong=wrong):
                self._listener.add_inputs(inputs, wrong)
            case TaskDone(part=part, stderr=stderr):
                task, worker.task = worker.task, None
                assert task is not None
                self.feed(worker)  # so that it works while the part is written to the disk
                self._keep(task.name, part)
                self._pool.log.append(stderr)
                self._listener.finish_task(task)
            case Failure(message=reason):
                raise CastigateError(reason)

    def died(self, worker: BackendWorker) -> None:
        """Start another worker, and have it do the task again."""
        if worker.task is not None:
            self._listener.say(
                f"a worker of {self._pool.backend} {worker.ending}; its task is done again"
            )
            self._waiting.appendleft(worker.task)
        self._pool.bury(worker)
