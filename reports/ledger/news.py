"""How backends differ from their ledgers, case by case: what is worse, better or otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reports.case_patterns import VARIANTS, document_of
from reports.changes.change import (
    RIGHT,
    BackendChanges,
    CaseChange,
    Example,
    causes_only_in,
    grouped,
    kind_of,
    more_causes,
    only_in,
)
from reports.findings.finding import UNEXPLAINED, ExplainedCase, Finding, Findings
from reports.findings.finding_text import (
    allowed_words,
    counted,
    datum_words,
    share_words,
    shortened,
)
from reports.judgement import Judgement
from reports.known_failures import KnownFailure, failures
from reports.ledger.ledger_file import load_ledger, update_command
from reports.ledger.listing import (
    AppliedLedger,
    InputOptions,
    LedgerComparison,
    compare_with_listings,
    unlisted,
)
from reports.run_store.record import RunRecord
from specs.cases import JOINT, Case

NO_MECHANISM = "fails, and no mechanism explains it"
"""The sentence for a failing case without a finding."""
SharesByName = Mapping[str, Mapping[str, tuple[Finding, ExplainedCase]]]
"""By case, the findings that explain it now, by name, each with its share."""


@dataclass
class BackendNews:
    """How all judged cases of one backend compare with its ledger.

    ``applied`` is None if no ledger is used. ``same`` counts the cases that fail as listed, and
    ``cases`` has all others that fail or are listed, by name.
    """

    backend: str
    version: str
    applied: AppliedLedger | None
    same: int = 0
    cases: dict[str, LedgerComparison] = field(default_factory=dict)
    drawn: dict[str, LedgerComparison] = field(default_factory=dict)
    """The cases that fail in tensors which the ledger's seed does not draw."""

    @property
    def draws_anew(self) -> bool:
        """Whether the run has another seed than the ledger, and so other tensors."""
        return self.applied is not None and not self.applied.has_same_seed

    def add(self, case: str, compared: LedgerComparison) -> None:
        """Count a case that fails as listed, or add it to ``cases`` if it does not."""
        if compared.status == "known":
            self.same += 1
        else:
            self.cases[case] = compared

    def add_drawn(self, case: str, found: Sequence[KnownFailure]) -> None:
        """Keep a case that fails as ``found`` in tensors that the ledger's seed does not draw."""
        assert self.applied is not None
        listings = self.applied.ledger.at(case, self.applied.base)
        names = tuple(dict.fromkeys(name for each in listings for name in each.findings))
        self.drawn[case] = replace(unlisted(found), findings=names)

    def changes(self, found: Sequence[Finding]) -> BackendChanges:
        """Return what changed since the ledger; ``found`` are the findings of the current run.

        If there is a ledger and a case changed, a note names the command that records it, or the
        one that shows it again.
        """
        shares = _shares_of(found)
        news = {**self.cases, **dict(self._new_by_other_tensors(shares))}
        changed = [self._change(name, each, shares.get(name, {})) for name, each in news.items()]
        met = sum(
            not {*shares.get(name, ())} <= {*each.findings} and name not in news
            for name, each in self.drawn.items()
        )
        notes = [f"  {counted(met, 'case')} more by other tensors"] if met else []
        if changed and self.draws_anew:
            notes.append(
                "  a ledger is made with its own seed; `castigate run --seed` shows this again"
            )
        elif changed and self.applied is not None:
            notes.append(f"  to record it: {update_command(self.backend)}")
        return BackendChanges(
            self.backend, self.version, self._since, grouped(changed), self.same, tuple(notes)
        )

    def has_new_causes(self, found: Sequence[Finding]) -> bool:
        """Return whether tensors that the ledger's seed does not draw show a cause it lacks.

        ``found`` are the findings of the current run.
        """
        return any(self._new_by_other_tensors(_shares_of(found)))

    def _new_by_other_tensors(self, shares: SharesByName) -> Iterator[tuple[str, LedgerComparison]]:
        """Yield the cases that fail in other tensors by a cause that the ledger does not list.

        A kernel serves many pairs, and other tensors may show its fault in other pairs. So a case
        is left out if the ledger lists its causes for any case.
        """
        listed = self.applied.ledger.findings if self.applied is not None else {}
        for name, compared in self.drawn.items():
            if not {*shares.get(name, {UNEXPLAINED: None})} <= {*listed}:
                yield name, compared

    def _change(
        self,
        name: str,
        compared: LedgerComparison,
        shares: Mapping[str, tuple[Finding, ExplainedCase]],
    ) -> CaseChange:
        """Return how a case changed; ``shares`` are those of the findings that explain it now."""
        known = self.applied.ledger.findings if self.applied is not None else {}
        was = {each: known[each].says for each in compared.findings if each in known}
        now = {each: finding.says for each, (finding, _) in shares.items()}
        if compared.status == "stale":
            now = {}
        elif not now:
            now = was or {UNEXPLAINED: NO_MECHANISM}
        before, after = only_in(was, now), only_in(now, was)
        kind = compared.kind
        if kind == "otherwise":
            kind = kind_of(0, more_causes(now, was))
        worse, other = (was, now) if kind == "better" else (now, was)
        examples = (known[each].example for each in before if each in known)
        return CaseChange(
            name,
            kind,
            tuple(was[each] for each in before) or (RIGHT,),
            tuple(now[each] for each in after) or (RIGHT,),
            tuple(dict.fromkeys([*before, *after])),
            causes_only_in(worse, other),
            _example(
                name,
                compared,
                next(filter(None, examples), ""),
                [shares[each][1] for each in after if each in shares],
            ),
        )

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

        Cases of a user's own document are left out, because no ledger lists them. Nor does one list
        comparisons of two variants: a ledger is made of one backend alone.
        """
        news, name = self.news[judgement.backend], judgement.check or case.id
        is_comparison = document_of(name) == VARIANTS and news.applied is not None
        if is_comparison or case.document.partition(JOINT)[0] in self._own:
            return
        found = failures(case, judgement, with_drawn=not news.draws_anew)
        listed = news.applied.at(name, found) if news.applied is not None else []
        compared = compare_with_listings(listed, found, judgement.verdict)
        if compared is not None:
            news.add(name, compared)
        everything = failures(case, judgement)
        if everything != found:
            news.add_drawn(name, everything)

    def changes(self, findings: Findings) -> list[BackendChanges]:
        """Return what changed for each backend since its ledger.

        ``findings`` are those of the run, by backend.
        """
        found = []
        for name, news in self.news.items():
            changes = news.changes(findings.get(name, ()))
            if name in self.unused:
                unused = f"  its ledger is not used; it was made with {self.unused[name]}"
                changes = replace(changes, notes=(unused, *changes.notes))
            found.append(changes)
        return found


def _shares_of(found: Sequence[Finding]) -> SharesByName:
    shares: dict[str, dict[str, tuple[Finding, ExplainedCase]]] = {}
    for finding in found:
        for share in finding.explained:
            shares.setdefault(share.cell.name, {}).setdefault(finding.name, (finding, share))
    return shares


def _example(
    name: str, compared: LedgerComparison, listed: str, shares: Sequence[ExplainedCase]
) -> Example:
    """Show how a case changed, by the ledger's example and by a finding that explains it now."""
    if compared.status == "unlisted" and shares and shares[0].smallest:
        cell = shares[0].cell
        given, got = (
            datum_words(cell.source, shares[0].smallest),
            datum_words(cell.target, shares[0].answer),
        )
        return Example(name, given, allowed_words(shares[0]), got)
    # A ledger has one example of each finding, which need not be from this case.
    before = f"{compared.before}, such as: {listed}" if listed else compared.before
    now = shortened(share_words(shares[0])) if shares else ""
    return Example(name, "", before, now or compared.now)
