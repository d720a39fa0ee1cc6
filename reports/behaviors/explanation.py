"""The smallest set of behaviours that explains all open answers, and what nothing explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from reports.behaviors.regions import words
from reports.behaviors.tally import Example, Met, Question, Tally
from specs.behaviors import behaviours
from specs.model.vocabulary import Atom

MOST_FORMS = 4
"""How many forms are tried together; beyond it, the form that explains most goes first."""


@dataclass(frozen=True)
class Explanation:
    """Some regions, the form that explains all their answers, and the smallest of these.

    Where no form does, ``form`` is nothing; ``nearest`` then names the one that explains all but
    ``exceptions`` inputs, and the examples are exceptions.
    """

    regions: tuple[str, ...]
    form: str | None
    inputs: int
    examples: tuple[Example, ...]
    nearest: str | None = None
    exceptions: int = 0


def explained(found: Tally) -> list[Explanation]:
    """One explanation per form that is needed, those with the most inputs first."""
    lines = [_line(found, *line) for line in _lines(found)]
    return sorted(lines, key=lambda line: (line.form is None, -line.inputs, line.regions))


def narrowed(found: Tally) -> Question:
    """The same question with only the forms that explain all of some line, or are nearest to it.

    More inputs can refute a form, but never make a refuted one right. Where they refute all that
    are left of a line, forms that explain a part of it may have been dropped: ask all again.
    """
    lines = list(_lines(found))
    kept = {nearest for _, _, nearest in lines}
    kept |= {
        form.name
        for form in found.question.forms
        for atoms, name, _ in lines
        if name and all((atom, form.name) not in found.misses for atom in atoms)
    }
    forms = tuple(form for form in found.question.forms if form.name in kept)
    return replace(found.question, forms=forms)


def _lines(found: Tally) -> Iterator[tuple[list[Atom], str | None, str | None]]:
    """The regions of each explanation, their form, or the nearest to one."""
    right = {
        atom: [form.name for form in found.question.forms if (atom, form.name) not in found.misses]
        for atom in found.inputs
    }
    chosen = _fewest(found.question, {atom: names for atom, names in right.items() if names})
    for form, atoms in chosen.items():
        yield atoms, form, None
    unexplained: dict[str | None, list[Atom]] = {}
    for atom, names in right.items():
        if not names:
            unexplained.setdefault(_nearest(found, atom), []).append(atom)
    for nearest, atoms in unexplained.items():
        yield atoms, None, nearest


def _fewest(asked: Question, right: Mapping[Atom, list[str]]) -> dict[str, list[Atom]]:
    """The fewest forms that explain all these atoms, the simplest of as many."""
    covers: dict[str, frozenset[Atom]] = {}
    for form in asked.forms:
        atoms = frozenset(atom for atom, names in right.items() if form.name in names)
        if atoms and atoms not in covers.values():
            covers[form.name] = atoms
    chosen = _cover(covers, frozenset(right))
    left, result = set(right), {}
    for name in sorted(chosen, key=lambda each: -len(covers[each])):
        if mine := covers[name] & left:
            result[name] = sorted(mine)
            left -= mine
    return result


def _cover(covers: Mapping[str, frozenset[Atom]], every: frozenset[Atom]) -> tuple[str, ...]:
    for size in range(MOST_FORMS + 1):
        for names in combinations(covers, size):
            if frozenset().union(*(covers[name] for name in names)) == every:
                return names
    first = max(covers, key=lambda name: len(covers[name]))
    rest = every - covers[first]
    others = {name: atoms & rest for name, atoms in covers.items() if atoms & rest}
    return (first, *_cover(others, rest))


def _nearest(found: Tally, atom: Atom) -> str | None:
    """The form that is wrong least often, if it is right more often than not."""
    names = (form.name for form in found.question.forms)
    name = min(names, key=lambda each: found.misses[atom, each].count, default=None)
    if name is None or 2 * found.misses[atom, name].count >= found.inputs[atom].count:
        return None
    return name


def _line(found: Tally, of: list[Atom], form: str | None, nearest: str | None) -> Explanation:
    inputs = _sum((found.inputs[atom] for atom in of), found)
    shown = _sum((found.misses[atom, nearest] for atom in of), found) if nearest else inputs
    return Explanation(
        words(of, found.inputs),
        form,
        inputs.count,
        shown.examples,
        nearest,
        0 if form is not None else shown.count,
    )


def _sum(met: Iterable[Met], found: Tally) -> Met:
    total = Met(0, ())
    for each in met:
        total = total.merged(each, found.question.source)
    return total


def sentence(found: Tally, line: Explanation) -> str:
    """An explanation as one line for people."""
    asked = found.question
    return f"{asked.source.name}→{asked.target.name}, {told(found, line)}"


def told(found: Tally, line: Explanation) -> str:
    """The same where the pair is known."""
    asked, where = found.question, _listed(line.regions)
    forms = behaviours()
    if line.form is not None:
        return f"{where}: {forms[line.form].says}: 100 % of {line.inputs:,} inputs"
    examples = ", ".join(
        f"{asked.source.hexadecimal(given)} → {asked.target.hexadecimal(got)}"
        for given, got in line.examples
    )
    if line.nearest is not None:
        says = forms[line.nearest].says
        return (
            f"{where}: unexplained: {says}, but not for {line.exceptions:,} of {line.inputs:,}"
            f" inputs: {examples}"
        )
    return f"{where}: unexplained: {line.inputs:,} inputs: {examples}"


def _listed(regions: tuple[str, ...]) -> str:
    *most, last = regions
    return f"{', '.join(most)} and {last}" if most else last
