"""A ruling as a statement about an input and an answer, made from its atoms and outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.proof.bit_vectors import Truth, Vector
from lab.proof.smt_conversions import is_answer
from lab.proof.smt_rounding import Zones, is_rounding, rounded_integer
from lab.proof.smt_values import DecodedPattern
from specs.behaviors import behavior_named
from specs.branches import Ruling
from specs.model.vocabulary import ZONES, Atom, Rounding
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value, Wrap


@dataclass(frozen=True)
class Answer:
    """An answer about an input: the branch's index and the two patterns that it allows."""

    branch_index: Vector
    code: Vector
    other: Vector

    def equals(self, answer: Answer) -> Truth:
        """State that two answers are the same."""
        return (
            (self.branch_index == answer.branch_index)
            & (self.code == answer.code)
            & (self.other == answer.other)
        )


def holds(ruling: Ruling, value: DecodedPattern, answer: Answer) -> Truth:
    """State that an answer is the one that the ruling demands."""
    zones = Zones(value, ruling.target, ruling.rounding)
    result = value.solving.truth(False)
    for branch_index, branch in enumerate(ruling.branches):
        atoms = [atom for atom, taker in ruling.branch_of.items() if taker == branch_index]
        applies = _is_any_atom(value, zones, atoms, list(ruling.branch_of))
        allowed = _allowed(ruling, branch.outcome, value, answer)
        result = result | (applies & (answer.branch_index == branch_index) & allowed)
    return result


def _is_any_atom(
    value: DecodedPattern, zones: Zones, atoms: list[Atom], every: list[Atom]
) -> Truth:
    """State that an input falls into one of ``atoms``; ``every`` are all that it may fall into."""
    solving = value.solving
    kinds = {
        "nan": value.nan,
        "infinity": value.infinite,
        "zero": value.zero,
        "finite": ~(value.nan | value.infinite | value.zero),
    }
    result = solving.truth(False)
    for kind, is_kind in kinds.items():
        for sign in ("+", "-", "none"):
            is_sign = {"+": ~value.negative, "-": value.negative, "none": solving.truth(True)}[sign]
            chosen = [atom for atom in atoms if (atom.kind, atom.sign) == (kind, sign)]
            possible = [atom for atom in every if (atom.kind, atom.sign) == (kind, sign)]
            if chosen:
                result = result | (
                    is_kind & is_sign & _is_any_of_kind(value, zones, chosen, possible)
                )
    return result


def _is_any_of_kind(
    value: DecodedPattern, zones: Zones, atoms: list[Atom], every: list[Atom]
) -> Truth:
    """As ``_is_any_atom``, for atoms of one kind and sign, which the input is known to have."""
    if len(atoms) == len(every):
        return value.solving.truth(True)
    facts = {
        "whole": lambda: value.whole,
        "subnormal": lambda: value.subnormal,
        "representable": lambda: zones.representable,
    }
    terms = []
    for zone in ZONES:
        chosen = {atom for atom in atoms if atom.zone == zone}
        possible = {atom for atom in every if atom.zone == zone}
        if not chosen:
            continue
        matches = zones.holds(zone)
        needed = _distinguishing_facts(facts, chosen, possible)
        combinations = {tuple(getattr(atom, name) for name in needed) for atom in chosen}
        if needed:
            matches = matches & value.solving.any_of(
                [
                    value.solving.all_of(
                        [
                            ~(facts[name]() ^ holds)
                            for name, holds in zip(needed, combination, strict=True)
                        ]
                    )
                    for combination in sorted(combinations)
                ]
            )
        terms.append(matches)
    return value.solving.any_of(terms)


def _distinguishing_facts(facts: Iterable[str], chosen: set[Atom], every: set[Atom]) -> list[str]:
    """Facts that distinguish the chosen atoms from the rest, without those that are not needed."""
    needed = list(facts)
    for fact in facts:
        fewer = [name for name in needed if name != fact]
        inside, outside = (
            {tuple(getattr(atom, name) for name in fewer) for atom in some}
            for some in (chosen, every - chosen)
        )
        if not inside & outside:
            needed = fewer
    return needed


def _allowed(ruling: Ruling, outcome: Outcome, value: DecodedPattern, answer: Answer) -> Truth:
    """State that an answer's patterns are those of an outcome; both are 0 if it names none."""
    match outcome:
        case Either(options=options):
            return _is(ruling, options[0], value, answer.code) & _is(
                ruling, options[-1], value, answer.other
            )
        case Exactly() | Round() | Value() | Wrap() | Same() | Behaves():
            return _is(ruling, outcome, value, answer.code) & (answer.other == answer.code)
    return (answer.code == 0) & (answer.other == 0)


def _is(ruling: Ruling, outcome: Outcome, value: DecodedPattern, code: Vector) -> Truth:
    """State that a pattern is the one that a single outcome names."""
    match outcome:
        case Exactly(code=constant):
            return code == constant
        case Same():
            return code == value.pattern
        case Behaves(behavior=name):
            behavior = behavior_named(name)
            return is_answer(behavior, ruling.source, ruling.target, value.pattern, code)
        case Round(rounding=rounding):
            return _is_number(ruling, value, code, rounding)
    return _is_number(ruling, value, code, ruling.rounding)


def _is_number(ruling: Ruling, value: DecodedPattern, code: Vector, rounding: Rounding) -> Truth:
    """State that a pattern is a value's rounding to the target, an integer's modulo ``2**bits``."""
    target = ruling.target
    if target.is_integral:
        magnitude = rounded_integer(value, target, rounding).low(target.bits)
        negated = (magnitude ^ magnitude) - magnitude
        return code == value.negative.select(negated, magnitude)
    zero = code == 0
    if target.entry.zero == "signed":
        zero = code == value.negative.select(*_constants(code, (target.sign_bit, 0)))
    fits = code <= target.mask
    pattern = DecodedPattern(target, code.low(target.bits))
    return value.zero.choose(zero, fits & is_rounding(value, pattern, rounding))


def _constants(like: Vector, values: Iterable[int]) -> list[Vector]:
    return [like.solving.vector(value, like.width) for value in values]
