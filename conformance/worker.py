"""A worker: one backend in a process of its own, which does the tasks it is sent."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from time import monotonic

from conformance.forms import fastest
from conformance.meet import Meeting, Settings
from conformance.plan import Task, is_swept
from conformance.sweep import sweep
from oracles.reference.visits import visit
from oracles.registry import load_backend
from oracles.smoke import smoke
from reports.judgement import Judgement
from reports.store import RunStore
from specs.cases import Case
from specs.errors import CastigateError
from specs.ruling import ruling

SECONDS_BETWEEN_WORDS = 0.2
PR_SET_PDEATHSIG = 1


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

    An empty id stands for a sweep as a whole.
    """

    task: Task
    store: RunStore
    crashed: dict[str, str] = field(default_factory=dict)


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
    """A task's part is written."""

    name: str


@dataclass(frozen=True)
class Failed:
    """Nothing more can be done: what is wrong, in one line."""

    message: str


def work(link: Connection, name: str, settings: Settings) -> None:
    """What a worker process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _ask_to_be_killed()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        meeting = _meeting(name, settings)
        link.send(Hello(meeting.backend.version))
        while (order := link.recv()) is not None:
            match order:
                case AskRoads(cases=cases):
                    link.send(Roads({case.id: meeting.road(case) for case in cases}))
                case Do():
                    order.store.write(order.task.name, _done(link, meeting, order))
                    link.send(Done(order.task.name))
    except CastigateError as error:
        link.send(Failed(str(error)))
    except EOFError:
        return


def _ask_to_be_killed() -> None:
    """On Linux the system itself ends a worker whose parent is gone, even one that is in C code."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_parent() -> None:
    """A killed parent leaves no worker behind."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _meeting(name: str, settings: Settings) -> Meeting:
    backend = load_backend(name)
    return Meeting(backend, smoke(backend), settings)


def _done(link: Connection, meeting: Meeting, order: Do) -> list[Judgement]:
    task = order.task
    if task.sweep is not None:
        return _swept(link, meeting, order)
    judgements = []
    for case in task.cases:
        if case.id in order.crashed:
            message = order.crashed[case.id]
            crashed = Judgement(case.id, meeting.backend.name, "crashed", message)
            judgements.append(replace(crashed, road=meeting.road(case)))
            continue
        link.send(Begun(case.id))
        judgement = replace(meeting.judge(case), road=meeting.road(case))
        judgements.append(judgement)
        if meeting.settings.tier == "quick" or not (
            judgement.road and is_swept(ruling(case), case)
        ):
            link.send(Told(judgement.inputs, judgement.wrong))
    return judgements


def _swept(link: Connection, meeting: Meeting, order: Do) -> list[Judgement]:
    task, plan = order.task, order.task.sweep
    assert plan is not None
    if order.crashed:
        message = next(iter(order.crashed.values()))
        return [Judgement(case.id, meeting.backend.name, "crashed", message) for case in task.cases]
    rulings = [ruling(case) for case in task.cases]
    inputs = visit(plan.way, plan.source, plan.target, rulings, meeting.settings.seed)
    lo, hi = task.bounds(inputs.size)
    link.send(Begun(""))
    words = _Words(link)
    judgements = sweep(meeting, list(task.cases), inputs, lo, hi, fastest(), words.told)
    words.send()
    return judgements


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

    def send(self) -> None:
        self.link.send(Told(self.inputs, self.wrong))
        self.inputs = self.wrong = 0
        self.last = monotonic()
