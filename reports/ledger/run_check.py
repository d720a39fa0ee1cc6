"""Compares a run with the ledgers of its backends: what is new, changed or gone is news."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from reports.diff.judgement import Judgement
from reports.ledger.breaches import breaches
from reports.ledger.ledger_file import load_ledger
from reports.ledger.listing import InputOptions, Ledger, compare_with_listings
from reports.run_store.record import RunRecord
from specs.cases import Case

MOST_NEWS = 20
"""Cases that are listed; the others are only counted."""


@dataclass(frozen=True)
class News:
    """A case in which a backend does not do what its ledger says, and one line about it."""

    backend: str
    case: str
    message: str


class RunLedgers:
    """The ledgers of a run's backends, and how the run's cases compare with them."""

    def __init__(self, record: RunRecord) -> None:
        options = InputOptions(record.tier, record.seed, record.max_examples)
        self.versions = {each.name: each.version for each in record.backends}
        loaded = {name: load_ledger(name) for name in self.versions}
        self.used: dict[str, Ledger] = {}
        self.unused: dict[str, Ledger] = {}
        for name, ledger in loaded.items():
            if ledger is not None:
                (self.used if ledger.options == options else self.unused)[name] = ledger
        self.statuses: Counter[str] = Counter()
        self.news: list[News] = []

    def add(self, case: Case, judgement: Judgement) -> None:
        """Compare one judgement with the ledger of its backend."""
        backend, name = judgement.backend, judgement.check or case.id
        found = breaches(case, judgement)
        ledger = self.used.get(backend)
        listed = ledger.at(name, self.versions[backend]) if ledger is not None else []
        compared = compare_with_listings(listed, found, judgement.verdict)
        if compared is None:
            return
        self.statuses[compared.status] += 1
        if compared.status != "known":
            self.news.append(News(backend, name, compared.message))

    def lines(self) -> Iterator[str]:
        """Yield a line per case that differs from its ledger, and a last line with the counts."""
        for name, ledger in self.unused.items():
            yield f"{name}: its ledger is not used; it was written with {ledger.options}"
        for each in self.news[:MOST_NEWS]:
            yield f"{each.backend}: {each.case}: {each.message}"
        if len(self.news) > MOST_NEWS:
            yield f"{len(self.news) - MOST_NEWS:,} more cases are not as listed"
        known = f"{self.statuses['known']:,} known failures"
        if not self.news:
            yield f"every backend does as its ledger says: {known}, nothing new"
        else:
            counts = (
                f"{self.statuses[status]:,} {status}" for status in ("unlisted", "changed", "stale")
            )
            yield f"not as the ledgers say: {', '.join(counts)}; {known}"
