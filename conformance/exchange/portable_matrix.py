"""How safe each pair of dtypes is between each two backends, by the answers that a run holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from conformance.exchange.portability import Agreement, Parties
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
    return [
        Porting(one, other, tuple(_pairs(held, (one, other), rows[one], rows[other])))
        for one, other in combinations(rows, 2)
        if rows[one] and rows[other]
    ]


def _pairs(
    held: RunAnswers, names: tuple[str, str], one: Rows, other: Rows
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
            found = _compared(held, pair, here, there)
            portability = portability_of(found)
            words = f"agree: {', '.join(agree_names(found)) or 'nowhere'}"
            words = "" if portability == SAFE else words
            yield PortedPair(*pair, portability, words, here.case)


def _compared(held: RunAnswers, pair: tuple[str, str], one: CaseRow, other: CaseRow) -> Agreement:
    source, target = map(format_named, pair)
    return stored_agreement(held, Parties(source, target), [one, other])
