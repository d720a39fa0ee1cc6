"""All rulings that differ from one another, each under the id of the first case that has it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

from specs.branches import Ruling
from specs.operations import is_cast
from specs.ruling import ruling
from specs.selection import select


@cache
def numeric_rulings() -> dict[str, Ruling]:
    """Return every ruling between numeric formats that is not a rejection."""
    return {
        name: rules
        for name, rules in _rulings_of_numbers().items()
        if rules.target.is_numeric and not rules.is_rejection
    }


@cache
def text_rulings() -> dict[str, Ruling]:
    """Return every ruling from a numeric format to texts whose answers are not open."""
    return {
        name: rules
        for name, rules in _rulings_of_numbers().items()
        if not rules.target.is_numeric and not rules.is_open
    }


@cache
def _rulings_of_numbers() -> dict[str, Ruling]:
    first: dict[Hashable, tuple[str, Ruling]] = {}
    for case in select([]):
        if case.example is None and is_cast(case):
            rules = ruling(case)
            if rules.source.is_numeric:
                first.setdefault(rules.meaning, (case.id, rules))
    return dict(first.values())
