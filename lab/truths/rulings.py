"""The rulings that truths are compared with: those of all documents, and those of every cast."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lab.proof.obligations import groups
from lab.truths.questions import Overflow
from specs.branches import Ruling
from specs.cases import Case
from specs.editions import editions
from specs.formats import Format, format_named, value_of
from specs.loader import Document, load_document
from specs.model.vocabulary import Rounding
from specs.outcomes import Behaves, Either
from specs.ruling import rule_case

EVERY_CAST = Path(__file__).with_name("every_cast.yaml")

Pair = tuple[Format, Format]


@cache
def pairs() -> tuple[Pair, ...]:
    """Every pair of numeric formats that has a ruling, wide sources first: they take longest."""
    found = dict.fromkeys((group.source, group.target) for group in groups())
    for case in _every_case():
        found.setdefault((format_named(case.source), format_named(case.target)))
    return tuple(sorted(found, key=lambda pair: -pair[0].bits))


def rulings_of(source: Format, target: Format) -> Iterator[tuple[str, Ruling]]:
    """Yield the rulings of a pair that are not open, each under the id of a case.

    A reduced precision is left out: it is a cast to another format and one back, which are compared
    as casts.
    """
    for group in groups():
        if (group.source, group.target) == (source, target):
            yield from (each for each in group.rulings if not reduces_precision(each[1]))
    for case in _every_case():
        if (case.source, case.target) == (source.name, target.name):
            if case.mode["overflow"] == "saturate" and not _overflows(source, target):
                continue
            ruling = rule_case(_document(), case)
            if not ruling.is_open:
                yield case.id, ruling


def reduces_precision(ruling: Ruling) -> bool:
    """Return whether a ruling rounds to another format and keeps the dtype."""
    outcomes = {
        each
        for branch in ruling.branches
        for each in (
            branch.outcome.options if isinstance(branch.outcome, Either) else [branch.outcome]
        )
    }
    return ruling.source == ruling.target and any(isinstance(each, Behaves) for each in outcomes)


def every_cast(source: Format, target: Format, rounding: Rounding, overflow: Overflow) -> Ruling:
    """The ruling of every-cast that answers a question."""
    modes = (("rounding", rounding), ("overflow", overflow))
    return rule_case(_document(), Case("every-cast", "1", source.name, target.name, modes))


@cache
def _document() -> Document:
    return load_document(EVERY_CAST)


@cache
def _every_case() -> tuple[Case, ...]:
    [only] = editions(_document())
    return tuple(only.cases())


def _overflows(source: Format, target: Format) -> bool:
    """Return whether a source may have values beyond the target's range; True for every float."""
    return source.kind == "float" or (
        value_of(source, source.max_code) > value_of(target, target.max_code)
        or value_of(source, source.lowest_code) < value_of(target, target.lowest_code)
    )
