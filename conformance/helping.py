"""Where pytest itself judges, helpers do their part of a long run."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby

import pytest

from conformance.helpers import Errand, Group, Helpers
from conformance.suite import JudgedItem
from conformance.workers import gives_out_work, is_worker

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
