"""Compares a run with the ledgers of its backends, case by case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reports.changes.change import Changes
from reports.findings.finding import Findings
from reports.judgement import Judgement
from reports.known_failures import failures
from reports.ledger.ledger_file import load_ledger
from reports.ledger.listing import InputOptions, compare_with_listings
from reports.ledger.news import BackendNews
from reports.run_store.record import RunRecord
from specs.cases import JOINT, Case


class RunLedgers:
    """The ledgers of a run's backends, and how the run's cases compare with them."""

    def __init__(self, record: RunRecord) -> None:
        self._own = record.own_documents
        options = InputOptions(record.tier, record.seed, record.max_examples)
        self.news: dict[str, BackendNews] = {}
        self.unused: dict[str, InputOptions] = {}
        """By backend, the options of each ledger that is not used, because the run has others."""
        for each in record.backends:
            ledger = load_ledger(each.name)
            if ledger is not None and not ledger.is_about(options):
                self.unused[each.name] = ledger.options
                ledger = None
            applied = ledger.applied_to(each.version, options) if ledger is not None else None
            self.news[each.name] = BackendNews(each.name, each.version, applied)

    def add(self, case: Case, judgement: Judgement) -> None:
        """Compare one judgement with the ledger of its backend, and keep the result.

        Of a user's own document no ledger knows anything.
        """
        if case.document.partition(JOINT)[0] in self._own:
            return
        news, name = self.news[judgement.backend], judgement.check or case.id
        found = failures(case, judgement, with_drawn=not news.draws_anew)
        listed = news.applied.at(name, found) if news.applied is not None else []
        compared = compare_with_listings(listed, found, judgement.verdict)
        if compared is not None:
            news.add(name, compared)
        everything = failures(case, judgement)
        if everything != found:
            news.add_drawn(name, everything)

    def changes(self, findings: Findings) -> list[Changes]:
        """Return what changed for each backend since its ledger.

        ``findings`` are those of the run, by backend.
        """
        return [*self._changes(findings)]

    def _changes(self, findings: Findings) -> Iterator[Changes]:
        for name, news in self.news.items():
            changes = news.changes(findings.get(name, ()))
            if name in self.unused:
                unused = f"  its ledger is not used; it was made with {self.unused[name]}"
                changes = replace(changes, notes=(unused, *changes.notes))
            yield changes
