"""Counts verdicts as reports come in, from this process or from others, and sums them up."""

from __future__ import annotations

from collections import Counter
from shutil import get_terminal_size
from typing import Any

import pytest

from conformance.suite import RECORD
from reports.summary import Breach, BrokenRule, Row, breach_table, verdict_table
from specs.load import documents

NARROWEST = 140
"""Columns that the tables need."""


class Tally:
    """A pytest plugin that ends a run with its verdicts and the rules that were broken."""

    def __init__(self) -> None:
        self.verdicts: dict[Row, Counter[str]] = {}
        self.breaches: dict[BrokenRule, Breach] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what an item recorded."""
        if report.when == "call":
            for name, record in report.user_properties:
                if name == RECORD and isinstance(record, dict):
                    self._count(record)

    def _count(self, record: dict[str, Any]) -> None:
        row = (record["backend"], record["document"], record["version"])
        self.verdicts.setdefault(row, Counter())[record["verdict"]] += 1
        for rule, clause, level, inputs in record["broken"]:
            key = (record["backend"], record["document"], rule, clause, level)
            breach = self.breaches.setdefault(key, Breach(example=record["case"]))
            breach.cases += 1
            breach.inputs += inputs

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run in which nothing was judged is never green."""
        judged = sum(row.total() - row["unsupported"] for row in self.verdicts.values())
        only_listed = session.config.getoption("collectonly")
        if not judged and not only_listed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the tables."""
        if not self.verdicts:
            return
        width = max(NARROWEST, get_terminal_size().columns)
        if self.breaches:
            worst = sorted(
                self.breaches.items(),
                key=lambda item: (item[0][0], item[0][4] != "required", -item[1].cases),
            )
            terminalreporter.section("broken rules")
            terminalreporter.write_line(breach_table(dict(worst), width))
        ordered = dict(sorted(self.verdicts.items(), key=lambda item: _order(item[0])))
        terminalreporter.section("verdicts")
        terminalreporter.write_line(verdict_table(ordered, width))


def _order(row: Row) -> tuple[str, str, int]:
    backend, document, version = row
    return backend, document, list(documents()[document].entry.versions).index(version)
