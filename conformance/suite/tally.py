"""Counts verdicts as reports come in, from this process or from others, and sums them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import Any

import pytest

from conformance.judging.questions import INVARIANCE, RECORD
from reports.diff.summary_tables import NARROWEST, counted_table
from reports.diff.totals import Totals


class PairTotals:
    """Counts judgements on pairs, per backend and kind of item."""

    def __init__(self) -> None:
        self.verdicts: dict[tuple[str, str], Counter[str]] = {}
        self.sets: list[tuple[str, str, str]] = []

    def add(self, record: dict[str, Any]) -> None:
        """Count what was recorded of a judgement."""
        kind, _, _ = str(record["item"]).rsplit("/", 2)
        row = (record["backend"], kind)
        self.verdicts.setdefault(row, Counter())[record["verdict"]] += 1
        if record["verdict"] == "open":
            self.sets.append((record["backend"], record["item"], record["message"]))

    @property
    def judged(self) -> int:
        """Pairs that a backend has answered in some way."""
        return sum(row.total() - row["unsupported"] for row in self.verdicts.values())

    def table(self, width: int) -> str:
        """The verdicts, backend after backend."""
        return counted_table("pairs", dict(sorted(self.verdicts.items())), width)

    def open_lines(self) -> Iterator[str]:
        """Where the answers to open inputs are sets, a line per pair."""
        for backend, item, message in sorted(self.sets):
            yield f"{backend} {item}: {message}"


class Tally:
    """A pytest plugin that ends a run with its verdicts and the rules that were broken."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.pairs = PairTotals()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what an item recorded."""
        if report.when == "call":
            for name, record in report.user_properties:
                if isinstance(record, dict) and name in (RECORD, INVARIANCE):
                    (self.totals if name == RECORD else self.pairs).add(record)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run in which nothing was judged is never green."""
        only_listed = session.config.getoption("collectonly")
        judged = self.totals.judged + self.pairs.judged
        if not judged and not only_listed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the tables."""
        width = max(NARROWEST, get_terminal_size().columns)
        if self.pairs.verdicts:
            terminalreporter.section("invariances")
            terminalreporter.write_line(self.pairs.table(width))
            for line in self.pairs.open_lines():
                terminalreporter.write_line(line)
        if not self.totals.verdicts:
            return
        if self.totals.breaches:
            terminalreporter.section("broken rules")
            terminalreporter.write_line(self.totals.breach_table(width))
        terminalreporter.section("verdicts")
        terminalreporter.write_line(self.totals.verdict_table(width))
