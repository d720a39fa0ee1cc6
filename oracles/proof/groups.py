"""The rulings to prove: one of each meaning that answers something, by pair and rounding."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache

from specs.editions import editions
from specs.formats import Format
from specs.load import documents
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling
from specs.vocabulary import Rounding


@dataclass(frozen=True)
class Group:
    """The rulings that round one pair in one way, each under the id of the first case it rules."""

    source: Format
    target: Format
    rounding: Rounding
    rulings: tuple[tuple[str, Ruling], ...]

    @property
    def name(self) -> str:
        """The first case, and how many rulings stand beside its own."""
        others = len(self.rulings) - 1
        first = self.rulings[0][0]
        return f"{first} and {others} more" if others else first


@cache
def groups() -> tuple[Group, ...]:
    """Every ruling between numbers that is neither a rejection nor open as a whole."""
    first: dict[Hashable, tuple[str, Ruling]] = {}
    for name, rules in _rulings():
        first.setdefault(rules.meaning, (name, rules))
    found: dict[tuple[Format, Format, Rounding], list[tuple[str, Ruling]]] = {}
    for name, rules in first.values():
        found.setdefault((rules.source, rules.target, rules.rounding), []).append((name, rules))
    return tuple(Group(*key, tuple(rulings)) for key, rulings in found.items())


def _rulings() -> Iterator[tuple[str, Ruling]]:
    for document in documents().values():
        for edition in editions(document):
            for case in edition.cases():
                if case.example is not None or is_bitcast(case):
                    continue
                rules = ruling(case)
                numeric = rules.source.is_numeric and rules.target.is_numeric
                if numeric and not (rules.is_rejection or rules.is_open):
                    yield case.id, rules
