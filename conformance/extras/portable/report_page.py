"""The page of a report: how safe each pair of dtypes is between each two backends of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from urllib.parse import urlencode

from conformance.extras.portable.pairs import (
    ABSENT,
    IN_RANGE,
    NOT_SAFE,
    SAFE,
    agree_names,
    portability_of,
)
from conformance.extras.portable.questions import rows_by_pair, stored_agreement
from conformance.extras.portable.survey import Parties
from reports.dtype_order import usual_first
from reports.findings.roads import backend_and_road, together
from reports.html.columns import WIDE
from reports.html.site import Mark, Page
from reports.run_store.open_run import CaseRow, RunAnswers
from reports.run_store.store import RunStore
from specs.formats import format_named

SIGNS: Mapping[str, Mark] = {
    SAFE: Mark("=", "v-conforms", "both give the same bits for every input asked"),
    IN_RANGE: Mark(
        "~",
        "v-deviates",
        "they do so in a range of values that holds zero and one, and not everywhere",
    ),
    NOT_SAFE: Mark("!", "v-violates", "there is no such range"),
    ABSENT: Mark(
        "–",
        "v-unsupported",
        "only one of them offers it, or the run holds no answers of both to the same input",
    ),
}
"""The sign of each portability of a pair of dtypes, the best first."""
MOST_MATRICES = 28
"""With more comparisons than this, a page has matrices only of roads of one framework."""
CaseRows = Mapping[tuple[str, str], CaseRow]


@dataclass(frozen=True)
class PortedPair:
    """How portable a pair of dtypes is between two backends, in a word and in a text.

    ``portability`` is a key of ``SIGNS``, and ``case`` the id of a case of the pair.
    """

    source: str
    target: str
    portability: str
    words: str
    case: str


@dataclass(frozen=True)
class Porting:
    """Two backends, and how portable each pair of dtypes is that at least one of them answers.

    ``alike`` are further backends, by the one of the two whose answers they share.
    """

    one: str
    other: str
    pairs: tuple[PortedPair, ...]
    alike: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def backends(self) -> list[str]:
        """All backends that are compared."""
        return [
            self.one,
            *self.alike.get(self.one, ()),
            self.other,
            *self.alike.get(self.other, ()),
        ]

    @property
    def names(self) -> str:
        """The two in words, with how many others share the answers of each."""
        counts = [(name, len(self.alike.get(name, ()))) for name in (self.one, self.other)]
        return " and ".join(f"{name} +{count}" if count else name for name, count in counts)

    @property
    def casts(self) -> str:
        """The address of the page of casts that compares the two."""
        return f"casts.html#{urlencode({'port': self.one, 'into': self.other})}"

    @property
    def is_of_roads(self) -> bool:
        """Whether the two are roads of one framework."""
        return backend_and_road(self.one)[0] == backend_and_road(self.other)[0]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of pairs by portability."""
        return Counter(each.portability for each in self.pairs)

    @property
    def sources(self) -> list[str]:
        """The source dtypes of the pairs, in the order of ``usual_first``."""
        return _in_order({each.source for each in self.pairs})

    @property
    def targets(self) -> list[str]:
        """The target dtypes of the pairs, in the order of ``usual_first``."""
        return _in_order({each.target for each in self.pairs})

    @cached_property
    def by_dtypes(self) -> Mapping[tuple[str, str], PortedPair]:
        """The pairs by source and target."""
        return {(each.source, each.target): each for each in self.pairs}

    @property
    def differing(self) -> list[PortedPair]:
        """The pairs that are ``NOT_SAFE``, then those that are safe ``IN_RANGE`` only."""
        order = [NOT_SAFE, IN_RANGE]
        found = [each for each in self.pairs if each.portability in order]
        return sorted(found, key=lambda each: order.index(each.portability))


def _in_order(names: set[str]) -> list[str]:
    return [name for name in usual_first() if name in names]


def portability_page(store: RunStore) -> Page | None:
    """Return a run's page about portability; None if no two backends can be compared."""
    found = portings(store)
    drawn = [each for each in found if len(found) <= MOST_MATRICES or each.is_of_roads]
    every = [each.name for each in store.record.backends]
    shared = found[0].alike if found else {}
    alike = [
        together((name, *others), every, len(every)) for name, others in shared.items() if others
    ]
    content = {"portings": found, "drawn": drawn, "alike": alike, "signs": SIGNS}
    return Page("portability", "Portability", __package__, content) if found else None


def portings(store: RunStore) -> list[Porting]:
    """Compare each two backends of a run of which both have stored answers to some pair.

    Of many backends, those that share all answers are compared as one.
    """
    held = RunAnswers(store)
    every = {each.name: rows_by_pair(held, each.name) for each in store.record.backends}
    rows = {name: found for name, found in every.items() if found}
    alike = _sharing_answers(rows) if len(rows) > WIDE else dict.fromkeys(rows, ())
    comparison = _Comparison(held)
    return [
        Porting(one, other, tuple(_pairs(comparison, (one, other), rows[one], rows[other])), alike)
        for one, other in combinations(alike, 2)
    ]


def _sharing_answers(rows: Mapping[str, CaseRows]) -> dict[str, tuple[str, ...]]:
    """Return the backends with distinct answers, each with the others that share all of them."""
    found: dict[Hashable, list[str]] = {}
    for name, by_pair in rows.items():
        key = frozenset((pair, row.asked, row.answers) for pair, row in by_pair.items())
        found.setdefault(key, []).append(name)
    return {first: tuple(others) for first, *others in found.values()}


def _pairs(
    comparison: _Comparison, names: tuple[str, str], one: CaseRows, other: CaseRows
) -> Iterator[PortedPair]:
    place = usual_first()
    pairs = sorted({*one, *other}, key=lambda pair: tuple(place[each] for each in pair))
    for pair in pairs:
        here, there = one.get(pair), other.get(pair)
        if here is None or there is None:
            offered = here or there
            assert offered is not None
            only = names[here is None]
            yield PortedPair(*pair, ABSENT, f"only {only} answers it", offered.case)
        elif (here.asked, here.answers) == (there.asked, there.answers):
            yield PortedPair(*pair, SAFE, "", here.case)
        else:
            portability, words = comparison.of(pair, here, there)
            yield PortedPair(*pair, portability, words, here.case)


class _Comparison:
    """Compares stored answers; caches results, as backends often share the same stored arrays."""

    def __init__(self, held: RunAnswers) -> None:
        self._held = held
        self._known: dict[Hashable, tuple[str, str]] = {}

    def of(self, pair: tuple[str, str], one: CaseRow, other: CaseRow) -> tuple[str, str]:
        """Return how portable a pair is between two cases, and in words where their answers agree.

        The words are empty if they agree on all inputs.
        """
        key = (pair, frozenset({(one.asked, one.answers), (other.asked, other.answers)}))
        if key not in self._known:
            source, target = map(format_named, pair)
            found = stored_agreement(self._held, Parties(source, target), [one, other])
            portability = portability_of(found)
            words = f"agree: {', '.join(agree_names(found)) or 'nowhere'}"
            others = {SAFE: "", ABSENT: "no input was asked of both"}
            self._known[key] = portability, others.get(portability, words)
        return self._known[key]
