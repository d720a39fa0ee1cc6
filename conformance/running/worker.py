"""A worker process: loads one backend and does the tasks that it is sent, under a time limit."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.connection import Connection
from time import monotonic
from typing import TypeVar

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.running.plan import Task
from conformance.running.supervisor import WorkerFailure, live_with_parent
from conformance.sweep.plan import is_swept
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import (
    can_run_in_process,
    deaths_of,
    drives_framework,
    is_isolated,
    load_isolated,
    seconds_waited,
)
from oracles.backend.remote_errors import ProcessDied
from oracles.backend.resource_limits import limit_memory, return_freed_memory
from oracles.backend.supervised_process import StderrLog
from oracles.claims import Claim
from oracles.protocol import (
    CAPABILITIES,
    Bits,
    Bound,
    DeviceSwept,
    Oracle,
    WithBind,
    WithDeviceSweep,
    chain_roads_of,
    offers,
)
from oracles.reference.sweep_inputs import input_sequence
from oracles.registry import Backend, is_builtin, load_backend
from reports.judgement import FAILING, Judgement
from reports.problems import Died
from reports.run_store.task_file import encode_task
from specs.cases import Case
from specs.errors import IS_A_BUG, CastigateError
from specs.house_rules import know_rules
from specs.loader import know_document
from specs.operations import methods_of_families
from specs.plain_text import plain_line
from specs.ruling import ruling

SECONDS_BETWEEN_MESSAGES = 0.2
SECONDS_BETWEEN_HEARTBEATS = 5.0


@dataclass(frozen=True)
class Ready:
    """Sent when the backend is loaded: its version, its claims, whether it makes chains of casts.

    ``broken`` has a message of the smoke check for each dtype that comes back changed.
    """

    version: str
    claimed: tuple[Claim, ...]
    broken: Mapping[str, str]
    has_chains: bool = False


@dataclass(frozen=True)
class RoadsRequest:
    """A message that requests the road of each case."""

    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Roads:
    """The answer to a RoadsRequest: the road of each case, by the case's id."""

    roads: dict[str, str]


@dataclass(frozen=True)
class TaskOrder:
    """A message that requests a task.

    If the task is known to end a process, ``crash`` says how, and its cases get the verdict
    `crashed`. With ``is_asked_again`` such a sweep is first repeated in the isolated process, where
    a crash harms nothing else, to find the input.
    """

    task: Task
    crash: str = ""
    is_asked_again: bool = True


@dataclass(frozen=True)
class Progress:
    """How many inputs were tested since the last such message, and how many answers were wrong."""

    inputs: int
    wrong: int


@dataclass(frozen=True)
class TaskDone:
    """Sent when a task is done: the bytes of its part, and what a program has printed on stderr.

    ``seconds`` is the time that the task took, ``waited`` the part of it spent on waiting for the
    backend.
    """

    part: bytes
    stderr: bytes
    seconds: float = 0.0
    waited: float = 0.0


KEPT_BETWEEN_TASKS = 384 << 20
"""Bytes of a worker beyond which a finished task's memory is not kept for the next one.

Few tasks need as much, and these need it only for a while."""
NamedLaunch = tuple[str, LaunchConfig]
"""A backend's name, and how it is started."""


def work(
    link: Connection,
    named: NamedLaunch,
    first: NamedLaunch | None,
    settings: Settings,
    known: Ready | None = None,
) -> None:
    """Load a backend, then answer the link's requests and tasks until its other end closes it.

    ``first`` is the first variant of the framework, with which the backend is compared. If another
    worker has loaded the backend before, ``known`` is that worker's report: it is sent at once, and
    the backend is loaded when it is first needed. An error is sent as ``WorkerFailure`` and ends
    the work; only a lack of memory is raised.
    """
    live_with_parent()
    for text in settings.documents:
        know_document(text)
    for name, text in settings.rules:
        know_rules(name, text)
    try:
        worker = TaskRunner(link, named, first, settings, known)
        link.send(known or worker.ready)
        while True:
            match link.recv():
                case RoadsRequest(cases=cases):
                    link.send(Roads({case.id: worker.road(case) for case in cases}))
                case TaskOrder() as order:
                    begun, waited = monotonic(), worker.waited
                    part = encode_task(order.task.name, worker.judge(order))
                    seconds = monotonic() - begun, worker.waited - waited
                    link.send(TaskDone(part, worker.take_stderr(), *seconds))
                    return_freed_memory(beyond=KEPT_BETWEEN_TASKS)
    except CastigateError as error:
        link.send(WorkerFailure(str(error), isinstance(error, NotLoadedError)))
    except ProcessDied as crash:
        # Without a road a case would not be swept, and could pass.
        link.send(WorkerFailure(f"backend `{named[0]}`: {crash}; it was asked for its `road`"))
    except EOFError:
        return
    except MemoryError:
        raise  # the process ends, and another one does the task again
    except Exception:
        # If this error ended the process, the pool would take it for a crash of the backend.
        traceback.print_exc()
        link.send(WorkerFailure(IS_A_BUG))


