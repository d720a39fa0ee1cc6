"""Exactly one branch of every ruling takes each pattern of every source up to 8 bits wide.

A document without such a source is tested on special patterns of its narrowest ones.
"""

from __future__ import annotations

from functools import cache

import pytest

from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.reference.exact import atom_of, decode
from specs.branches import Ruling
from specs.editions import Edition, editions
from specs.formats import Format, format_named, formats
from specs.loader import documents
from specs.model.vocabulary import INPUT_CLASSES, OTHERWISE, Atom, Rounding, atoms
from specs.ruling import ruling

EDITIONS = [
    edition
    for document in documents().values()
    if document.entry.operation in ("cast", "call")
    for edition in editions(document)
]
NARROW = [fmt for fmt in formats().values() if fmt.is_numeric and fmt.bits <= 8]
ROUNDINGS: tuple[Rounding, ...] = (
    "nearest-even", "nearest-away", "toward-zero", "floor", "ceil", "odd",
)  # fmt: skip


@cache
def occurring_atoms(source_name: str, target_name: str, rounding: Rounding) -> frozenset[Atom]:
    """The atoms that the patterns of a source fall into, or special ones of a wide source."""
    source, target = format_named(source_name), format_named(target_name)
    few = every_pattern(source) if source.bits <= 8 else few_patterns(source_name, target_name, 0)
    return frozenset(
        atom_of(source, target, rounding, decode(source, code)) for code in few.tolist()
    )


@cache
def takers(classes: tuple[str, ...], atom: Atom) -> tuple[int, ...]:
    """The indices of the classes that take an atom; `otherwise` takes what no other does."""
    explicit = tuple(
        index
        for index, word in enumerate(classes)
        if word != OTHERWISE and INPUT_CLASSES[word](atom)
    )
    return explicit or tuple(index for index, word in enumerate(classes) if word == OTHERWISE)


def assert_each_atom_is_taken_once(rules: Ruling) -> None:
    classes = tuple(branch.input_class for branch in rules.branches)
    for atom in occurring_atoms(rules.source.name, rules.target.name, rules.rounding):
        assert takers(classes, atom) == (rules.branch_of[atom],), str(atom)


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    "edition", EDITIONS, ids=lambda each: f"{each.document.name}:{each.version}"
)
def test_each_pattern_is_taken_by_exactly_one_branch(edition: Edition) -> None:
    checked = 0
    most = max(8, min(format_named(case.source).bits for case in edition.cases()))
    assert most <= 16
    for case in edition.cases():
        source = format_named(case.source)
        if case.example is None and source.is_numeric and source.bits <= most:
            assert_each_atom_is_taken_once(ruling(case))
            checked += 1
    assert checked


@pytest.mark.parametrize("source", NARROW, ids=lambda fmt: fmt.name)
def test_atoms_includes_every_atom_that_occurs(source: Format) -> None:
    known = set(atoms(source))
    for target in formats():
        for rounding in ROUNDINGS:
            assert occurring_atoms(source.name, target, rounding) <= known, f"{target} {rounding}"
