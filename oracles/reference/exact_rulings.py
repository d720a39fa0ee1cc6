"""Finds what a ruling allows for one input, by the definition of a cast.

``exact`` has the arithmetic, and ``exact_behaviors`` the steps of behaviors.
"""

from __future__ import annotations

from oracles.reference import exact_behaviors
from oracles.reference.exact import (
    Datum,
    Number,
    atom_of,
    decode,
    encode,
    round_magnitude,
    unit_of,
)
from oracles.reference.expectations import Allowed
from specs.behaviors import behavior_named
from specs.branches import Ruling
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value, Wrap


def allow(ruling: Ruling, code: int) -> Allowed:
    """Return what a numeric case allows for one source pattern.

    A document's worked examples come first; the ruling's branch for the input's atom otherwise.
    """
    for branch_index, (example_input, _) in enumerate(ruling.worked):
        if example_input == code:
            return resolve(ruling, branch_index, Number(0, 0, 0), code)
    datum = decode(ruling.source, code)
    atom = atom_of(ruling.source, ruling.target, ruling.rounding, datum)
    return resolve(ruling, ruling.branch_of[atom], datum, code)


def resolve(ruling: Ruling, branch_index: int, datum: Datum, code: int) -> Allowed:
    """Apply a branch's outcome to one value; ``codes`` stays empty where it names no pattern."""
    branch = ruling.branches[branch_index]
    match branch.outcome:
        case Either(options=options):
            patterns = tuple(_pattern(ruling, option, datum, code) for option in options)
            return Allowed(branch_index, branch, tuple(dict.fromkeys(patterns)))
        case Exactly() | Round() | Value() | Wrap() | Same() | Behaves():
            return Allowed(branch_index, branch, (_pattern(ruling, branch.outcome, datum, code),))
    return Allowed(branch_index, branch)


def _pattern(ruling: Ruling, outcome: Outcome, datum: Datum, code: int) -> int:
    """The pattern that a single outcome names; ``code`` is the input's own."""
    if isinstance(outcome, Exactly):
        return outcome.code
    if isinstance(outcome, Same):
        return code
    if isinstance(outcome, Behaves):
        behavior = behavior_named(outcome.behavior)
        found = exact_behaviors.answer(behavior, ruling.source, ruling.target, code)
        assert found is not None, f"{behavior.name} says nothing of {datum}"
        return found
    assert isinstance(datum, Number), f"{outcome} does not apply to {datum}"
    target = ruling.target
    rounding = outcome.rounding if isinstance(outcome, Round) else ruling.rounding
    unit = unit_of(target, datum)
    multiple = round_magnitude(datum, unit, rounding)
    return encode(target, datum.sign, multiple, unit)
