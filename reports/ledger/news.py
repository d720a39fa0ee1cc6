"""How a backend differs from its ledger, finding by finding: what is new, changed or mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from reports.findings.finding import UNEXPLAINED, Finding
from reports.findings.finding_text import changes_words, counted, extent_words
from reports.known_failures import KnownFailure
from reports.ledger.ledger_file import update_command
from reports.ledger.listing import AppliedLedger, LedgerComparison, LedgerStatus, unlisted
from reports.outputs.totals import BackendScreen

NewsKind = Literal["new", "changed", "mended"]
NEWS_KINDS: tuple[NewsKind, ...] = get_args(NewsKind)
"""How a finding differs from the ledger, in the order in which a screen lists it."""


@dataclass(frozen=True)
class CaseNews:
    """A case that does not fail as its ledger lists it, and one line about it.

    ``listed`` are the findings under which the ledger has the case.
    """

    case: str
    status: LedgerStatus
    message: str
    listed: tuple[str, ...]


@dataclass
class FindingNews:
    """How the cases that a finding explains now compare with those that the ledger lists for it.

    ``finding`` is None if the current run does not have it. ``same`` counts the cases that fail as
    listed, and ``otherwise`` has those that fail in another way. A case that moved from one finding
    to another is ``gone`` from the first and ``more`` for the second. ``met`` has the cases in
    which only the tensors of another seed than the ledger's show the finding.
    """

    name: str
    says: str
    finding: Finding | None
    same: int = 0
    more: list[CaseNews] = field(default_factory=list)
    gone: list[CaseNews] = field(default_factory=list)
    otherwise: list[CaseNews] = field(default_factory=list)
    met: list[CaseNews] = field(default_factory=list)

    def kind(self, is_listed: bool) -> NewsKind | None:
        """Return whether the finding is new, changed or mended; None if all is as listed.

        ``is_listed`` says whether the ledger lists cases for it.
        """
        if not is_listed:
            return "new"
        if self.gone and not (self.same or self.more or self.otherwise):
            return "mended"
        return "changed" if self.more or self.gone or self.otherwise else None

    def words(self, kind: NewsKind) -> str:
        """Describe how far a new finding reaches, or how its cases changed, with an example."""
        if kind == "new" and self.finding is not None:
            return extent_words(self.finding)
        before = self.same + len(self.gone) + len(self.otherwise)
        now = self.same + len(self.more) + len(self.otherwise)
        if kind == "mended":
            extent = f"no longer in {counted(before, 'case')}"
        elif before != now:
            extent = f"from {before:,} to {counted(now, 'case')}"
        else:
            extent = f"in {len(self.more) + len(self.otherwise):,} of {counted(now, 'case')}"
        first = (self.otherwise or self.more or self.gone)[0]
        return f"{extent}; for instance {first.case}, {first.message}"


@dataclass
class BackendNews:
    """How all judged cases of one backend compare with its ledger.

    ``applied`` is None if no ledger is used. ``cases`` has the cases that do not fail as listed.
    """

    backend: str
    version: str
    applied: AppliedLedger | None
    known: Counter[str] = field(default_factory=Counter)
    """How many cases fail as listed, by the name of the finding."""
    cases: list[CaseNews] = field(default_factory=list)
    drawn: list[CaseNews] = field(default_factory=list)
    """The cases that fail in tensors which the ledger's seed does not draw."""

    @property
    def draws_anew(self) -> bool:
        """Whether the run has another seed than the ledger, and so other tensors."""
        return self.applied is not None and not self.applied.has_same_seed

    def add(self, case: str, compared: LedgerComparison) -> None:
        """Count a case that fails as listed, or add it to ``cases`` if it does not."""
        if compared.status == "known":
            self.known.update(compared.findings)
        else:
            self.cases.append(CaseNews(case, compared.status, compared.message, compared.findings))

    def add_drawn(self, case: str, found: Sequence[KnownFailure]) -> None:
        """Keep a case in which tensors show ``found`` that the ledger's seed does not draw."""
        assert self.applied is not None
        listings = self.applied.ledger.at(case, self.applied.base)
        names = tuple(dict.fromkeys(name for each in listings for name in each.findings))
        self.drawn.append(CaseNews(case, "unlisted", unlisted(found).message, names))

    def findings(self, found: Sequence[Finding]) -> dict[NewsKind | None, list[FindingNews]]:
        """Group findings by how they differ from the ledger; those under None do not differ.

        ``found`` are the findings of the current run. Listed findings that apply to no judged case
        are left out.
        """
        now: dict[str, list[str]] = {}
        for finding in found:
            for case in finding.cases:
                now.setdefault(case, []).append(finding.name)
        listed = self.applied.ledger.findings if self.applied is not None else {}
        told = {name: FindingNews(name, known.says, None) for name, known in listed.items()}
        told |= {each.name: FindingNews(each.name, each.says, each) for each in found}
        told.setdefault(UNEXPLAINED, FindingNews(UNEXPLAINED, "", None))
        before: set[str] = set(self.known)
        for name, count in self.known.items():
            told[name].same = count
        for each in self.cases:
            old = set(each.listed)
            new = set() if each.status == "stale" else set(now.get(each.case, old))
            if not old | new:
                new = {UNEXPLAINED}
            before |= old
            for name in new - old:
                told[name].more.append(each)
            for name in old - new:
                told[name].gone.append(each)
            for name in old & new:
                told[name].otherwise.append(each)
        for each in self.drawn:
            for name in now.get(each.case, [UNEXPLAINED]):
                # A kernel serves many pairs, so other tensors meet its fault in others of them.
                if name not in listed:
                    told[name].more.append(each)
                    continue
                before.add(name)
                if name not in each.listed:
                    told[name].met.append(each)
        by_kind: dict[NewsKind | None, list[FindingNews]] = {}
        for name, finding_news in told.items():
            if name in before or finding_news.more:
                by_kind.setdefault(finding_news.kind(name in before), []).append(finding_news)
        return by_kind

    def screen(self, found: Sequence[Finding]) -> BackendScreen:
        """Return what a terminal shows of the backend: counts, and each finding that differs.

        ``found`` are the findings of the current run. If there is a ledger and a finding differs,
        the command that records the differences comes last.
        """
        by_kind = self.findings(found)
        told = [
            [
                f"  {kind}: {each.says or 'no mechanism explains it'}",
                f"    {each.name}: {each.words(kind)}",
            ]
            for kind in NEWS_KINDS
            for each in by_kind.get(kind, ())
        ]
        same = len(by_kind.get(None, ()))
        news: dict[str, int] = {kind: len(by_kind.get(kind, ())) for kind in NEWS_KINDS}
        met = sum(len(each.met) for found in by_kind.values() for each in found)
        elsewhere = f"; {counted(met, 'case')} more by other tensors" if met else ""
        return BackendScreen(
            f"{self.backend} {self.version}, {self._since}: {changes_words(same, news)}{elsewhere}",
            told,
            [self._advice] if told and self.applied is not None else (),
        )

    @property
    def _advice(self) -> str:
        """Say how the ledger records what differs, or which seed shows it again."""
        if self.draws_anew:
            return "  a ledger is made with its own seed; `castigate run --seed` shows this again"
        return f"  to record it: {update_command(self.backend)}"

    @property
    def _since(self) -> str:
        match self.applied:
            case None:
                return "without a ledger"
            case AppliedLedger(has_same_seed=False, ledger=ledger):
                return f"since its ledger of seed {ledger.options.seed}"
            case AppliedLedger(version=version, base=base) if version == base:
                return "since its ledger"
            case AppliedLedger(base=base):
                return f"since {base}"
