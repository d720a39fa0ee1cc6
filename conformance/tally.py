"""Counts verdicts as reports come in, from this process or from others, and sums them up."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.suite import RECORD
from reports.summary import Row, verdict_table
from specs.load import documents

WIDTH = 120


class Tally:
    """A pytest plugin that ends a run with the table of its verdicts."""

    def __init__(self) -> None:
        self.counts: dict[Row, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the verdict that an item recorded."""
        if report.when != "call":
            return
        for name, record in report.user_properties:
            if name == RECORD and isinstance(record, dict):
                row = (record["backend"], record["document"], record["version"])
                self.counts.setdefault(row, Counter())[record["verdict"]] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run in which nothing was judged is never green."""
        judged = sum(row.total() - row["unsupported"] for row in self.counts.values())
        if self.counts and not judged and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table."""
        if self.counts:
            terminalreporter.section("verdicts")
            ordered = dict(sorted(self.counts.items(), key=lambda item: _order(item[0])))
            terminalreporter.write_line(verdict_table(ordered, WIDTH))


def _order(row: Row) -> tuple[str, str, int]:
    backend, document, version = row
    return backend, document, list(documents()[document].entry.versions).index(version)
