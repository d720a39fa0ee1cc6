"""A ledger by case: the breaches that it lists, and how they compare with those that are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from reports.ledger.breaches import Breach
from reports.ledger.version_spans import Span

LedgerStatus = Literal["known", "unlisted", "changed", "stale"]
LEDGER_STATUSES: tuple[LedgerStatus, ...] = get_args(LedgerStatus)


@dataclass(frozen=True)
class Listing:
    """One breach as a ledger lists it: in which versions, by which behavior, reported where."""

    breach: Breach
    span: Span
    behavior: str | None = None
    upstream: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Verdict and rule: a case has at most one listing per key and version."""
        return self.breach.verdict, self.breach.rule


@dataclass(frozen=True)
class InputOptions:
    """The options that decide which inputs are asked: a ledger's counts hold for these alone."""

    tier: str = "quick"
    seed: int = 0
    max_examples: int = 1000

    def __str__(self) -> str:
        return f"--tier={self.tier} --seed={self.seed} --max-examples={self.max_examples}"


@dataclass(frozen=True)
class Ledger:
    """The known breaches of one backend, by case."""

    backend: str
    options: InputOptions = InputOptions()
    listings: dict[str, list[Listing]] = field(default_factory=dict)

    def at(self, case: str, version: str) -> list[Listing]:
        """Return the listings of a case that apply to one version of the backend."""
        return [each for each in self.listings.get(case, ()) if version in each.span]

    def counted(self, version: str) -> tuple[int, int]:
        """How many cases are listed for a version, and how many for other versions only."""
        used = sum(bool(self.at(case, version)) for case in self.listings)
        return used, len(self.listings) - used


@dataclass(frozen=True)
class LedgerComparison:
    """How a case compares with the ledger, and one line that says so."""

    status: LedgerStatus
    message: str


def compare_with_listings(
    listed: Sequence[Listing], found: Sequence[Breach], verdict: str
) -> LedgerComparison | None:
    """Compare what a case breaks with what is listed for it; None if there is neither."""
    if not listed and not found:
        return None
    if not listed:
        return LedgerComparison("unlisted", f"unlisted: {_names(found)}")
    if not found:
        names = _names(each.breach for each in listed)
        message = f"stale: {names} is listed, but the verdict is {verdict} now"
        return LedgerComparison("stale", message)
    differences = list(_differences(listed, found))
    if differences:
        return LedgerComparison("changed", f"changed: {'; '.join(differences)}")
    behaviors = dict.fromkeys(each.behavior for each in listed if each.behavior)
    links = dict.fromkeys(each.upstream for each in listed if each.upstream)
    return LedgerComparison("known", ", ".join([_names(found), *behaviors, *links]))


def _differences(listed: Sequence[Listing], found: Sequence[Breach]) -> Iterator[str]:
    old_by_key = {each.key: each.breach for each in listed}
    new_by_key = {breach.key: breach for breach in found}
    for key in dict.fromkeys([*old_by_key, *new_by_key]):
        match old_by_key.get(key), new_by_key.get(key):
            case None, Breach() as new:
                yield f"{_with_inputs(new)} is found, but not listed"
            case Breach() as old, None:
                yield f"{_with_inputs(old)} is listed, but no longer occurs"
            case Breach() as old, Breach() as new if old.region != new.region:
                yield _change(old, new)


def _change(old: Breach, new: Breach) -> str:
    if old.inputs or new.inputs:
        other = ", other inputs or answers" if old.inputs == new.inputs else ""
        return f"{new.name}: {old.inputs} inputs listed, {new.inputs} now{other}"
    return f"{new.name}: `{old.example}` listed, `{new.example}` now"


def _with_inputs(breach: Breach) -> str:
    return f"{breach.name} ({breach.inputs} inputs)" if breach.inputs else breach.name


def _names(found: Iterable[Breach]) -> str:
    return ", ".join(dict.fromkeys(breach.name for breach in found))