class NotLoadedError(CastigateError):
    """The backend could not be loaded in this process."""


class TaskRunner:
    """Drives a backend isolated in its own process, and for fast sweeps also in this one.

    A program, a backend in another Python, and a backend that a gate judges are driven in their own
    process only. The backend is loaded in either place when a task first needs it there.
    """

    def __init__(
        self,
        link: Connection,
        named: NamedLaunch,
        first: NamedLaunch | None,
        settings: Settings,
        known: Ready | None = None,
    ) -> None:
        self.progress = _ProgressSender(link)
        self.name, self.config = named
        self.first = first
        self.settings = settings
        self._known = known

    def _judge_of(
        self, named: NamedLaunch, broken: Mapping[str, str] | None = None
    ) -> BackendJudge:
        name, config = named
        # An adapter's statement about itself may not leave out a check of a gate, unless it is
        # built in.
        shares_answers = not self.settings.isolates_sweeps or is_builtin(name)
        config = replace(config, shares_answers=shares_answers)
        backend = load_isolated(name, config, self.progress.send_heartbeat)
        return BackendJudge(backend, broken, self.settings)

    @property
    def ready(self) -> Ready:
        """Load the backend in a process of its own, and report on it.

        Raises NotLoadedError if it cannot be loaded.
        """
        backend = self.isolated.backend
        has_chains = bool(chain_roads_of(backend.oracle))
        return Ready(backend.version, backend.claimed, self.isolated.broken, has_chains)

    @cached_property
    def isolated(self) -> BackendJudge:
        """The backend in a process of its own; raises NotLoadedError if it cannot be loaded.

        Raises CastigateError if another worker has loaded another version.
        """
        broken = self._known.broken if self._known else None
        try:
            judge = self._judge_of((self.name, self.config), broken)
        except CastigateError as error:
            raise NotLoadedError(str(error)) from error
        self._require_known_version(judge.backend)
        return judge

    def _require_known_version(self, backend: Backend) -> None:
        if self._known is not None and self._known.version != backend.version:
            raise CastigateError(
                f"backend `{self.name}` is version {backend.version} now, and was "
                f"{self._known.version}; run again with one version"
            )

    @cached_property
    def first_variant(self) -> BackendJudge:
        """The first variant of the framework, in a process of its own."""
        assert self.first is not None
        return self._judge_of(self.first)

    @cached_property
    def fastest(self) -> BackendJudge:
        """The backend in this process, with a time limit, if that is allowed; else ``isolated``."""
        can_be_here = can_run_in_process(self.name, self.config)
        if self.settings.isolates_sweeps or not (drives_framework(self.name) and can_be_here):
            return self.isolated
        broken = self._known.broken if self._known else self.isolated.broken
        limit_memory(self.config.memory)
        own = load_backend(self.name)
        self._require_known_version(own)
        timed = Backend(self.name, TimeLimited(own.oracle, self.config.seconds))
        return BackendJudge(timed, broken, self.settings)

    @property
    def waited(self) -> float:
        """Seconds spent on waiting for the isolated backend so far."""
        return seconds_waited(self.isolated.backend) if "isolated" in vars(self) else 0.0

    def road(self, case: Case) -> str:
        """The road of a case, empty if it is declined; raise ProcessDied if the process dies."""
        return self.isolated.client.road(case)

    def judge(self, order: TaskOrder) -> list[Judgement]:
        """Do a task; return a judgement per case, and then one per check.

        The task of a sweep is judged on its share of the inputs, and has no checks. With
        ``order.crash`` all are judged as crashed, but a sweep may be repeated first.
        """
        task = order.task
        if task.sweep is not None:
            return self._judge_sweep(order)
        if order.crash:
            crashed = [self._crashed(case, order.crash) for case in task.cases]
            one = self._crashed(task.among[0], order.crash)
            return [*crashed, *(replace(one, check=check) for check in task.checks)]
        first = self.first_variant if self.first is not None and task.checks else None
        deaths = deaths_of(self.isolated.backend)
        before = len(deaths)
        found = self.isolated.judge_pair(task.cases, task.checks, task.among, first)
        found = with_repeated_crashes(found, deaths[before:])
        judged = [
            replace(self._kept(judgement), road=self._road(case))
            for case, judgement in zip(task.cases, found, strict=False)
        ]
        # The inputs of a case that is swept as well are counted there.
        counted = [
            each
            for case, each in zip(task.cases, judged, strict=True)
            if not (each.road and is_swept(case))
        ]
        self.progress.add(sum(each.inputs for each in counted), sum(each.wrong for each in counted))
        self.progress.send()
        return [*judged, *found[len(judged) :]]

    def _kept(self, judgement: Judgement) -> Judgement:
        if self.settings.keeps_all_answers or judgement.verdict in FAILING:
            return judgement
        return replace(judgement, answered=None, answer_digest=None)

    def take_stderr(self) -> bytes:
        """Return what the backend, if it is a program, printed on stderr since the last call."""
        if "isolated" not in vars(self):
            return b""
        log: StderrLog | None = getattr(self.isolated.backend.oracle, "log", None)
        return log.drain() if log is not None else b""

    def _road(self, case: Case) -> str:
        return self.road(case) if self.settings.is_full(case) else ""

    def _judge_sweep(self, order: TaskOrder) -> list[Judgement]:
        from conformance.sweep.engine import swept  # Only the tier full needs the engine.

        task, sweep = order.task, order.task.sweep
        assert sweep is not None
        rulings = [ruling(case) for case in task.cases]
        inputs = input_sequence(sweep.way, sweep.source, sweep.target, rulings, self.settings.seed)
        bounds = task.bounds(inputs.size)
        cases = list(task.cases)
        if not order.crash:
            deaths = deaths_of(self.fastest.backend)
            before = len(deaths)
            judgements = swept(self.fastest, cases, inputs, *bounds, self.progress.add)
            self.progress.send()
            return with_repeated_crashes(judgements, deaths[before:])
        if order.is_asked_again and is_isolated(self.isolated.backend):
            judgements = swept(self.isolated, cases, inputs, *bounds, lambda *_: None)
            if all(judgement.verdict == "crashed" for judgement in judgements):
                return judgements
        return [self._crashed(case, order.crash) for case in cases]

    def _crashed(self, case: Case, message: str) -> Judgement:
        return Judgement(case.id, self.name, "crashed", (Died(message),), road=self._road(case))


