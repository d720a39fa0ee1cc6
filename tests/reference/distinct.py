"""All rulings with distinct meanings, each under the id of the first case that has it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

from conformance.running.selection import select
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling


@cache
def numeric_rulings() -> dict[str, Ruling]:
    """Return every ruling between numeric formats that is not a rejection."""
    first: dict[Hashable, tuple[str, Ruling]] = {}
    for case in select([]):
        if case.example is not None or is_bitcast(case):
            continue
        rules = ruling(case)
        if rules.is_rejection or not (rules.source.is_numeric and rules.target.is_numeric):
            continue
        first.setdefault(rules.meaning, (case.id, rules))
    return dict(first.values())
