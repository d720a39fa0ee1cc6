"""A ledger by case: the failures that it lists, and how they compare with those that are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reports.changes.change import RIGHT, SEVERITY, ChangeKind, kind_of
from reports.findings.finding import FindingKind
from reports.findings.finding_text import counted
from reports.known_failures import KnownFailure
from reports.ledger.version_spans import Span, public_version, version_order

LedgerStatus = Literal["known", "unlisted", "changed", "stale"]


@dataclass(frozen=True)
class KnownFinding:
    """A finding as a ledger records it; ``upstream`` is the issue where it was reported."""

    kind: FindingKind
    says: str
    example: str = ""
    upstream: str | None = None


@dataclass(frozen=True)
class ListedFailure:
    """One failure of a case as a ledger lists it, the versions that have it, and its findings.

    ``findings`` are the names of the findings that explain the failure.
    """

    failure: KnownFailure
    span: Span
    findings: tuple[str, ...]


@dataclass(frozen=True)
class InputOptions:
    """The options that decide which inputs a run has; a ledger's counts hold for these alone."""

    tier: str = "quick"
    seed: int = 0
    max_examples: int = 1000

    def __str__(self) -> str:
        return f"--tier={self.tier} --seed={self.seed} --max-examples={self.max_examples}"


@dataclass(frozen=True)
class Ledger:
    """The known findings of one backend by name, and its known failures by case.

    In a ledger for house rules, ``backend`` is the backend's name joined with theirs: ``ort+java``.
    ``versions`` are those of the backend with which the ledger was made, the earliest first. For
    any other version, the listings of the nearest of them apply.
    """

    backend: str
    options: InputOptions = InputOptions()
    findings: dict[str, KnownFinding] = field(default_factory=dict)
    listings: dict[str, list[ListedFailure]] = field(default_factory=dict)
    versions: tuple[str, ...] = ()

    def at(self, case: str, version: str) -> list[ListedFailure]:
        """Return the listings of a case whose span of versions contains ``version``."""
        return [each for each in self.listings.get(case, ()) if version in each.span]

    def nearest(self, version: str) -> str:
        """Return the last of the ledger's versions that is not later than ``version``.

        If all are later, return the first of them; if the ledger has none, ``version`` without
        local part.
        """
        earlier = [each for each in self.versions if version_order(each) <= version_order(version)]
        return (earlier[-1:] or [*self.versions[:1], public_version(version)])[0]

    def is_about(self, options: InputOptions) -> bool:
        """Return whether the ledger says how a run with these options fails; any seed will do."""
        return replace(options, seed=self.options.seed) == self.options

    def applied_to(
        self, version: str, options: InputOptions, *, exactly: bool = False
    ) -> AppliedLedger:
        """Return the ledger for a run of a version, with the listings of the nearest version.

        If ``exactly``, only listings whose span contains the version itself apply.
        """
        base = public_version(version) if exactly else self.nearest(version)
        return AppliedLedger(self, public_version(version), base, options == self.options)


@dataclass(frozen=True)
class AppliedLedger:
    """A ledger as it is used for one version of its backend: with the listings of ``base``.

    A run with another seed than the ledger's asks other inputs. It may miss listed failures, and
    finds others in other regions, so that only verdicts can be compared.
    """

    ledger: Ledger
    version: str
    base: str
    has_same_seed: bool = True

    def at(self, case: str, found: Sequence[KnownFailure]) -> list[ListedFailure]:
        """Return the listings of a case with which its failures can be compared.

        With another seed, these are the listings of verdicts that are found, in the regions found.
        """
        listed = self.ledger.at(case, self.base)
        if self.has_same_seed:
            return listed
        now = {each.what: each for each in found}
        return [
            replace(each, failure=now[each.failure.what])
            for each in listed
            if each.failure.what in now
        ]

    def counted(self) -> tuple[int, int]:
        """Return how many cases have listings that apply, and how many have only others."""
        used = sum(bool(self.ledger.at(case, self.base)) for case in self.ledger.listings)
        return used, len(self.ledger.listings) - used

    def links(self, names: Iterable[str]) -> list[str]:
        """Return the links to the upstream issues of the findings with these names, each once."""
        found = (self.ledger.findings[name].upstream for name in names)
        return list(dict.fromkeys(link for link in found if link is not None))