class _ProgressSender:
    """Counts inputs; ``add`` sends the counts at most every ``SECONDS_BETWEEN_MESSAGES``."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.inputs = self.wrong = 0
        self.last_sent = monotonic()

    def add(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""
        self.inputs += inputs
        self.wrong += wrong
        if monotonic() - self.last_sent >= SECONDS_BETWEEN_MESSAGES:
            self.send()

    def send_heartbeat(self) -> None:
        """Send the counts, even of nothing, if nothing was sent for ``SECONDS_BETWEEN_HEARTBEATS``.

        So a slow task does not count as silence.
        """
        if monotonic() - self.last_sent >= SECONDS_BETWEEN_HEARTBEATS:
            self.send()

    def send(self) -> None:
        """Send what was counted since the last time."""
        self.link.send(Progress(self.inputs, self.wrong))
        self.inputs = self.wrong = 0
        self.last_sent = monotonic()


def with_repeated_crashes(
    judgements: Sequence[Judgement], deaths: Sequence[str]
) -> list[Judgement]:
    """Return a task's judgements, with ``deaths`` as a problem of its first check or case.

    ``deaths`` has a message for each time that the backend's process died. The first case gets the
    problem only if there is no check, and none gets it if a judgement has a ``Died`` already.
    Requests of all cases of a pair travel together, so it is unknown which of them ended the
    process.
    """
    found = list(judgements)
    is_said = any(isinstance(each, Died) for one in found for each in one.problems)
    if deaths and found and not is_said:
        at = next((at for at, each in enumerate(found) if each.check), 0)
        times = "once" if len(deaths) == 1 else f"{len(deaths):,} times"
        how = f"died {times}, and answered when asked again: {plain_line(deaths[0])}"
        found[at] = replace(found[at], problems=(*found[at].problems, Died(how)))
    return found


Limited = TypeVar("Limited")


class TimeLimited:
    """An oracle that has the system end this process by SIGALRM when a call takes too long.

    No Python code has to run for that, so a kernel that never returns is ended too. ``cast``,
    ``bind`` and ``device_sweep`` are limited; the oracle's other capabilities are forwarded.
    """

    def __init__(self, oracle: Oracle, seconds: float) -> None:
        self._oracle = oracle
        self._seconds = seconds
        self.name, self.version = oracle.name, oracle.version
        for member in (*CAPABILITIES, *methods_of_families()):
            if offers(oracle, member):
                setattr(self, member, getattr(oracle, member))
        if isinstance(oracle, WithBind):
            self.bind = self._limited_bind(oracle)
        if isinstance(oracle, WithDeviceSweep):
            self.device_sweep = self._limited_device_sweep(oracle)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` as the oracle casts them; past the limit, SIGALRM ends this process.

        No exception is raised then. Errors of the oracle, such as Unsupported, pass through.
        """
        return self._limited(lambda: self._oracle.cast(case, bits))

    def _limited_bind(self, oracle: WithBind) -> Callable[[Case, Bits], Bound]:
        def bind(case: Case, bits: Bits) -> Bound:
            call = self._limited(lambda: oracle.bind(case, bits))
            return lambda: self._limited(call)

        return bind

    def _limited_device_sweep(self, oracle: WithDeviceSweep) -> Callable[[Case, int], DeviceSwept]:
        def device_sweep(case: Case, most: int) -> DeviceSwept:
            call = self._limited(lambda: oracle.device_sweep(case, most))
            return lambda first, count: self._limited(lambda: call(first, count))

        return device_sweep

    def _limited(self, call: Callable[[], Limited]) -> Limited:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
