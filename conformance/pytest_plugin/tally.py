"""Counts verdicts as pytest's reports arrive, also from xdist's workers, and shows the totals."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import get_terminal_size

import pytest

from conformance.pytest_plugin.items import INVARIANCE, RECORD
from reports.outputs.summary_tables import MIN_WIDTH
from reports.outputs.totals import Totals


class Tally:
    """A pytest plugin that shows the verdicts and the broken rules at the end of a run."""

    def __init__(self) -> None:
        self.totals = Totals()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the judgement that an item recorded."""
        if report.when == "call":
            for name, record in report.user_properties:
                if isinstance(record, dict) and name in (RECORD, INVARIANCE):
                    self.totals.add(record)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run in which nothing was judged."""
        only_listed = session.config.getoption("collectonly")
        judged = self.totals.judged + self.totals.pairs.judged
        if not judged and not only_listed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show a line of counts per backend, or with ``-v`` the tables that the report has too."""
        lines = list(self._tables() if terminalreporter.config.get_verbosity() > 0 else ())
        if lines or (lines := list(self.totals.lines())):
            terminalreporter.section("verdicts")
        for line in lines:
            terminalreporter.write_line(line)

    def _tables(self) -> Iterator[str]:
        width = max(MIN_WIDTH, get_terminal_size().columns)
        if self.totals.verdicts:
            yield self.totals.verdict_table(width)
        if self.totals.pairs.verdicts:
            yield ""
            yield self.totals.pairs.table(width)
            yield from self.totals.pairs.open_lines()
