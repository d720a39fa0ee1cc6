"""Helper processes of a long pytest run: they judge, and pytest reports their verdicts in order.

pytest itself judges what helpers leave when they are lost, and what a helper cannot judge.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

import pytest

from conformance.judging.backend_judge import Settings
from conformance.judging.questions import Judged, Question, judges_of
from conformance.running.fork_server import fork_or_spawn
from conformance.running.selection import select
from conformance.running.supervisor import (
    ChildProcess,
    Failure,
    Worker,
    WorkerDiedError,
    live_with_parent,
    supervise,
)
from conformance.suite.durations import PairKey, Spent, Stopwatch, measured
from conformance.suite.failures import Failures
from conformance.suite.items import JudgedItem
from conformance.suite.xdist_workers import gives_out_work, is_worker
from oracles.isolation.launch_config import LaunchConfig
from oracles.isolation.loading import description_of, load_isolated
from oracles.registry import Backend
from specs.cases import Case
from specs.errors import CastigateError

MAX_HELPERS = 4
"""pytest itself takes a third of a millisecond to report an item: more would wait for it."""
GROUPS_IN_HAND = 2
"""Groups that a helper has at a time, so that it need not wait for the next one."""
LAST_GROUPS = 16
"""The last groups are handed out one by one, so that all helpers finish at about the same time."""
SECONDS_BETWEEN_FLUSHES = 0.05
MIN_ITEMS = 2000
"""Fewer items are judged by pytest before a helper has loaded a framework."""

SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""Options of pytest that leave items out."""

Key = tuple[str, str]
"""The names of a backend and of a question."""
Findings = dict[Key, Judged]


@dataclass(frozen=True)
class HelperConfig:
    """Holds the settings with which a helper asks the same questions as pytest."""

    launch_configs: dict[str, LaunchConfig]
    settings: Settings
    documents: tuple[str, ...]
    failures: Failures
    is_measured: bool = False


@dataclass(eq=False)
class Group:
    """Questions that are judged together, as those of a pair are, and what a helper finds."""

    keys: list[Key]
    found: Future[Findings] = field(default_factory=Future)


@dataclass(frozen=True)
class Found:
    """A helper's judgements of a group, with the seconds of each pair if it measures them."""

    judged: Findings
    spent: Mapping[PairKey, Spent]


@dataclass(frozen=True)
class Loaded:
    """A helper's message that its backends are loaded, with how each describes itself."""

    descriptions: dict[str, Any]


def run_helper(link: Connection, config: HelperConfig) -> None:
    """Load the backends, and judge each list of keys that the link sends."""
    live_with_parent()
    cases = select(config.documents)
    try:
        backends = [load_isolated(name, each) for name, each in config.launch_configs.items()]
    except CastigateError as error:
        link.send(Failure(f"could not begin: {error}"))
        return
    link.send(Loaded({backend.name: description_of(backend) for backend in backends}))
    backend_judges = judges_of(backends, config.settings, cases)
    stopwatch = Stopwatch() if config.is_measured else None
    judges = {
        (backend.name, question.name): question.judge
        for backend, questions in measured(stopwatch, backend_judges, cases)
        for question in questions()
    }
    with suppress(EOFError):
        while True:
            keys: list[Key] = link.recv()
            found = {key: _judge(judges[key], config.failures) for key in keys}
            judged = {key: each for key, each in found.items() if each is not None}
            link.send(Found(judged, stopwatch.take() if stopwatch else {}))


def _judge(judge: Callable[[], Judged], failures: Failures) -> Judged | None:
    """Return a judgement without answers, which are stored if it fails.

    If the suite itself fails it is None, so that pytest meets the same failure.
    """
    try:
        case, judgement = judge()
    except Exception:
        return None
    failures.add(judgement)
    return case, replace(judgement, answered=None)


Helper = Worker[deque[Group]]


