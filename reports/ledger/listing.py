"""A ledger, case by case: what is listed of it, and how that stands to what is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from reports.ledger.breaches import Breach
from reports.ledger.version_spans import Span

Word = Literal["known", "unlisted", "changed", "stale"]
WORDS: tuple[Word, ...] = ("known", "unlisted", "changed", "stale")


@dataclass(frozen=True)
class Listing:
    """One breach as a ledger lists it: in which versions, why, and where it is reported."""

    breach: Breach
    span: Span
    behaviour: str | None = None
    upstream: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What there is one of in a case and a version."""
        return self.breach.verdict, self.breach.rule


@dataclass(frozen=True)
class Asked:
    """How much was asked: counts and regions are true of that alone."""

    tier: str = "quick"
    seed: int = 0
    max_examples: int = 1000

    def __str__(self) -> str:
        return f"--tier={self.tier} --seed={self.seed} --max-examples={self.max_examples}"


@dataclass(frozen=True)
class Ledger:
    """The known divergences of one backend."""

    backend: str
    asked: Asked = Asked()
    listings: dict[str, list[Listing]] = field(default_factory=dict)

    def at(self, case: str, version: str) -> list[Listing]:
        """What is listed of a case in one version of the backend."""
        return [each for each in self.listings.get(case, ()) if version in each.span]

    def counted(self, version: str) -> tuple[int, int]:
        """How many cases are listed for a version, and how many for others only."""
        used = sum(bool(self.at(case, version)) for case in self.listings)
        return used, len(self.listings) - used


@dataclass(frozen=True)
class Standing:
    """How a case stands to the ledger, and what is to be said of it in one line."""

    word: Word
    said: str


def standing(listed: Sequence[Listing], found: Sequence[Breach], verdict: str) -> Standing | None:
    """How a case stands to what is listed of it; nothing where nothing is listed or found."""
    if not listed and not found:
        return None
    if not listed:
        return Standing("unlisted", f"unlisted: {_named(found)}")
    if not found:
        what = _named(each.breach for each in listed)
        return Standing("stale", f"stale: {what} is listed, but the verdict is {verdict} now")
    differences = list(_differences(listed, found))
    if differences:
        return Standing("changed", f"changed: {'; '.join(differences)}")
    links = dict.fromkeys(each.upstream for each in listed if each.upstream)
    behaviours = dict.fromkeys(each.behaviour for each in listed if each.behaviour)
    return Standing("known", ", ".join([_named(found), *behaviours, *links]))


def _differences(listed: Sequence[Listing], found: Sequence[Breach]) -> Iterator[str]:
    before = {each.key: each.breach for each in listed}
    now = {(breach.verdict, breach.rule): breach for breach in found}
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if old is None and new is not None:
            yield f"{_counted(new)} now, which is not listed"
        elif new is None and old is not None:
            yield f"{_counted(old)} listed, which no longer occurs"
        elif old is not None and new is not None and old.region != new.region:
            yield _moved(old, new)


def _moved(old: Breach, new: Breach) -> str:
    if old.inputs or new.inputs:
        other = ", other inputs or answers" if old.inputs == new.inputs else ""
        return f"{new.told}: {old.inputs} inputs listed, {new.inputs} now{other}"
    return f"{new.told}: `{old.example}` listed, `{new.example}` now"


def _counted(breach: Breach) -> str:
    return f"{breach.told} ({breach.inputs} inputs)" if breach.inputs else breach.told


def _named(found: Iterable[Breach]) -> str:
    return ", ".join(Counter(breach.told for breach in found))
