"""Counts verdicts as reports come in, from this process or from others, and sums them up."""

from __future__ import annotations

from shutil import get_terminal_size

import pytest

from conformance.pair_totals import PairTotals
from conformance.questions import INVARIANCE, RECORD
from reports.summary import NARROWEST
from reports.totals import Totals


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
