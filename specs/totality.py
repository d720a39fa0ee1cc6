"""Checks that rules are total and unambiguous: exactly one input class takes each kind of input.

Two steps for a pair of formats: ``partition_atoms`` assigns every atom that can occur to the input
class that takes it, and ``first_impossible`` checks that each atom can have the outcome of its
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from specs.behaviors import Behavior, behavior_named
from specs.formats import Format, is_exact, rounds
from specs.model.vocabulary import INPUT_CLASSES, OTHERWISE, REPRESENTABLE_ZONES, Atom, atoms
from specs.outcomes import (
    Anything,
    Behaves,
    Either,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Round,
    Same,
    Value,
    Wrap,
)


@dataclass(frozen=True)
class Partition:
    """The atoms that each of several input classes takes, in the order of the classes.

    ``gap`` describes the first atom that no class takes. ``overlap`` describes the first that
    several take, with the indices of these classes. Both are None if the classes are total and
    unambiguous.
    """

    atoms_of: tuple[tuple[Atom, ...], ...]
    gap: str | None
    overlap: tuple[str, tuple[int, ...]] | None

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The indices of the classes that take at least one atom."""
        return tuple(index for index, taken in enumerate(self.atoms_of) if taken)

    @cached_property
    def branch_of(self) -> dict[Atom, int]:
        """For each atom, the position within ``used`` of the class that takes it."""
        return {
            atom: branch for branch, index in enumerate(self.used) for atom in self.atoms_of[index]
        }


@cache
def possible_atoms(source: Format, target: Format) -> tuple[Atom, ...]:
    """Return the atoms into which inputs of the source format can fall if cast to the target."""
    return tuple(atom for atom in atoms(source) if _is_possible(atom, target))


def _is_possible(atom: Atom, target: Format) -> bool:
    if atom.zone == "none":
        has_match = atom.sign != "-" and target.has_zero and target.is_numeric
        return not atom.is_finite or atom.representable == has_match
    if not target.is_numeric:
        return atom.zone == "inside" and not atom.representable
    if atom.zone in REPRESENTABLE_ZONES:
        if atom.sign == "-" and not target.is_signed:
            return False
        return not target.is_integral or atom.representable == atom.whole
    return True


@cache
def partition_atoms(source: Format, target: Format, classes: tuple[str, ...]) -> Partition:
    """Assign each atom of a pair to the class that takes it, or to `otherwise` if none does."""
    fallbacks = tuple(index for index, word in enumerate(classes) if word == OTHERWISE)
    explicit = [
        (index, INPUT_CLASSES[word]) for index, word in enumerate(classes) if word != OTHERWISE
    ]
    gap = None
    overlap = ("all other inputs", fallbacks) if len(fallbacks) > 1 else None
    assigned: list[tuple[Atom, int]] = []
    for atom in possible_atoms(source, target):
        takers = tuple(index for index, takes in explicit if takes(atom)) or fallbacks
        if not takers:
            gap = gap or f"an input that is {atom}"
        elif len(takers) > 1:
            overlap = overlap or (f"an input that is {atom}", takers)
        else:
            assigned.append((atom, takers[0]))
    atoms_of = tuple(
        tuple(atom for atom, taker in assigned if taker == index) for index in range(len(classes))
    )
    return Partition(atoms_of, gap, overlap)


def first_impossible(
    outcome: Outcome, taken: tuple[Atom, ...], source: Format, target: Format
) -> Atom | None:
    """Return the first atom in ``taken`` that cannot have an outcome, or None if all can."""
    depends_on_atom = isinstance(outcome, Value | Round | Wrap | Either | Behaves)
    for atom in taken if depends_on_atom else taken[:1]:
        if not can_have(outcome, atom, source, target):
            return atom
    return None


def can_have(outcome: Outcome, atom: Atom, source: Format, target: Format) -> bool:
    """Return whether an input of an atom, cast from source to target, can have an outcome."""
    match outcome:
        case Value():
            return target.is_numeric and atom.is_finite and _has_exact_value(atom, source, target)
        case Round("floor" | "toward-zero") if atom.zone == "tiny" and not target.has_zero:
            # No integer is that small, and a negative number is out of range.
            return source.is_integral or atom.sign == "-"
        case Round() | Wrap():
            return atom.is_finite and target.is_numeric
        case Either(options=options):
            return all(can_have(option, atom, source, target) for option in options)
        case Exactly() | Nan():
            return target.is_numeric
        case PlainText() | ParsesTo():
            return target.kind == "text"
        case Same():
            return source == target
        case Behaves(behavior=name):
            return _gives_pattern(behavior_named(name), atom, source, target)
        case Rejected() | Anything():
            return True


def _gives_pattern(behavior: Behavior, atom: Atom, source: Format, target: Format) -> bool:
    """Return whether a behavior is for a pair and gives an atom's inputs one pattern, no NaN."""
    is_nan = atom.kind == "nan" and target.kind == "float"
    return (
        source.kind in behavior.from_
        and target.kind in behavior.to
        and atom.kind not in behavior.silent_about
        and not is_nan
    )


def _has_exact_value(atom: Atom, source: Format, target: Format) -> bool:
    """Return whether the target has every value of an atom: none is rounded or out of range."""
    if atom.representable or is_exact(source, target):
        return True
    if atom.zone == "overflow":
        return False
    if target.is_integral and atom.whole:
        return True  # in range: a whole number outside does not round back in
    return source.is_numeric and not rounds(source, target) and atom.zone != "beyond"