class Helpers:
    """The helpers, the groups that nobody has begun, and the thread that hands these out."""

    def __init__(
        self, config: HelperConfig, count: int, stopwatch: Stopwatch | None = None
    ) -> None:
        self.lost: list[str] = []
        """How helpers ended that did not stay to the end, as predicates."""
        self.before_waiting: Callable[[], None] = lambda: None
        """Called before pytest waits for a helper."""
        self._config = config
        self._count = count
        self._stopwatch = stopwatch
        self._helpers: list[Helper] = []
        self._processes: list[ChildProcess] = []
        self._descriptions: dict[str, Any] = {}
        self._waiting: deque[Group] = deque()
        self._supervisor: threading.Thread | None = None
        self._is_over = False

    @property
    def have_started(self) -> bool:
        """Whether the helpers were started and not ended."""
        return bool(self._processes)

    def start(self) -> None:
        """Start the helpers, which load the backends."""
        for _ in range(self._count):
            process, link = fork_or_spawn(run_helper, self._config)
            self._processes.append(process)
            self._helpers.append(Worker(process, link))

    def descriptions(self) -> dict[str, Any]:
        """How the backends describe themselves to the first helper; nothing if none has started."""
        supervise(self._helpers, self, lambda: bool(self._descriptions))
        return self._descriptions

    def begin(self, groups: Iterable[Group]) -> None:
        """Have the helpers judge groups, from the first on, until the end."""
        self._waiting.extend(groups)
        if not self.have_started:
            self.start()
        self._supervisor = threading.Thread(target=self._supervise)
        self._supervisor.start()

    def end(self) -> None:
        """End all helpers."""
        self._is_over = True
        while self._processes:
            self._processes.pop().kill()
        if self._supervisor is not None:
            self._supervisor.join()

    def judge(self, group: Group, key: Key, judge_here: Callable[[], Judged]) -> Judged:
        """Return what a helper finds; judge here what none is left for, or what it cannot judge."""
        if not group.found.done():
            self.before_waiting()
        return group.found.result().get(key) or judge_here()

    def _supervise(self) -> None:
        try:
            supervise(self._helpers, self)
        finally:
            # Supervision has ended: pytest would wait forever for what helpers have not judged.
            for helper in [*self._helpers]:
                self._dismiss(helper)
            while self._waiting:
                self._waiting.popleft().found.set_result({})

    def feed(self, helper: Helper) -> None:
        """Hand an idle helper the next groups, or end it if none are left."""
        helper.task = deque()
        self._hand_out(helper, helper.task)
        if not helper.task:
            self._dismiss(helper)

    def _hand_out(self, helper: Helper, in_hand: deque[Group]) -> None:
        """Hand a helper the first groups that nobody has begun, up to as many as it may have."""
        while self._waiting and not self._is_over:
            if len(in_hand) >= (GROUPS_IN_HAND if len(self._waiting) > LAST_GROUPS else 1):
                return
            in_hand.append(group := self._waiting.popleft())
            # If the helper has died, the next receive reports it.
            with suppress(WorkerDiedError):
                helper.send(group.keys)

    def receive(self, helper: Helper, message: object) -> None:
        """Note that a helper is ready, or what it has found."""
        match message:
            case Loaded(descriptions):
                self._descriptions = descriptions
                helper.is_ready = True
            case Failure(message=reason):
                self._lose(helper, reason)
            case Found(judged, spent):
                assert helper.task is not None
                if self._stopwatch is not None:
                    self._stopwatch.add(spent)
                helper.task.popleft().found.set_result(judged)
                self._hand_out(helper, helper.task)
                helper.task = helper.task or None

    def died(self, helper: Helper) -> None:
        """Note how a helper has ended; pytest judges its groups."""
        self._lose(helper, helper.ending)

    def _lose(self, helper: Helper, reason: str) -> None:
        if not self._is_over:
            self.lost.append(reason)
        self._dismiss(helper)

    def _dismiss(self, helper: Helper) -> None:
        """End a helper, and leave its groups to pytest."""
        for group in helper.task or ():
            group.found.set_result({})
        helper.task = None
        helper.end()
        self._helpers.remove(helper)


def count_helpers(config: pytest.Config) -> int:
    """Return how many helpers a long run has: none if xdist's workers judge, or nothing is run."""
    processors = os.cpu_count() or 1
    if is_worker(config) or gives_out_work(config) or config.getoption("collectonly"):
        return 0
    return min(processors, MAX_HELPERS) if processors > 1 else 0


class ParallelJudging:
    """A pytest plugin that shares the items of a long run with helpers."""

    def __init__(
        self, config: HelperConfig, count: int, stopwatch: Stopwatch | None = None
    ) -> None:
        self.helpers = Helpers(config, count, stopwatch)
        self._group_of: dict[Key, Group] = {}

    def start_early(
        self, config: pytest.Config, cases: Sequence[Case], backends: int
    ) -> dict[str, Any]:
        """Start the helpers before anything is collected, if nothing on the command line selects.

        They load the backends; return how those describe themselves, so that pytest need load none.
        """
        pairs = {(case.source, case.target) for case in cases}
        options = [config.getoption(name, None) for name in SELECTING]
        is_whole = not any(options) and not any("::" in each for each in config.args)
        if is_whole and (len(cases) + len(pairs)) * backends >= MIN_ITEMS:
            self.helpers.start()
        return self.helpers.descriptions()

    def begin_early(self, asked: Iterable[tuple[Backend, list[Question]]]) -> None:
        """Have helpers that were started early judge what pytest makes items of."""
        if self.helpers.have_started and not self._group_of:
            self._begin((backend, each) for backend, questions in asked for each in questions)

    def _begin(self, asked: Iterable[tuple[Backend, Question]]) -> None:
        """Have the helpers judge these questions, pair by pair."""
        groups = [
            Group([(backend.name, question.name) for backend, question in pair])
            for _, pair in groupby(asked, lambda one: (one[0].name, one[1].pair))
        ]
        self._group_of = {key: group for group in groups for key in group.keys}
        self.helpers.begin(groups)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Have each item ask the helpers first for its judgement, if there are enough items."""
        items = [item for item in session.items if isinstance(item, JudgedItem)]
        if not self._group_of:
            if len(items) < MIN_ITEMS:
                self.helpers.end()
                return (yield)
            self._begin((item.backend, item.question) for item in items)
        for item in items:
            key = item.backend.name, item.question.name
            judge = partial(self.helpers.judge, self._group_of[key], key, item.question.judge)
            item.question = replace(item.question, judge=judge)
        try:
            with self._flushed_rarely(session.config):
                return (yield)
        finally:
            self.helpers.end()

    @contextmanager
    def _flushed_rarely(self, config: pytest.Config) -> Iterator[None]:
        """Have pytest show its letters 20 times a second, and when it waits, not one by one.

        Whoever reads them is woken each time, on a processor that a helper could use.
        """
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            yield
            return
        flush, shown = reporter.flush, monotonic()

        def flush_rarely() -> None:
            nonlocal shown
            if monotonic() - shown > SECONDS_BETWEEN_FLUSHES:
                flush()
                shown = monotonic()

        reporter.flush, self.helpers.before_waiting = flush_rarely, flush
        try:
            yield
        finally:
            reporter.flush = flush
            flush()

    def pytest_unconfigure(self) -> None:
        """End helpers that were started for a run that has not begun."""
        self.helpers.end()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show why helpers did not stay to the end."""
        for reason in self.helpers.lost:
            terminalreporter.write_line(f"castigate: a helper {reason}; pytest went on without it")
