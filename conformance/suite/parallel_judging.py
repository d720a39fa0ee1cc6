"""Helpers judge in processes of their own: from the end on, while pytest goes on from the front.

pytest tells all verdicts in its own order. What a helper cannot judge is judged here.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import pytest

from conformance.judging.meeting import Settings
from conformance.judging.questions import Judged, by_backend, meetings_of
from conformance.running.child_process import live_with_parent, spawned
from conformance.running.selection import select
from conformance.suite.items import JudgedItem
from conformance.suite.xdist_workers import gives_out_work, is_worker
from oracles.isolation.launch_config import Home
from oracles.isolation.loading import load_isolated
from oracles.isolation.supervised_process import end_in_words
from specs.errors import CastigateError

Key = tuple[str, str]
"""A backend and the name of a question."""
Found = dict[Key, Judged]


@dataclass(frozen=True)
class Errand:
    """What a helper must know to ask the same as pytest does."""

    homes: dict[str, Home]
    settings: Settings
    documents: tuple[str, ...]
    keeps_answers: bool = False
    """A ledger that is rewritten names the behaviour behind the answers; nobody else needs them."""


@dataclass(eq=False)
class Group:
    """Questions that belong together, as those of a pair do, and what a helper finds of them."""

    keys: list[Key]
    found: Future[Found] = field(default_factory=Future)


def help_out(link: Connection, errand: Errand) -> None:
    """What a helper runs: it says that it is there, and judges what it is sent."""
    live_with_parent()
    cases = select(errand.documents)
    try:
        backends = [load_isolated(name, home) for name, home in errand.homes.items()]
    except CastigateError as error:
        link.send(f"could not begin: {error}")
        return
    meetings = meetings_of(backends, errand.settings, cases)
    judges = {
        (backend.name, question.name): question.judge
        for backend, asked in by_backend(meetings, cases)
        for question in asked()
    }
    link.send("")
    with suppress(EOFError):
        while True:
            keys: list[Key] = link.recv()
            found = {key: _judged(judges[key], errand.keeps_answers) for key in keys}
            link.send({key: judged for key, judged in found.items() if judged is not None})


def _judged(judge: Callable[[], Judged], keeps_answers: bool) -> Judged | None:
    """A judgement; none where the suite itself is at fault, which then shows in pytest."""
    try:
        case, judgement = judge()
    except Exception:
        return None
    return case, judgement if keeps_answers else replace(judgement, answered=None)


class Helpers:
    """Some helpers, and the groups that nobody has begun yet."""

    def __init__(self, errand: Errand, count: int) -> None:
        self.lost: list[str] = []
        """What has become of helpers that did not stay to the end."""
        self._errand = errand
        self._count = count
        self._left: deque[Group] = deque()
        self._lock = threading.Lock()
        self._is_over = False

    @contextmanager
    def at_work(self, groups: Iterable[Group]) -> Iterator[None]:
        """Let all helpers work on some groups for as long as the caller does."""
        self._left.extend(groups)
        processes, leaders = [], []
        try:
            for _ in range(self._count):
                process, link = spawned(help_out, self._errand)
                processes.append(process)
                leaders.append(threading.Thread(target=self._lead, args=(process, link)))
                leaders[-1].start()
            yield
        finally:
            self._is_over = True
            for process in processes:
                process.kill()
            for leader in leaders:
                leader.join()

    def judged(self, group: Group, key: Key, here: Callable[[], Judged]) -> Judged:
        """What a helper has found, or will soon; else what is found here."""
        if not group.found.done():
            with self._lock, suppress(ValueError):
                self._left.remove(group)
                group.found.set_result({})
        return group.found.result().get(key) or here()

    def _lead(self, process: SpawnProcess, link: Connection) -> None:
        """Hand one group after another to a helper, as long as there are both."""
        said, found = "", Found()
        try:
            said = link.recv()
            while not said and (group := self._last()) is not None:
                try:
                    link.send(group.keys)
                    found = link.recv()
                finally:
                    group.found.set_result(found)
                    found = {}
        except (EOFError, OSError):
            process.join()
            said = end_in_words(process.exitcode)
        if said and not self._is_over:
            self.lost.append(said)
        process.kill()
        process.join()
        link.close()

    def _last(self) -> Group | None:
        with self._lock:
            return self._left.pop() if self._left and not self._is_over else None


MOST_HELPERS = 3
"""pytest itself takes a millisecond for an item: more helpers would wait for it."""
MANY_ITEMS = 2000
"""Fewer are judged here before a helper has loaded a framework."""


def helpers_of(config: pytest.Config) -> int:
    """How many helpers a long run has: none where others judge, or nobody does."""
    if is_worker(config) or gives_out_work(config) or config.getoption("collectonly"):
        return 0
    return min(os.cpu_count() or 1, 1 + MOST_HELPERS) - 1


class Helping:
    """A pytest plugin that has helpers judge as well, and says what has become of them."""

    def __init__(self, errand: Errand, count: int) -> None:
        self.helpers = Helpers(errand, count)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Let helpers begin from the end."""
        items = [item for item in session.items if isinstance(item, JudgedItem)]
        if len(items) < MANY_ITEMS:
            return (yield)
        with self.helpers.at_work(list(self._shared(items))):
            return (yield)

    def _shared(self, items: list[JudgedItem]) -> Iterator[Group]:
        """What helpers may take; each item then looks first what they have found."""
        for _, alike in groupby(items, lambda item: (item.backend.name, item.question.pair)):
            asked = {(item.backend.name, item.name): item for item in alike}
            group = Group(list(asked))
            for key, item in asked.items():
                judge = partial(self.helpers.judged, group, key, item.question.judge)
                item.question = replace(item.question, judge=judge)
            yield group

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why helpers did not stay."""
        for said in self.helpers.lost:
            terminalreporter.write_line(f"castigate: a helper {said}; pytest went on without it")
