"""Does the tasks of a run on a Dask cluster. Only this process writes the run's folder.

``distributed`` carries tasks and results, finds workers and notices when one is lost. Lost tasks
are retried here: the retries of ``distributed`` would give a task that ends its process to one
worker after the other, and could not say at which task a worker died. So each task is pinned to one
checked worker, and each thread of a worker has one more task at hand. A worker gets no task before
its versions are checked, need not wait for the next one, and this process knows what a lost worker
had.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import product
from time import monotonic
from typing import Any

from conformance.extras.cluster.connection import SECONDS_BETWEEN_LOOKS, Cluster, Job, LostCallError
from conformance.running.plan import Task
from conformance.running.process_pool import Keep, Listener, Setup
from conformance.running.progress import ProgressReporter
from oracles.backend.loading import launch_configs
from oracles.backend.supervised_process import StderrLog
from oracles.claims import Claim
from reports.run_store.record import Environment
from reports.run_store.storage import RESUME_ADVICE
from specs.cases import Case
from specs.errors import CastigateError

SECONDS_FOR_WORKERS = 60.0
"""Seconds to wait for the first worker, and for another one when none is left."""
SECONDS_TO_CLOSE = 5.0
SECONDS_BEFORE_COPY = 5.0
"""A call that has run this long is given to an idle worker too, once no other task is left."""
AT_HAND = 2
"""Calls that a thread has at a time: one that it does, and the next."""
INPUTS_OF_CALL = 1 << 28
"""Inputs of neighboring parts of a sweep that one call does: a call takes some 10 ms of all
processors of a small cluster."""
MAX_LOSSES = 5
"""A task has crashed once this many workers were lost at it; one may also be lost by chance."""
MAX_FAILURES = 3
"""A task of which this many calls raised an error ends the run."""


class DaskPool:
    """The workers of a cluster that do the tasks of one backend.

    ``say`` gets messages for the user. A worker is admitted once its versions are checked.
    """

    def __init__(self, cluster: Cluster, backend: str, setup: Setup, say: Callable[[str], None]):
        # Imported here, because it imports `distributed`, which may be missing.
        self._remote: Any = import_module("conformance.extras.cluster.worker")
        self._cluster = cluster
        self.backend = backend
        self.version = ""
        self.log = StderrLog()
        self._setup = setup
        self._say = say
        self._here = self._remote.installed_here()
        self._threads: dict[str, int] = {}
        self._admitted: dict[str, Any] = {}
        self._refused: dict[str, str] = {}
        self._checks: dict[str, Job] = {}
        self._last_seen = monotonic()
        self._next_look = 0.0

    @property
    def claimed(self) -> tuple[Claim, ...]:
        """The documents that the backend claims, as the first admitted worker reports them."""
        return next((each.claimed for each in self._admitted.values()), ())

    @property
    def has_chains(self) -> bool:
        """Whether an admitted worker reports that the backend runs several casts in one program."""
        return any(each.has_chains for each in self._admitted.values())

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environments of the admitted workers, in the order of their addresses."""
        return tuple(each.environment for _, each in sorted(self._admitted.items()))

    def open(self) -> None:
        """Check all workers, and admit those with our versions and the backend version of most.

        Raise CastigateError if none can be admitted.
        """
        found: dict[str, Any] = {}
        while not self._threads or self._checks:
            self._look()
            if answer := self._cluster.answer():
                _, worker, found[worker] = answer
                self._checks.pop(worker, None)
        found = {worker: found[worker] for worker in sorted(found) if worker in self._threads}
        versions = [each.version for each in found.values() if not isinstance(each, BaseException)]
        self.version = Counter(versions).most_common(1)[0][0] if versions else ""
        # First those with this version, so that the others are refused by comparison with them.
        for worker, each in sorted(found.items(), key=lambda item: self._is_other(item[1])):
            self._judge(worker, each)
        if not self._admitted:
            reason = next(iter(self._refused.values()), "all are gone")
            raise CastigateError(f"no worker of {self._cluster.address} can be used: {reason}")

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """Return the road of each case, by the case's id; raise CastigateError if that fails."""
        found: dict[str, str] = {}
        job = Job(self._remote.roads, (self._setup, self.backend), more=(tuple(cases),))
        self._drive([job], lambda _, answer: found.update(answer))
        return found

    def run(
        self, tasks: Iterable[Task], keep: Keep, listener: Listener, is_over: Callable[[], bool]
    ) -> None:
        """Do all tasks, or stop early once ``is_over`` returns true.

        ``keep`` gets the name and the bytes of each finished task's part. ``listener`` is notified
        of inputs, finished tasks and messages. Raise CastigateError if a task cannot be done.
        """

        def finish(job: Job, done: Any) -> None:
            for message in done.messages:
                listener.say(message)
            self.log.append(done.stderr)
            listener.add_inputs(done.inputs, done.wrong)
            for task, part in zip(job.tasks, done.parts, strict=True):
                keep(task.name, part)
                listener.finish_task(task)

        named = (self._setup, self.backend)
        jobs = [Job(self._remote.do_tasks, named, together) for together in _calls(tasks)]
        self._drive(jobs, finish, is_over)

    def close(self) -> None:
        """End the processes of the backend on all admitted workers, if these answer in time."""
        if self._cluster.client.status != "running":
            return
        jobs = [Job(self._remote.close_idle, (self._setup, self.backend)) for _ in self._admitted]
        last = monotonic() + SECONDS_TO_CLOSE
        with suppress(CastigateError):
            for job, worker in zip(jobs, list(self._admitted), strict=True):
                self._cluster.start(job, worker)
            while any(job.calls for job in jobs) and monotonic() < last:
                self._cluster.answer()
        self._admitted.clear()

    def _drive(
        self,
        jobs: list[Job],
        finish: Callable[[Job, Any], None],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Do all jobs, or stop early once ``is_over`` returns true.

        ``finish`` is called with each job and its result. A job whose worker is lost is done again.
        At the end, slow jobs are also started on a second worker, and the first result counts.
        """
        waiting, left = deque(jobs), set(jobs)
        try:
            while left and not is_over():
                self._look(left, waiting)
                self._hand_out(left, waiting)
                if answer := self._cluster.answer():
                    self._take(*answer, left, waiting, finish)
        finally:
            for job in [*left, *self._checks.values()]:
                self._cluster.drop(job)
            self._checks.clear()

    def _take(
        self,
        job: Job,
        worker: str,
        answer: Any,
        left: set[Job],
        waiting: deque[Job],
        finish: Callable[[Job, Any], None],
    ) -> None:
        if self._checks.get(worker) is job:
            del self._checks[worker]
            self._judge(worker, answer)
        elif isinstance(answer, CastigateError):
            raise CastigateError(f"worker {worker}: {answer}; {RESUME_ADVICE}")
        elif isinstance(answer, LostCallError):
            self._cluster.workers()
            self._lose(job, worker, left, waiting)
        elif isinstance(answer, BaseException):
            self._retry(job, worker, answer, waiting)
        elif job.tasks and answer.installed != self._admitted.get(worker):
            # Another worker has come under the address of one that was checked.
            self._threads.pop(worker, None)
            self._admitted.pop(worker, None)
            self._lose(job, worker, left, waiting)
        else:
            left.discard(job)
            self._cluster.drop(job)
            finish(job, answer)

    def _lose(
        self, job: Job, worker: str, left: set[Job], waiting: deque[Job], was_run: bool = True
    ) -> None:
        """Cancel a job's call on a lost worker, and queue the job again if it has no other call.

        If it ``was_run``, it goes to the end of the queue, and each of its tasks becomes a job, to
        find the one at which workers are lost. Otherwise it goes to the front. Raise CastigateError
        if a job without tasks lost ``MAX_LOSSES`` workers.
        """
        self._cluster.drop(job, worker)
        if not was_run:
            if not job.calls:
                waiting.appendleft(job)
            return
        job.losses += 1
        self._say(f"worker {worker} was lost; its task is done again")
        if not job.tasks and job.losses >= MAX_LOSSES:
            raise CastigateError(
                f"{job.losses} workers of {self._cluster.address} were lost while they prepared "
                f"`{self.backend}`; {RESUME_ADVICE}"
            )
        if job.calls:
            return
        if len(job.tasks) > 1:
            left.discard(job)
            again = [replace(job, tasks=(task,), calls={}) for task in job.tasks]
            left.update(again)
            waiting.extend(again)
        else:
            waiting.append(job)

    def _retry(self, job: Job, worker: str, error: BaseException, waiting: deque[Job]) -> None:
        """Queue a job whose call on a worker raised ``error``, unless another call of it runs.

        Raise CastigateError with this error if the job has failed ``MAX_FAILURES`` times.
        """
        job.failures += 1
        reason = next(iter(str(error).splitlines()), "")[:200]
        failed = f"worker {worker} failed: {type(error).__name__}: {reason}"
        if job.failures >= MAX_FAILURES:
            raise CastigateError(f"{failed}; {RESUME_ADVICE}")
        self._say(f"{failed}; its task is done again")
        if not job.calls:
            waiting.append(job)

    def _look(self, left: set[Job] | None = None, waiting: deque[Job] | None = None) -> None:
        """Drop workers that have left the cluster, and start checks of new ones.

        ``left`` are the unfinished jobs, and ``waiting`` those in the queue; calls on workers that
        left are queued again. Do nothing if the last look was less than ``SECONDS_BETWEEN_LOOKS``
        ago. Raise CastigateError if there was no usable worker for ``SECONDS_FOR_WORKERS``.
        """
        if monotonic() < self._next_look:
            return
        self._next_look = monotonic() + SECONDS_BETWEEN_LOOKS
        left = set() if left is None else left
        waiting = deque() if waiting is None else waiting
        threads = self._cluster.workers()
        for worker in self._threads.keys() - threads.keys():
            self._admitted.pop(worker, None)
            self._refused.pop(worker, None)
            if check := self._checks.pop(worker, None):
                self._cluster.drop(check)
            for place, job in enumerate(_in_order(worker, left)):
                # A job that the worker only had at hand did not cause the loss.
                was_run = place < self._threads[worker]
                self._lose(job, worker, left, waiting, was_run)
        for worker in sorted(threads.keys() - self._threads.keys()):
            job = Job(self._remote.installed, (self._setup, self.backend))
            self._checks[worker] = job
            self._cluster.start(job, worker, len(threads))
        self._threads = threads
        if self._admitted or self._checks:
            self._last_seen = monotonic()
        elif monotonic() - self._last_seen > SECONDS_FOR_WORKERS:
            raise CastigateError(
                f"the Dask scheduler at {self._cluster.address} has no worker; start some with "
                f"`dask worker {self._cluster.address} --nthreads 1`"
            )

    def _hand_out(self, left: set[Job], waiting: deque[Job]) -> None:
        """Start jobs on all admitted workers, at most ``AT_HAND`` for each of their threads.

        Each thread gets a first job before any gets a second. If the queue ``waiting`` is empty, a
        thread without a job takes over one of another worker.
        """
        busy = Counter(worker for job in left for worker in job.calls)
        for at_hand, worker in product(range(1, AT_HAND + 1), self._admitted):
            for _ in range(busy[worker], at_hand * self._threads.get(worker, 0)):
                if waiting:
                    job: Job | None = waiting.popleft()
                else:
                    job = self._taken_over(worker, left) if at_hand == 1 else None
                if job is None:
                    break
                busy[worker] += 1
                more: tuple[Any, ...] = (len(self._threads),)
                if job.tasks:
                    crash = f"{job.losses} workers were lost" if job.losses >= MAX_LOSSES else ""
                    more += (job.tasks, crash)
                self._cluster.start(job, worker, *more, *job.more)

    def _taken_over(self, worker: str, left: set[Job]) -> Job | None:
        """Return a job of another worker that ``worker`` can take over, or None.

        Preferably it is one that the other has not begun, and whose call there is canceled.
        Otherwise it is a slow one, of which ``worker`` does a copy.
        """
        for other, threads in self._threads.items():
            if other != worker and (at_hand := _in_order(other, left)[threads:]):
                self._cluster.drop(at_hand[-1], other)
                return at_hand[-1]
        last = monotonic() - SECONDS_BEFORE_COPY
        slow = [job for job in left if job.begun < last and list(job.calls) not in ([], [worker])]
        return min((job for job in slow if len(job.calls) == 1), key=_begun, default=None)

    def _judge(self, worker: str, found: Any) -> None:
        """Admit a worker if its versions are those of this process and of any admitted workers.

        Otherwise note why it is refused, and tell the user unless no worker is admitted yet.
        ``found`` is its report, an ``Installed``, or the exception in place of one.
        """
        if isinstance(found, ModuleNotFoundError) or "No module named" in str(found):
            reason = f"it cannot import a module ({found})"
        elif isinstance(found, BaseException):
            reason = str(found) or type(found).__name__
        else:
            reason = "; ".join(self._differences(found))
        if not reason:
            self._admitted[worker] = found
            return
        self._refused[worker] = f"worker {worker} is refused: {reason}"
        # If all are refused, the error says why.
        if self._admitted:
            self._say(f"{self._refused[worker]}; install the same there and start it again")

    def _is_other(self, found: Any) -> bool:
        return isinstance(found, BaseException) or any(self._differences(found))

    def _differences(self, found: Any) -> Iterator[str]:
        others = self._admitted.values()
        here, there = self._here.facts(), found.facts()
        here |= next(iter(others)).facts() if others else there | here
        here[self.backend], there[self.backend] = self.version, found.version
        for name in here | there:
            if here.get(name) != there.get(name):
                yield f"it has {name} {there.get(name)}, not {here.get(name)}"


def _calls(tasks: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """Group tasks by call: one task, or neighboring parts of a sweep up to ``INPUTS_OF_CALL``."""
    together: list[Task] = []
    for task in tasks:
        weights = [each.weight for each in [*together, task]]
        is_next = task.sweep is not None and together and together[0].sweep == task.sweep
        if together and not (is_next and sum(weights) <= INPUTS_OF_CALL):
            yield tuple(together)
            together = []
        together.append(task)
    if together:
        yield tuple(together)


def _begun(job: Job) -> float:
    return job.begun


def _in_order(worker: str, jobs: Iterable[Job]) -> list[Job]:
    return sorted((job for job in jobs if worker in job.calls), key=_begun)


@contextmanager
def cluster_pools(
    address: str, setup: Setup, reporter: ProgressReporter
) -> Iterator[list[DaskPool]]:
    """Connect to a cluster, and yield a pool of its workers for each backend.

    At the end, the pools and the connection are closed; until then, logging is off in this process.
    Raise CastigateError for a malformed address or backend, if ``distributed`` is missing, or if
    there is no scheduler or no usable worker.
    """
    launch_configs(setup.backends, (), setup.seconds)
    disabled = logging.root.manager.disable
    # Errors of the cluster are reported in our own messages.
    logging.disable(logging.CRITICAL)
    cluster, pools = None, []
    try:
        cluster = Cluster(address)
        for backend in setup.backends:
            reporter.begin_phase(f"loading {backend}")
            pools.append(DaskPool(cluster, backend, setup, reporter.say))
            pools[-1].open()
        reporter.begin_phase("")
        yield pools
    finally:
        for pool in pools:
            pool.close()
        if cluster is not None:
            with suppress(Exception):
                cluster.client.close(timeout=SECONDS_TO_CLOSE)
        logging.disable(disabled)
