"""What makes rules total and unambiguous: each kind of input taken once, by what it can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from specs.formats import Format
from specs.model.vocabulary import HAS_REPRESENTABLE, INPUT_CLASSES, OTHERWISE, Atom, atoms
from specs.outcomes import (
    Anything,
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
from specs.pair_conditions import is_exact, rounds


@dataclass(frozen=True)
class Sorting:
    """Which of several input classes takes which atoms; the first gap and overlap, if any."""

    atoms_of: tuple[tuple[Atom, ...], ...]
    gap: str | None
    overlap: tuple[str, tuple[int, ...]] | None

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The classes that take anything."""
        return tuple(place for place, taken in enumerate(self.atoms_of) if taken)

    @cached_property
    def branch_of(self) -> dict[Atom, int]:
        """For each atom, the place of its class among those used."""
        return {
            atom: branch for branch, place in enumerate(self.used) for atom in self.atoms_of[place]
        }


@cache
def possible_atoms(source: Format, target: Format) -> tuple[Atom, ...]:
    """The atoms that inputs of a source can fall into beside this target."""
    return tuple(atom for atom in atoms(source) if _is_possible(atom, target))


def _is_possible(atom: Atom, target: Format) -> bool:
    if atom.zone == "none":
        has_match = atom.sign != "-" and target.has_zero and target.is_numeric
        return not atom.is_finite or atom.representable == has_match
    if not target.is_numeric:
        return atom.zone == "inside" and not atom.representable
    if atom.zone in HAS_REPRESENTABLE:
        if atom.sign == "-" and not target.is_signed:
            return False
        return not target.is_integral or atom.representable == atom.whole
    return True


@cache
def sort_atoms(source: Format, target: Format, classes: tuple[str, ...]) -> Sorting:
    """Give each atom of a pair to the class that takes it, the rest to `otherwise`."""
    fallbacks = tuple(place for place, word in enumerate(classes) if word == OTHERWISE)
    explicit = [
        (place, INPUT_CLASSES[word]) for place, word in enumerate(classes) if word != OTHERWISE
    ]
    gap = None
    overlap = ("all other inputs", fallbacks) if len(fallbacks) > 1 else None
    taken: list[tuple[Atom, int]] = []
    for atom in possible_atoms(source, target):
        takers = tuple(place for place, takes in explicit if takes(atom)) or fallbacks
        if not takers:
            gap = gap or f"an input that is {atom}"
        elif len(takers) > 1:
            overlap = overlap or (f"an input that is {atom}", takers)
        else:
            taken.append((atom, takers[0]))
    atoms_of = tuple(
        tuple(atom for atom, taker in taken if taker == place) for place in range(len(classes))
    )
    return Sorting(atoms_of, gap, overlap)


def unfit(outcome: Outcome, taken: tuple[Atom, ...], source: Format, target: Format) -> str | None:
    """The first kind of input that cannot have an outcome; for most outcomes all are alike."""
    depends = isinstance(outcome, Value | Round | Wrap | Either)
    for atom in taken if depends else taken[:1]:
        if not fits(outcome, atom, source, target):
            return str(atom)
    return None


def fits(outcome: Outcome, atom: Atom, source: Format, target: Format) -> bool:
    """Whether an input and a target can have an outcome at all."""
    match outcome:
        case Value():
            return target.is_numeric and atom.is_finite and _is_kept(atom, source, target)
        case Round() | Wrap():
            return atom.is_finite and target.is_numeric
        case Either(options=options):
            return all(fits(option, atom, source, target) for option in options)
        case Exactly() | Nan():
            return target.is_numeric
        case PlainText() | ParsesTo():
            return target.kind == "text"
        case Same():
            return source == target
        case Rejected() | Anything():
            return True


def _is_kept(atom: Atom, source: Format, target: Format) -> bool:
    """Whether the target has the very value: nothing is rounded and nothing is out of range."""
    if atom.representable or is_exact(source, target):
        return True
    if atom.zone == "overflow":
        return False
    if target.is_integral and atom.whole:
        return True  # a whole number does not round back into range
    return source.is_numeric and not rounds(source, target) and atom.zone != "beyond"
