"""The distinct rulings of all documents, each under the id of the first case that has it."""

from __future__ import annotations

from functools import cache

from conformance.selection import select
from specs.ruling import Ruling, ruling


@cache
def numeric_rulings() -> dict[str, Ruling]:
    """Every ruling between numbers that answers something."""
    first: dict[Ruling, str] = {}
    for case in select([]):
        if case.example is not None:
            continue
        rules = ruling(case)
        if rules.is_rejection or not (rules.source.is_numeric and rules.target.is_numeric):
            continue
        first.setdefault(rules, case.id)
    return {name: rules for rules, name in first.items()}
