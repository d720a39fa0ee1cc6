"""Every pattern of every narrow source is taken by exactly one branch of every case's ruling."""

from __future__ import annotations

from functools import cache

import pytest

from oracles.reference.exact import atom_of, decode
from specs.editions import Edition, editions
from specs.formats import Format, format_named, formats
from specs.loader import documents
from specs.model.vocabulary import INPUT_CLASSES, OTHERWISE, Atom, Rounding, atoms
from specs.ruling import Ruling, ruling

EDITIONS = [
    one
    for document in documents().values()
    if document.entry.bitcast is None
    for one in editions(document)
]
NARROW = [form for form in formats().values() if form.is_numeric and form.bits <= 8]
ROUNDINGS: tuple[Rounding, ...] = (
    "nearest-even", "nearest-away", "toward-zero", "floor", "ceil", "odd",
)  # fmt: skip


@cache
def observed(source: str, target: str, rounding: Rounding) -> frozenset[Atom]:
    """The atoms that some pattern of the source falls into."""
    form, to = format_named(source), format_named(target)
    codes = range(form.mask + 1)
    return frozenset(atom_of(form, to, rounding, decode(form, code)) for code in codes)


@cache
def takers(classes: tuple[str, ...], atom: Atom) -> tuple[int, ...]:
    """The branches that take an atom; `otherwise` takes what no other does."""
    named = tuple(
        place
        for place, word in enumerate(classes)
        if word != OTHERWISE and INPUT_CLASSES[word](atom)
    )
    return named or tuple(place for place, word in enumerate(classes) if word == OTHERWISE)


def check(found: Ruling) -> None:
    classes = tuple(branch.input_class for branch in found.branches)
    for atom in observed(found.source.name, found.target.name, found.rounding):
        assert takers(classes, atom) == (found.branch_of[atom],), str(atom)


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda one: f"{one.document.name}:{one.version}")
def test_each_pattern_is_taken_by_one_branch(edition: Edition) -> None:
    checked = 0
    for case in edition.cases():
        if case.example is None and format_named(case.source) in NARROW:
            check(ruling(case))
            checked += 1
    assert checked


@pytest.mark.parametrize("source", NARROW, ids=lambda form: form.name)
def test_every_atom_that_occurs_is_known(source: Format) -> None:
    known = set(atoms(source))
    for target in formats():
        for rounding in ROUNDINGS:
            assert observed(source.name, target, rounding) <= known, f"{target} {rounding}"
