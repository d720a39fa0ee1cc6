"""Counts verdicts as pytest's reports arrive, also from xdist's workers, and shows the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import Any

import pytest

from conformance.judging.questions import INVARIANCE, RECORD
from reports.diff.summary_tables import MIN_WIDTH, verdict_count_table
from reports.diff.totals import Totals


class PairTotals:
    """Counts judgements on pairs by backend and kind of item."""

    def __init__(self) -> None:
        self.verdicts: dict[tuple[str, str], Counter[str]] = {}
        self.open_answers: list[tuple[str, str, str]] = []
        """Backend, item and message of each pair whose open answers are sets."""

    def add(self, record: dict[str, Any]) -> None:
        """Count a judgement by its record."""
        kind, _, _ = str(record["item"]).rsplit("/", 2)
        self.verdicts.setdefault((record["backend"], kind), Counter())[record["verdict"]] += 1
        if record["verdict"] == "open":
            self.open_answers.append((record["backend"], record["item"], record["message"]))

    @property
    def judged(self) -> int:
        """The number of judgements that are not `unsupported`."""
        return sum(counts.total() - counts["unsupported"] for counts in self.verdicts.values())

    def table(self, width: int) -> str:
        """A table of the counts, sorted by backend."""
        return verdict_count_table("pairs", dict(sorted(self.verdicts.items())), width)

    def open_lines(self) -> Iterator[str]:
        """Name the pairs whose answers to open inputs are sets, one per line."""
        for backend, item, message in sorted(self.open_answers):
            yield f"{backend} {item}: {message}"


class Tally:
    """A pytest plugin that shows the verdicts and the broken rules at the end of a run."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.pairs = PairTotals()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the judgement that an item recorded."""
        if report.when == "call":
            for name, record in report.user_properties:
                if isinstance(record, dict) and name in (RECORD, INVARIANCE):
                    (self.totals if name == RECORD else self.pairs).add(record)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run in which nothing was judged."""
        only_listed = session.config.getoption("collectonly")
        judged = self.totals.judged + self.pairs.judged
        if not judged and not only_listed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the tables."""
        width = max(MIN_WIDTH, get_terminal_size().columns)
        if self.pairs.verdicts:
            terminalreporter.section("invariances")
            terminalreporter.write_line(self.pairs.table(width))
            for line in self.pairs.open_lines():
                terminalreporter.write_line(line)
        if not self.totals.verdicts:
            return
        if self.totals.failures:
            terminalreporter.section("broken rules")
            terminalreporter.write_line(self.totals.broken_rule_table(width))
        terminalreporter.section("verdicts")
        terminalreporter.write_line(self.totals.verdict_table(width))
