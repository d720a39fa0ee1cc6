"""How safe each pair of dtypes is between each two backends, by the answers that a run holds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations

from conformance.exchange.portability import Parties
from conformance.exchange.portable_pairs import agree_names, portability_of
from conformance.exchange.portable_questions import rows_by_pair, stored_agreement
from reports.html.portability import ABSENT, SAFE, PortedPair, Porting
from reports.run_store.answers import CaseRow, RunAnswers
from reports.run_store.open_run import open_run
from specs.formats import format_named, formats

Rows = Mapping[tuple[str, str], CaseRow]


def portings(run: str) -> list[Porting]:
    """Compare each two backends of a run; empty if it has one."""
    store = open_run(run)
    held = RunAnswers(store)
    rows = {each.name: rows_by_pair(held, each.name) for each in store.record.backends}
    comparison = _Comparison(held)
    return [
        Porting(one, other, tuple(_pairs(comparison, (one, other), rows[one], rows[other])))
        for one, other in combinations(rows, 2)
        if rows[one] and rows[other]
    ]


def _pairs(
    comparison: _Comparison, names: tuple[str, str], one: Rows, other: Rows
) -> Iterator[PortedPair]:
    order = list(formats())
    pairs = sorted({*one, *other}, key=lambda pair: tuple(map(order.index, pair)))
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
    """Compares stored answers; what several backends answered alike is compared once."""

    def __init__(self, held: RunAnswers) -> None:
        self._held = held
        self._known: dict[Hashable, tuple[str, str]] = {}

    def of(self, pair: tuple[str, str], one: CaseRow, other: CaseRow) -> tuple[str, str]:
        """How portable a pair is, and in words where both agree; no words if that is everywhere."""
        key = (pair, frozenset({(one.asked, one.answers), (other.asked, other.answers)}))
        if key not in self._known:
            source, target = map(format_named, pair)
            found = stored_agreement(self._held, Parties(source, target), [one, other])
            portability = portability_of(found)
            words = f"agree: {', '.join(agree_names(found)) or 'nowhere'}"
            self._known[key] = portability, "" if portability == SAFE else words
        return self._known[key]
