"""Shows which ledgers a run uses, counts how its items compare with them, and rewrites them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from conformance.pytest_plugin.findings_summary import FindingsSummary
from conformance.pytest_plugin.ledger_check import LEDGER, Ledgers, comparison_of
from conformance.pytest_plugin.xdist_workers import gives_out_work, is_worker
from reports.case_patterns import all_ids
from reports.changes.words import ROWS, screen
from reports.known_failures import KnownFailure, parse_failure
from reports.ledger.ledger_file import parts_of, path_of
from reports.ledger.listing import Ledger
from reports.ledger.news import BackendNews
from reports.ledger.update import update_ledger, write_ledger
from reports.ledger.version_spans import public_version
from specs.errors import CastigateError


class LedgerUpdate:
    """A pytest plugin that collects what items record for ledgers, shows it, and rewrites ledgers.

    Under xdist it collects in the controller what the items of all workers record.
    """

    def __init__(
        self,
        config: pytest.Config,
        ledgers: Ledgers,
        versions: Mapping[str, str],
        summary: FindingsSummary,
    ) -> None:
        self.summary = summary
        self.ledgers = ledgers
        self.versions = versions
        self.is_controller = gives_out_work(config)
        self.is_worker = is_worker(config)
        self.updates = ledgers.updating and not self.is_worker
        self.news: dict[str, BackendNews] = {}
        self.found: dict[str, dict[str, list[KnownFailure]]] = {name: {} for name in ledgers.names}
        """By ledger, how each item fails whose entries are to be rewritten."""
        self.kept: dict[str, set[str]] = {name: set() for name in ledgers.names}
        """By ledger, the judged items whose entries are kept."""
        self.messages: list[str] = []
        if self.updates and not self.is_controller:
            self._require_listed_versions()

    def pytest_report_header(self) -> list[str]:
        """Return lines about all ledgers, used or not; none in a controller, without versions."""
        return [] if self.is_controller else list(self._header())

    def _header(self) -> Iterator[str]:
        for name, ledger in self.ledgers.ledgers.items():
            for line in self._describe(name, ledger):
                yield f"castigate: ledger of {name}: {line}"

    def _describe(self, name: str, ledger: Ledger) -> Iterator[str]:
        if name not in self.ledgers.used:
            yield f"not used; it was written with {ledger.options}"
            return
        applied = self.ledgers.applied(name, self._version_of(name))
        assert applied is not None
        used, others = applied.counted()
        if applied.base == applied.version:
            yield f"{used} cases listed for {applied.version}"
        else:
            yield f"made with {applied.base}, used for {applied.version}; {used} cases listed"
        if others:
            yield f"{others} cases not used, listed for other versions"
        if not applied.has_same_seed:
            yield f"it was written with seed {ledger.options.seed}, so only verdicts are compared"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what an item recorded for the ledger."""
        if report.when != "call":
            return
        for name, record in report.user_properties:
            if name == LEDGER and isinstance(record, dict):
                ledger, compared = record["ledger"], comparison_of(record)
                if compared is not None:
                    self._news_of(ledger).add(record["item"], compared)
                if drawn := [parse_failure(text) for text in record["drawn"]]:
                    self._news_of(ledger).add_drawn(record["item"], drawn)
                if record["failures"] is None:
                    self.kept[ledger].add(record["item"])
                    continue
                found = [parse_failure(text) for text in record["failures"]]
                self.found[ledger][record["item"]] = found

    def _version_of(self, ledger: str) -> str:
        return self.versions[parts_of(ledger)[0]]

    def _news_of(self, ledger: str) -> BackendNews:
        if ledger not in self.news:
            version = self._version_of(ledger)
            applied = self.ledgers.applied(ledger, version)
            self.news[ledger] = BackendNews(ledger, version, applied)
        return self.news[ledger]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """With --update-ledger, rewrite the ledgers if every case that is asked was judged.

        If one was not, or a ledger cannot be written, the session ends with a usage error and a
        message. Without --update-ledger, the session fails if drawn tensors show a new cause.
        """
        if self.is_worker:
            return
        if not self.updates:
            if session.exitstatus == pytest.ExitCode.OK and any(self._new_causes()):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        try:
            self._require_listed_versions()
            self._require_all_cases()
            self.messages += [self._update(name) for name in self.found]
        except CastigateError as error:
            self.messages.append(f"castigate: {error}")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _require_listed_versions(self) -> None:
        """Raise CastigateError if --document names a part of a version that a ledger lacks.

        Of the other documents nothing would be known in this version.
        """
        for name, ledger in self.ledgers.ledgers.items():
            own = public_version(self._version_of(name))
            if self.ledgers.is_partial and own not in ledger.versions:
                raise CastigateError(
                    f"the ledger of {name} was made with {', '.join(ledger.versions)}, not with "
                    f"{own}; leave out --document, so that all cases are judged with {own}"
                )

    def _require_all_cases(self) -> None:
        """Raise CastigateError if a case that any backend is asked was not judged.

        Raises it also if a backend claims none of the documents that --document names.
        """
        for name, found in self.found.items():
            if self.ledgers.is_partial and self.kept[name] and not found:
                raise CastigateError(
                    f"{name} claims none of the documents, and its ledger lists only documents "
                    "that it claims; the ledger is unchanged; name another with --document"
                )
            cases = [*filter(self.ledgers.asks, all_ids(parts_of(name)[1]))]
            missing = sum(case not in found and case not in self.kept[name] for case in cases)
            if missing:
                raise CastigateError(
                    f"--update-ledger needs a whole run, and {missing} of {len(cases)} cases of "
                    f"{name} were not judged; the ledger is unchanged; run again without what "
                    "stopped them"
                )

    def _update(self, name: str) -> str:
        """Rewrite the ledger ``name``, or remove it if it lists nothing; say what was done."""
        failing = {case: found for case, found in self.found[name].items() if found}
        version, path = self._version_of(name), path_of(name)
        before = self.ledgers.ledgers.get(name)
        findings = self.summary.findings.get(parts_of(name)[0], ())
        options = self.ledgers.input_options
        judged = self.found[name] if self.ledgers.is_partial else None
        ledger = update_ledger(before, name, version, options, failing, findings, judged)
        assert path is not None
        if not ledger.listings:
            path.unlink(missing_ok=True)
            return f"{name} {version} has no divergences and needs no ledger"
        entries = write_ledger(path, ledger)
        return f"{path}: {entries} findings, {len(failing)} cases of {name} {version}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show how the items compare with the ledgers, and what was rewritten."""
        if self.is_controller:
            for line in self._header():
                terminalreporter.write_line(line)
        if not self.messages and not self.news:
            return
        terminalreporter.section("ledger")
        if not self.ledgers.updating:
            has_news = any(each.cases or each.drawn for each in self.news.values())
            findings = self.summary.findings if has_news else {}
            steps = [
                each.changes(findings.get(parts_of(name)[0], ()))
                for name, each in self.news.items()
            ]
            is_verbose = terminalreporter.config.get_verbosity() > 0
            for line in screen(steps, None if is_verbose else ROWS):
                terminalreporter.write_line(line)
        for line in self.messages:
            terminalreporter.write_line(line)

    def _new_causes(self) -> Iterator[bool]:
        """Yield for each ledger whether drawn tensors show a cause that it does not list."""
        for name, news in self.news.items():
            if news.drawn:
                yield news.has_new_causes(self.summary.findings.get(parts_of(name)[0], ()))
