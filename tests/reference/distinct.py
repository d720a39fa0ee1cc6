"""All rulings that differ from one another, each under the id of the first case that has it."""

from __future__ import annotations

from functools import cache

from lab.proof.obligations import distinct_rulings
from specs.branches import Ruling


@cache
def numeric_rulings() -> dict[str, Ruling]:
    """Return every ruling between numeric formats that is not a rejection."""
    return {
        name: rules
        for name, rules in distinct_rulings().items()
        if rules.source.is_numeric and rules.target.is_numeric and not rules.is_rejection
    }


@cache
def text_rulings() -> dict[str, Ruling]:
    """Return every ruling from a numeric format to texts whose answers are not open."""
    return {
        name: rules
        for name, rules in distinct_rulings().items()
        if rules.source.is_numeric and not (rules.target.is_numeric or rules.is_open)
    }
