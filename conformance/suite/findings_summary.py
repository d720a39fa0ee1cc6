"""Shows the findings at the end of a pytest run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import pytest

from conformance.suite.failures import Failures
from reports.diff.judgement import Judgement
from reports.findings.find import FindingsSearch
from reports.findings.finding import Finding
from reports.findings.finding_text import findings_lines


class FindingsSummary:
    """A pytest plugin that finds the root causes of a run's failures, once all are judged."""

    def __init__(self, failures: Failures, versions: Mapping[str, str]) -> None:
        self._failures = failures
        self._search = FindingsSearch(failures.values)
        self._versions = versions

    @cached_property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """The findings of each backend that fails."""
        return self._search.find(self._failures.cells())

    def prepare(self, judgement: Judgement) -> None:
        """Begin to look for the cause of a stored failure, while helpers judge other cases."""
        cell = self._failures.cell(judgement)
        if cell is not None:
            self._search.prepare(cell)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the findings."""
        if not self.findings:
            return
        terminalreporter.section("findings")
        for line in findings_lines(self.findings, self._versions):
            terminalreporter.write_line(line)
