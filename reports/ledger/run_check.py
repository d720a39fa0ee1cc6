"""Compares a run with the ledgers of its backends: what is new, changed or gone is news."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reports.findings.finding import UNEXPLAINED, Findings
from reports.judgement import Judgement
from reports.ledger.breaches import breaches
from reports.ledger.ledger_file import load_ledger
from reports.ledger.listing import InputOptions, Ledger, LedgerStatus, compare_with_listings
from reports.run_store.record import RunRecord
from specs.cases import Case

STATUS_WORDS: dict[LedgerStatus, str] = {
    "unlisted": "not listed",
    "changed": "changed",
    "stale": "listed, but gone",
}
"""How a case differs from its ledger."""


@dataclass(frozen=True)
class News:
    """A case in which a backend does not do what its ledger says, and one line about it.

    ``listed`` are the findings under which the ledger has the case.
    """

    case: str
    status: LedgerStatus
    message: str
    listed: tuple[str, ...]


@dataclass
class FindingNews:
    """The news about one finding of a backend."""

    is_new: bool
    says: str
    news: list[News] = field(default_factory=list)


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
        self.known: Counter[str] = Counter()
        """How many cases of each backend fail as listed."""
        self.news: dict[str, list[News]] = {}

    def add(self, case: Case, judgement: Judgement) -> None:
        """Compare one judgement with the ledger of its backend."""
        backend, name = judgement.backend, judgement.check or case.id
        found = breaches(case, judgement)
        ledger = self.used.get(backend)
        listed = ledger.at(name, self.versions[backend]) if ledger is not None else []
        compared = compare_with_listings(listed, found, judgement.verdict)
        if compared is None:
            return
        if compared.status == "known":
            self.known[backend] += 1
        else:
            news = News(name, compared.status, compared.message, compared.findings)
            self.news.setdefault(backend, []).append(news)

    def lines(self, findings: Findings) -> Iterator[str]:
        """Yield a line per finding with news, and a last line with the counts."""
        for name, ledger in self.unused.items():
            yield f"{name}: its ledger is not used; it was written with {ledger.options}"
        for backend in self.news:
            for name, each in self._by_finding(backend, findings).items():
                yield f"{backend}: {_line(name, each)}"
        known = f"{self.known.total():,} known failures"
        if not self.news:
            yield f"every backend does as its ledger says: {known}, nothing new"
        else:
            cases = sum(map(len, self.news.values()))
            yield f"not as the ledgers say: {cases:,} {_cases(cases)}; {known}"

    def _by_finding(self, backend: str, findings: Findings) -> Mapping[str, FindingNews]:
        """The news by the finding that explains the case, or that did when it was listed."""
        names: dict[str, str] = {}
        for finding in reversed(findings.get(backend, ())):
            names |= dict.fromkeys(finding.cases, finding.name)
        says = {finding.name: finding.says for finding in findings.get(backend, ())}
        ledger = self.used.get(backend)
        known = {name: one.says for name, one in ledger.findings.items()} if ledger else {}
        found: dict[str, FindingNews] = {}
        for each in self.news[backend]:
            name = names.get(each.case) or next(iter(each.listed), UNEXPLAINED)
            words = says.get(name) or known.get(name, "")
            found.setdefault(name, FindingNews(name not in known, words)).news.append(each)
        return found


def _line(name: str, finding: FindingNews) -> str:
    counts = Counter(each.status for each in finding.news)
    how = ", ".join(
        f"{counts[status]:,} {_cases(counts[status])} {words}"
        for status, words in STATUS_WORDS.items()
        if counts[status]
    )
    first = finding.news[0]
    return (
        f"{'new finding' if finding.is_new else 'finding'} {name} ({finding.says}): {how}; "
        f"for instance {first.case}, {first.message}"
    )


def _cases(count: int) -> str:
    return "case" if count == 1 else "cases"
