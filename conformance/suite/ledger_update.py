"""Says which ledgers a run uses, counts how its cases stand to them, and rewrites them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from shutil import get_terminal_size

import pytest

from conformance.suite.ledger_check import LEDGER, Ledgers
from conformance.suite.xdist_workers import gives_out_work, is_worker
from reports.diff.summary_tables import NARROWEST, ledger_table
from reports.ledger.breaches import Breach
from reports.ledger.case_patterns import all_ids
from reports.ledger.ledger_file import path_of
from reports.ledger.update import updated, write_ledger
from specs.errors import CastigateError


class LedgerUpdate:
    """A pytest plugin that sums up what items have recorded, in this process or in others."""

    def __init__(
        self, config: pytest.Config, ledgers: Ledgers, versions: Mapping[str, str]
    ) -> None:
        self.ledgers = ledgers
        self.versions = versions
        self.gathers = gives_out_work(config)
        self.updates = ledgers.updating and not is_worker(config)
        self.counts: dict[str, Counter[str]] = {}
        self.found: dict[str, dict[str, list[Breach]]] = {name: {} for name in ledgers.names}
        self.said: list[str] = []

    def pytest_report_header(self) -> list[str]:
        """Which ledgers are used, and what of them is not; workers are to say it first."""
        return [] if self.gathers else list(self._header())

    def _header(self) -> Iterator[str]:
        for name, line in self._uses():
            yield f"castigate: ledger of {name}: {line}"

    def _uses(self) -> Iterator[tuple[str, str]]:
        for name, ledger in self.ledgers.ledgers.items():
            if name not in self.ledgers.used:
                yield name, f"not used; it speaks of {ledger.asked}"
                continue
            version = self.versions[name]
            used, others = ledger.counted(version)
            yield name, f"{used} cases listed for {version}"
            if others:
                yield name, f"{others} cases not used, listed for other versions"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what an item recorded."""
        if report.when != "call":
            return
        for name, record in report.user_properties:
            if name == LEDGER and isinstance(record, dict):
                backend, word = record["backend"], record["standing"]
                if word:
                    self.counts.setdefault(backend, Counter())[word] += 1
                made = [Breach(**words) for words in record["breaches"]]
                self.found[backend][record["item"]] = made

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Rewrite the ledgers, if the run was whole."""
        if not self.updates:
            return
        try:
            self.said += [self._update(name) for name in self._whole()]
        except CastigateError as error:
            self.said.append(f"castigate: {error}")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _whole(self) -> list[str]:
        """The backends, if every case of each was judged."""
        whole = all_ids()
        for name, found in self.found.items():
            missing = sum(case not in found for case in whole)
            if missing:
                raise CastigateError(
                    f"--update-ledger needs a whole run, and {missing} of {len(whole)} cases of "
                    f"{name} were not judged; the ledger is as it was; run again without what "
                    "stopped them"
                )
        return list(self.found)

    def _update(self, name: str) -> str:
        breached = {case: made for case, made in self.found[name].items() if made}
        version, path = self.versions[name], path_of(name)
        before = self.ledgers.ledgers.get(name)
        ledger = updated(before, name, version, self.ledgers.asked, breached)
        assert path is not None
        if not ledger.listings:
            path.unlink(missing_ok=True)
            return f"{name} {version} has no divergences and needs no ledger"
        entries = write_ledger(path, ledger)
        return f"{path}: {entries} entries, {len(breached)} cases of {name} {version}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show how the cases stand to the ledgers."""
        if self.gathers:
            for line in self._header():
                terminalreporter.write_line(line)
        if not self.said and not self.counts:
            return
        terminalreporter.section("ledger")
        if not self.ledgers.updating:
            width = max(NARROWEST, get_terminal_size().columns)
            terminalreporter.write_line(ledger_table(self.counts, width))
        for line in self.said:
            terminalreporter.write_line(line)