@dataclass(frozen=True)
class LedgerComparison:
    """The result of comparing how a case fails with its ledger, and one line about it.

    ``findings`` are those under which the ledger lists the case. ``before`` and ``now`` say how it
    fails by the ledger and how it fails now, and ``kind`` how that changed.
    """

    status: LedgerStatus
    message: str
    findings: tuple[str, ...] = ()
    kind: ChangeKind = "otherwise"
    before: str = ""
    now: str = ""


def compare_with_listings(
    listed: Sequence[ListedFailure], found: Sequence[KnownFailure], verdict: str
) -> LedgerComparison | None:
    """Compare how a case fails with what is listed for it; return None if both are empty.

    Return None for a case that was not run, too. ``verdict`` is the case's current verdict, which
    the message names.
    """
    if verdict == "not-run" or not (listed or found):
        return None
    names = tuple(dict.fromkeys(name for each in listed for name in each.findings))
    if not listed:
        return unlisted(found)
    before = _listed_words(each.failure for each in listed)
    if not found:
        message = f"stale: {', '.join(names)} is listed, but the verdict is {verdict} now"
        kind: ChangeKind = "unsupported" if verdict == "unsupported" else "better"
        return LedgerComparison("stale", message, names, kind, before, verdict)
    differences = list(_differences(listed, found))
    if differences:
        kind = _kind([each.failure for each in listed], found)
        message = f"changed: {'; '.join(differences)}"
        return LedgerComparison("changed", message, names, kind, before, _listed_words(found))
    return LedgerComparison("known", ", ".join(names), names)


def unlisted(found: Sequence[KnownFailure]) -> LedgerComparison:
    """Return the comparison of a case that fails as ``found`` says and that no ledger lists."""
    now = _listed_words(found)
    return LedgerComparison("unlisted", f"unlisted: {now}", (), "worse", RIGHT, now)


def _listed_words(failures: Iterable[KnownFailure]) -> str:
    return ", ".join(map(_with_inputs, failures))


def _kind(listed: Sequence[KnownFailure], found: Sequence[KnownFailure]) -> ChangeKind:
    """Compare the worst verdicts, and if these are the same, the numbers of wrong inputs."""
    was, now = (max(SEVERITY.get(each.what, 0) for each in some) for some in (listed, found))
    before, after = (sum(each.inputs for each in some) for some in (listed, found))
    return kind_of(now - was, after - before)


def _differences(listed: Sequence[ListedFailure], found: Sequence[KnownFailure]) -> Iterator[str]:
    old_by_verdict = {each.failure.what: each.failure for each in listed}
    new_by_verdict = {each.what: each for each in found}
    for verdict in dict.fromkeys([*old_by_verdict, *new_by_verdict]):
        match old_by_verdict.get(verdict), new_by_verdict.get(verdict):
            case None, KnownFailure() as new:
                yield f"{_with_inputs(new)} is found, but not listed"
            case KnownFailure() as old, None:
                yield f"{_with_inputs(old)} is listed, but no longer occurs"
            case KnownFailure() as old, KnownFailure() as new if not old.covers(new):
                yield _change(old, new)


def _change(old: KnownFailure, new: KnownFailure) -> str:
    if old.inputs == new.inputs:
        what = "inputs or answers" if new.inputs else "errors or faults"
        return f"{new.what} by other {what} than listed"
    return f"{new.what}: {old.inputs:,} inputs listed, {new.inputs:,} now"


def _with_inputs(failure: KnownFailure) -> str:
    inputs = counted(failure.inputs, "input")
    return f"{failure.what} ({inputs})" if failure.inputs else failure.what
