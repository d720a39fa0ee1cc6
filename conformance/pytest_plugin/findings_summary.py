"""Shows the findings at the end of a pytest run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import pytest

from conformance.pytest_plugin.failures import FailureFolder
from conformance.pytest_plugin.ledger_check import Ledgers
from reports.findings.find import FindingsSearch
from reports.findings.finding import KINDS, Finding
from reports.findings.finding_text import counted, findings_lines
from reports.judgement import FAILING, Judgement
from reports.ledger.ledger_file import ledger_of, parts_of
from reports.ledger.listing import LedgerComparison
from reports.outputs.totals import findings_screens, last_screen


class FindingsSummary:
    """A pytest plugin that shows the root causes of a run's failures, once all are judged.

    If every failure is as the ledgers list it, ``-v`` shows the words of the ledgers. Otherwise the
    causes are searched for, from the first other failure on.
    """

    def __init__(
        self, failures: FailureFolder, versions: Mapping[str, str], ledgers: Ledgers
    ) -> None:
        self._failures = failures
        self._search = FindingsSearch(failures.values)
        self._versions = versions
        self._ledgers = ledgers
        self._known: defaultdict[str, list[Sequence[str]]] = defaultdict(list)
        """For each ledger the findings of each failing case that is as its ledger lists it."""
        self._has_others = False

    @cached_property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """The findings of each backend that fails."""
        return self._search.find(self._failures.cells())

    def add(self, judgement: Judgement, compared: LedgerComparison | None) -> None:
        """Count a failing judgement, and begin to look for its cause unless its ledger lists it.

        The folder of failures must have the judgement. The search goes on while others are judged.
        """
        if judgement.verdict not in FAILING:
            return
        if compared is not None and compared.status == "known" and compared.findings:
            ledger = ledger_of(judgement.backend, judgement.check or judgement.case)
            self._known[ledger].append(compared.findings)
            return
        self._has_others = True
        self._search.prepare(self._failures.cell(judgement))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the findings, all with ``-v``, else one screen of them.

        Without ``-v`` those of a backend whose ledgers are all in use are left out; its new
        findings are shown in the section about ledgers.
        """
        if lines := list(self._lines(terminalreporter.config.get_verbosity() > 0)):
            terminalreporter.section("findings")
        for line in lines:
            terminalreporter.write_line(line)

    def _lines(self, is_verbose: bool) -> Iterator[str]:
        # A controller of xdist knows of no failure before it reads them all.
        if is_verbose and self._known and not self._has_others:
            yield from self._known_lines()
        elif is_verbose:
            yield from findings_lines(self.findings, self._versions)
        else:
            lacking = [name for name in self._ledgers.names if name not in self._ledgers.used]
            without = {parts_of(each)[0] for each in lacking}
            if without:
                found = {name: own for name, own in self.findings.items() if name in without}
                yield from last_screen(list(findings_screens(found, self._versions)))

    def _known_lines(self) -> Iterator[str]:
        """Yield the findings in the ledgers' own words, under a heading per ledger."""
        for ledger, cases in self._known.items():
            counts = Counter(name for names in cases for name in names)
            known = self._ledgers.used[ledger].findings
            version = self._versions[parts_of(ledger)[0]]
            yield (
                f"{ledger} {version}: {counted(len(counts), 'finding')}, "
                f"{counted(len(cases), 'failing case')}, all as the ledger lists them"
            )
            ranked = [
                (KINDS.index(known[name].kind), -count, name) for name, count in counts.items()
            ]
            for *_, name in sorted(ranked):
                finding = known[name]
                example = f"; {finding.example}" if finding.example else ""
                yield f"  {finding.kind}: {finding.says}"
                yield f"    {name}: {counted(counts[name], 'case')}{example}"
                if finding.upstream:
                    yield f"    reported as {finding.upstream}"
            yield ""
