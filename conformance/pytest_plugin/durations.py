"""Shows where the time of a pytest run went: `--durations-castigate`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from time import monotonic

import pytest

STARTED = monotonic()
"""When this module was imported, which is soon after pytest has begun."""


@dataclass(frozen=True)
class Spent:
    """Seconds spent on judging, and how many of them waiting for the backend."""

    judging: float = 0
    waiting: float = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.judging + other.judging, self.waiting + other.waiting)


Stopwatch = defaultdict[tuple[str, str], Spent]
"""The time spent on judging, by backend and dtype pair, such as `float32/float16`."""


class Durations:
    """A pytest plugin that shows where the time went, and which pairs took longest."""

    def __init__(self, stopwatch: Stopwatch, slowest: int, jobs: int) -> None:
        self._stopwatch = stopwatch
        self._slowest = slowest
        self._jobs = jobs
        self._begun = self._ended = STARTED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Note when the first item begins and when the last one ends."""
        self._begun = monotonic()
        try:
            return (yield)
        finally:
            self._ended = monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the seconds of the run, of each backend, and of the pairs that took longest."""
        terminalreporter.section("where the time went")
        for line in self._lines():
            terminalreporter.write_line(line)

    def _lines(self) -> Generator[str, None, None]:
        now, spent = monotonic(), self._stopwatch
        yield (
            f"{now - STARTED:.1f} s: {self._begun - STARTED:.1f} s before the first item, "
            f"{self._ended - self._begun:.1f} s for the items, "
            f"{now - self._ended:.1f} s for the summary"
        )
        of_backends: defaultdict[str, Spent] = defaultdict(Spent)
        for (backend, _), each in spent.items():
            of_backends[backend] += each
        processes = f" in {self._jobs} processes" if self._jobs > 1 else ""
        for backend, each in of_backends.items():
            yield (
                f"{backend}: judged for {each.judging:.1f} s{processes}, "
                f"{each.waiting:.1f} s of them waiting for answers"
            )
        ranked = sorted(spent.items(), key=lambda item: (-item[1].judging, item[0]))
        for (backend, pair), each in ranked[: self._slowest]:
            yield f"  {each.judging:.2f} s  {backend}  {pair}  waiting {each.waiting:.2f} s"
