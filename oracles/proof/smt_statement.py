"""What a ruling says of an input, stated from its atoms and outcomes, branch by branch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oracles.proof.bit_vectors import Truth, Vector
from oracles.proof.smt_rounding import Zones, is_rounding, rounded_integer
from oracles.proof.smt_values import Parts
from specs.model.vocabulary import ZONES, Atom, Rounding
from specs.outcomes import Either, Exactly, Outcome, Round, Same, Value, Wrap
from specs.ruling import Ruling


@dataclass(frozen=True)
class Answer:
    """What the kernel's text decides about an input."""

    place: Vector
    code: Vector
    other: Vector

    def equals(self, answer: Answer) -> Truth:
        """Whether two answers are one."""
        return (
            (self.place == answer.place) & (self.code == answer.code) & (self.other == answer.other)
        )


def holds(ruling: Ruling, value: Parts, answer: Answer) -> Truth:
    """Whether an answer is the one the definition gives."""
    zones = Zones(value, ruling.target, ruling.rounding)
    right = value.solving.truth(False)
    for place, branch in enumerate(ruling.branches):
        atoms = [atom for atom, taker in ruling.branch_of.items() if taker == place]
        taken = _taken(value, zones, atoms, list(ruling.branch_of))
        allowed = _allowed(ruling, branch.outcome, value, answer)
        right = right | (taken & (answer.place == place) & allowed)
    return right


def _taken(value: Parts, zones: Zones, atoms: list[Atom], every: list[Atom]) -> Truth:
    """Whether an input is one of some atoms."""
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
            here = [atom for atom in atoms if (atom.kind, atom.sign) == (kind, sign)]
            there = [atom for atom in every if (atom.kind, atom.sign) == (kind, sign)]
            if here:
                result = result | (is_kind & is_sign & _finer(value, zones, here, there))
    return result


def _finer(value: Parts, zones: Zones, atoms: list[Atom], every: list[Atom]) -> Truth:
    """Whether an input of a kind and sign is one of some atoms of these."""
    if len(atoms) == len(every):
        return value.solving.truth(True)
    facts = {
        "whole": lambda: value.whole,
        "subnormal": lambda: value.subnormal,
        "representable": lambda: zones.representable,
    }
    terms = []
    for zone in ZONES:
        here = {atom for atom in atoms if atom.zone == zone}
        there = {atom for atom in every if atom.zone == zone}
        if not here:
            continue
        inside = zones.holds(zone)
        telling = _telling(facts, here, there)
        kinds = {tuple(getattr(atom, name) for name in telling) for atom in here}
        if telling:
            inside = inside & value.solving.any_of(
                [
                    value.solving.all_of(
                        [
                            ~(facts[name]() ^ holds)
                            for name, holds in zip(telling, kind, strict=True)
                        ]
                    )
                    for kind in sorted(kinds)
                ]
            )
        terms.append(inside)
    return value.solving.any_of(terms)


def _telling(facts: Iterable[str], chosen: set[Atom], every: set[Atom]) -> list[str]:
    """Facts that tell the chosen atoms from the rest; those that are not needed are left out."""
    telling = list(facts)
    for fact in facts:
        fewer = [name for name in telling if name != fact]
        inside, outside = (
            {tuple(getattr(atom, name) for name in fewer) for atom in some}
            for some in (chosen, every - chosen)
        )
        if not inside & outside:
            telling = fewer
    return telling


def _allowed(ruling: Ruling, outcome: Outcome, value: Parts, answer: Answer) -> Truth:
    """Whether the answer's patterns are those of an outcome; both 0 where it names none."""
    match outcome:
        case Either(options=options):
            return _is(ruling, options[0], value, answer.code) & _is(
                ruling, options[-1], value, answer.other
            )
        case Exactly() | Round() | Value() | Wrap() | Same():
            return _is(ruling, outcome, value, answer.code) & (answer.other == answer.code)
    return (answer.code == 0) & (answer.other == 0)


def _is(ruling: Ruling, outcome: Outcome, value: Parts, code: Vector) -> Truth:
    """Whether a pattern is what a single outcome names."""
    match outcome:
        case Exactly(code=known):
            return code == known
        case Same():
            return code == value.pattern
        case Round(rounding=rounding):
            return _is_number(ruling, value, code, rounding)
    return _is_number(ruling, value, code, ruling.rounding)


def _is_number(ruling: Ruling, value: Parts, code: Vector, rounding: Rounding) -> Truth:
    """Whether a pattern is a value's rounding to the target; an integer's low bits, if wrapped."""
    target = ruling.target
    if target.is_integral:
        magnitude = rounded_integer(value, target, rounding).low(target.bits)
        minus = (magnitude ^ magnitude) - magnitude
        return code == value.negative.select(minus, magnitude)
    zero = code == 0
    if target.entry.zero == "signed":
        zero = code == value.negative.select(*_constants(code, (target.sign_bit, 0)))
    fits = code <= target.mask
    pattern = Parts(target, code.low(target.bits))
    return value.zero.choose(zero, fits & is_rounding(value, pattern, rounding))


def _constants(like: Vector, values: Iterable[int]) -> list[Vector]:
    return [like.solving.vector(value, like.width) for value in values]
