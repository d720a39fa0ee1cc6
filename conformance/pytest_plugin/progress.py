"""A pytest run's progress: a line that is rewritten on a terminal, one per ten seconds elsewhere.

pytest writes a letter per item, with a system call each. For 23,000 items that is 300 lines, and a
tenth of the time. ``-v`` brings pytest's own progress back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from time import monotonic

import pytest

from conformance.pytest_plugin.items import INVARIANCE, RECORD
from reports.outputs.totals import Totals

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.2


class SuiteProgress:
    """A pytest plugin that counts the items judged, in place of pytest's letters."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._total = 0
        self._counts: Counter[str] = Counter()
        self._last = monotonic()
        self._is_over = False
        self._has_lines = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the items that pytest has selected."""
        self._total = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Count the items of a worker of xdist: all workers have the same."""
        self._total = len(list(ids))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Return an item's outcome, no letter and no word; None for items not of the suite.

        Reports other than that of the call have an empty outcome. Once the run is over it is None
        for all, so that pytest uses its usual words in the summary.
        """
        if self._is_over or not any(
            name in (RECORD, INVARIANCE) for name, _ in report.user_properties
        ):
            return None
        if report.when != "call":
            return "", "", ""
        if hasattr(report, "wasxfail"):
            return "xfailed", "", ""
        return report.outcome, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an item, and show the counts if it is time."""
        if report.when != "call":
            return
        self._counts[report.outcome] += 1
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is None:
            return
        between = SECONDS_BETWEEN_UPDATES if terminal.isatty else SECONDS_BETWEEN_LINES
        if (now := monotonic()) - self._last < between:
            return
        self._last = now
        done, failed = self._counts.total(), self._counts["failed"]
        words = f"castigate: {done:,} of {self._total:,} judged, {failed:,} failed"
        if terminal.isatty:
            terminal.rewrite(words, erase=True)
        else:
            # pytest would name the file of the items again after each line, and end it again.
            of_items = terminal.currentfspath
            if self._has_lines:
                terminal.currentfspath = None
            terminal.write_line(words)
            terminal.currentfspath = of_items
            self._has_lines = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End the line of the progress, on a terminal by erasing it: what follows says more."""
        self._is_over = True
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is None or not self._counts:
            return
        if terminal.isatty:
            terminal.rewrite("", erase=True)
        if self._has_lines:
            terminal.currentfspath = None
        terminal.ensure_newline()


class VerdictSummary:
    """A pytest plugin that counts the verdicts of a run, and shows the counts at its end."""

    def __init__(self) -> None:
        self.totals = Totals()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the judgement that an item recorded."""
        if report.when == "call":
            for name, record in report.user_properties:
                if isinstance(record, dict) and name in (RECORD, INVARIANCE):
                    self.totals.add(record)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give a run without errors that judged nothing the exit status of one without tests.

        With --collect-only the status stays.
        """
        only_listed = session.config.getoption("collectonly")
        judged = self.totals.judged + self.totals.judged_pairs
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
        if self.totals.verdicts:
            yield from self.totals.verdict_table()
        if self.totals.pair_verdicts:
            yield ""
            yield from self.totals.pair_table()
            yield from self.totals.open_lines()
