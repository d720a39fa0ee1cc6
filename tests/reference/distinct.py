"""The rulings that mean something of their own, each under the id of the first case that has it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

from conformance.running.selection import select
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling


@cache
def numeric_rulings() -> dict[str, Ruling]:
    """Every ruling between numbers that answers something."""
    first: dict[Hashable, tuple[str, Ruling]] = {}
    for case in select([]):
        if case.example is not None or is_bitcast(case):
            continue
        rules = ruling(case)
        if rules.is_rejection or not (rules.source.is_numeric and rules.target.is_numeric):
            continue
        first.setdefault(rules.meaning, (case.id, rules))
    return dict(first.values())
