"""Finds the fewest behaviors that explain all open answers, and the answers that none explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from reports.behaviors.regions import PHRASES, phrases_for
from reports.behaviors.tally import BehaviorSearch, CountedInputs, InputAndAnswer, Tally
from specs.behaviors import behaviors
from specs.formats import listed
from specs.model.vocabulary import Atom

MAX_COMBINED = 4
"""The most behaviors tried together; if more are needed, the one explaining most is taken first."""


@dataclass(frozen=True)
class BehaviorExplanation:
    """Regions of open inputs, the behavior that gives all answers there, and examples of them.

    If no behavior does, ``behavior`` is None, and ``nearest`` is one that is right more often than
    not, or None. Then ``exceptions`` counts the inputs on which ``nearest`` is wrong, and
    ``examples`` are some of these. Without ``nearest``, all inputs count as exceptions.
    """

    regions: tuple[str, ...]
    behavior: str | None
    inputs: int
    examples: tuple[InputAndAnswer, ...]
    nearest: str | None = None
    exceptions: int = 0


def explain(tally: Tally) -> list[BehaviorExplanation]:
    """Return an explanation per behavior needed, most inputs first, then the unexplained inputs."""
    found = [_explanation(tally, *group) for group in groups(tally)]
    return sorted(found, key=lambda each: (each.behavior is None, -each.inputs, each.regions))


def groups(tally: Tally) -> Iterator[tuple[list[Atom], str | None, str | None]]:
    """Yield groups of atoms that share an explanation: the atoms, their behavior, and the nearest.

    The behavior is None if none explains all answers; only then can there be a nearest, which is
    None if all are wrong too often.
    """
    right = {
        atom: [
            candidate.name
            for candidate in tally.search.candidates
            if (atom, candidate.name) not in tally.misses
        ]
        for atom in tally.inputs
    }
    chosen = _fewest(tally.search, {atom: names for atom, names in right.items() if names})
    for behavior, atoms in chosen.items():
        yield atoms, behavior, None
    unexplained: dict[str | None, list[Atom]] = {}
    for atom, names in right.items():
        if not names:
            unexplained.setdefault(_nearest(tally, atom), []).append(atom)
    for nearest, atoms in unexplained.items():
        yield atoms, None, nearest


def _fewest(search: BehaviorSearch, right: Mapping[Atom, list[str]]) -> dict[str, list[Atom]]:
    """Choose the fewest behaviors that explain all atoms, and assign each atom to one of them.

    ``right`` has the behaviors that explain each atom. Of equally many behaviors the simplest are
    chosen. An atom that two of them explain goes to the one that explains more atoms.
    """
    covers: dict[str, frozenset[Atom]] = {}
    for candidate in search.candidates:
        atoms = frozenset(atom for atom, names in right.items() if candidate.name in names)
        if atoms and atoms not in covers.values():
            covers[candidate.name] = atoms
    chosen = _smallest_cover(covers, frozenset(right))
    left, result = set(right), {}
    for name in sorted(chosen, key=lambda each: -len(covers[each])):
        if own := covers[name] & left:
            result[name] = sorted(own)
            left -= own
    return result


def _smallest_cover(
    covers: Mapping[str, frozenset[Atom]], every: frozenset[Atom]
) -> tuple[str, ...]:
    """Return the names of few sets in ``covers`` whose union is ``every``.

    They are the fewest possible if at most ``MAX_COMBINED`` suffice.
    """
    for size in range(MAX_COMBINED + 1):
        for names in combinations(covers, size):
            if frozenset().union(*(covers[name] for name in names)) == every:
                return names
    first = max(covers, key=lambda name: len(covers[name]))
    rest = every - covers[first]
    others = {name: atoms & rest for name, atoms in covers.items() if atoms & rest}
    return (first, *_smallest_cover(others, rest))


def _nearest(tally: Tally, atom: Atom) -> str | None:
    """Return the behavior with the fewest misses in an atom; None if it misses half or more."""
    names = (candidate.name for candidate in tally.search.candidates)
    name = min(names, key=lambda each: tally.misses[atom, each].count, default=None)
    if name is None or 2 * tally.misses[atom, name].count >= tally.inputs[atom].count:
        return None
    return name


def _explanation(
    tally: Tally, atoms: list[Atom], behavior: str | None, nearest: str | None
) -> BehaviorExplanation:
    inputs = _sum((tally.inputs[atom] for atom in atoms), tally)
    shown = _sum((tally.misses[atom, nearest] for atom in atoms), tally) if nearest else inputs
    return BehaviorExplanation(
        phrases_for(atoms, tally.inputs, PHRASES),
        behavior,
        inputs.count,
        shown.examples,
        nearest,
        0 if behavior is not None else shown.count,
    )


def _sum(parts: Iterable[CountedInputs], tally: Tally) -> CountedInputs:
    total = CountedInputs(0, ())
    for each in parts:
        total = total.merged(each, tally.search.source)
    return total


def sentence(tally: Tally, explanation: BehaviorExplanation) -> str:
    """Describe an explanation in one line, which does not name the pair of dtypes."""
    search, where, texts = tally.search, listed(explanation.regions), behaviors()
    if explanation.behavior is not None:
        says = texts[explanation.behavior].says
        return f"{where}: {says}: 100 % of {explanation.inputs:,} inputs"
    examples = ", ".join(
        f"{search.source.hexadecimal(given)} → {search.target.hexadecimal(got)}"
        for given, got in explanation.examples
    )
    if explanation.nearest is not None:
        says = texts[explanation.nearest].says
        return (
            f"{where}: unexplained: {says}, but not for {explanation.exceptions:,} of "
            f"{explanation.inputs:,} inputs: {examples}"
        )
    return f"{where}: unexplained: {explanation.inputs:,} inputs: {examples}"
