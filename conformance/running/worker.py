"""A worker: one backend in a process of its own, which does the tasks it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection
from time import monotonic

from conformance.judging.meeting import Meeting, Settings
from conformance.running.child_process import live_with_parent
from conformance.running.plan import Task, is_swept
from conformance.sweep.full_tier import swept
from oracles.isolation.launch_config import Home
from oracles.isolation.loading import is_at_home_here, is_isolated, load_isolated
from oracles.isolation.resource_limits import limit_memory
from oracles.isolation.time_limit import Timed
from oracles.reference.sweep_inputs import visit
from oracles.registry import Backend, load_backend
from oracles.smoke_check import smoke
from oracles.wire.stderr_log import Log
from reports.diff.judgement import Judgement
from reports.run_store.store import RunStore
from specs.cases import Case
from specs.errors import CastigateError
from specs.ruling import ruling

SECONDS_BETWEEN_WORDS = 0.2
SECONDS_BETWEEN_SIGNS = 5.0


@dataclass(frozen=True)
class Hello:
    """A worker is ready: what it drives."""

    version: str


@dataclass(frozen=True)
class AskRoads:
    """Asks which road each case takes."""

    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Roads:
    """The road of each case by its id."""

    roads: dict[str, str]


@dataclass(frozen=True)
class Do:
    """Do a task and write its part; of the ids in ``crashed`` it is known that they end a process.

    An empty id stands for a sweep as a whole; it may be asked again where a death harms nobody, to
    find the input.
    """

    task: Task
    store: RunStore
    crashed: dict[str, str] = field(default_factory=dict)
    is_asked_again: bool = True


@dataclass(frozen=True)
class Begun:
    """The case that a worker begins to ask."""

    case: str


@dataclass(frozen=True)
class Told:
    """How many inputs were visited since the last word, and how many answers were wrong."""

    inputs: int
    wrong: int


@dataclass(frozen=True)
class Done:
    """A task's part is written; what a program has said on stderr meanwhile."""

    name: str
    said: bytes = b""


@dataclass(frozen=True)
class Failed:
    """Nothing more can be done: what is wrong, in one line."""

    message: str


def work(link: Connection, name: str, settings: Settings, home: Home) -> None:
    """What a worker process runs."""
    live_with_parent()
    try:
        worker = _Worker(link, name, settings, home)
        link.send(Hello(worker.asked.backend.version))
        while (order := link.recv()) is not None:
            match order:
                case AskRoads(cases=cases):
                    link.send(Roads({case.id: worker.swept.road(case) for case in cases}))
                case Do():
                    order.store.write(order.task.name, worker.done(order))
                    link.send(Done(order.task.name, worker.said()))
    except CastigateError as error:
        link.send(Failed(str(error)))
    except EOFError:
        return


class _Worker:
    """A backend in two places: in a process of its own, and in this one for the speed of a sweep.

    In a Python of its own it is in no other place, and neither is a program.
    """

    def __init__(self, link: Connection, name: str, settings: Settings, home: Home) -> None:
        self.words = _Words(link)
        self.name = name
        self.settings = settings
        self.home = home
        backend = load_isolated(name, home, self.words.live)
        self.asked = Meeting(backend, smoke(backend), settings)

    @cached_property
    def swept(self) -> Meeting:
        """Asks where it is fastest."""
        backend = self.asked.backend
        if not (is_isolated(backend) and is_at_home_here(self.name, self.home)):
            return self.asked
        limit_memory(self.home.memory)
        own = load_backend(self.name)
        timed = Backend(self.name, Timed(own.oracle, self.home.seconds))
        return Meeting(timed, self.asked.broken, self.settings)

    def done(self, order: Do) -> list[Judgement]:
        """What comes of a task."""
        if order.task.sweep is not None:
            return self._swept(order)
        judgements = []
        for case in order.task.cases:
            if case.id in order.crashed:
                judgements.append(self._crashed(case, order.crashed[case.id]))
                continue
            self.words.link.send(Begun(case.id))
            judgement = replace(self.asked.judge(case), road=self._road(case))
            judgements.append(judgement)
            if not (judgement.road and is_swept(case)):
                self.words.link.send(Told(judgement.inputs, judgement.wrong))
        return judgements

    def said(self) -> bytes:
        """What a program has said on stderr since this was asked last."""
        log: Log | None = getattr(self.asked.backend.oracle, "log", None)
        return log.taken() if log is not None else b""

    def _road(self, case: Case) -> str:
        """The road of a case where roads are swept."""
        return self.swept.road(case) if self.settings.tier == "full" else ""

    def _swept(self, order: Do) -> list[Judgement]:
        task, plan = order.task, order.task.sweep
        assert plan is not None
        rulings = [ruling(case) for case in task.cases]
        inputs = visit(plan.way, plan.source, plan.target, rulings, self.settings.seed)
        part = task.bounds(inputs.size)
        self.words.link.send(Begun(""))
        if not order.crashed:
            judgements = swept(self.swept, list(task.cases), inputs, *part, self.words.told)
            self.words.send()
            return judgements
        if order.is_asked_again and is_isolated(self.asked.backend):
            judgements = swept(self.asked, list(task.cases), inputs, *part, lambda *_: None)
            if all(judgement.verdict == "crashed" for judgement in judgements):
                return judgements
        return [self._crashed(case, order.crashed[""]) for case in task.cases]

    def _crashed(self, case: Case, message: str) -> Judgement:
        return Judgement(case.id, self.name, "crashed", message, road=self._road(case))


class _Words:
    """Says now and then how far a sweep has come."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.inputs = self.wrong = 0
        self.last = monotonic()

    def told(self, inputs: int, wrong: int) -> None:
        self.inputs += inputs
        self.wrong += wrong
        if monotonic() - self.last >= SECONDS_BETWEEN_WORDS:
            self.send()

    def live(self) -> None:
        """Say that answers come, be it one by one."""
        if monotonic() - self.last >= SECONDS_BETWEEN_SIGNS:
            self.send()

    def send(self) -> None:
        self.link.send(Told(self.inputs, self.wrong))
        self.inputs = self.wrong = 0
        self.last = monotonic()
