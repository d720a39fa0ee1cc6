"""Computes by the exact definition what a ruling allows, one input at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact, exact_rulings, exact_text
from oracles.reference.expectations import Allowed, Expected
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Atom

ARRAYS_KEPT = 32
"""The most arrays of patterns whose atoms are cached: the search for causes asks many again."""


def allow(ruling: Ruling, input_value: int | str) -> Allowed:
    """Return what a ruling allows for one input, a pattern or a text."""
    if ruling.is_rejection or (ruling.source.kind == "complex" and not ruling.worked):
        # Such a ruling does not distinguish inputs: its only branch applies to all of them.
        return Allowed(0, ruling.branches[0])
    if isinstance(input_value, str):
        return exact_text.allow_text(ruling, input_value)
    return exact_rulings.allow(ruling, input_value)


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return what a ruling allows for each input of an array of patterns or texts."""
    if ruling.source.is_numeric and not ruling.target.is_numeric and not ruling.worked:
        return _expect_texts(ruling, inputs)
    branch_indices = np.zeros(inputs.size, np.uint8)
    storage = ruling.target.storage if ruling.target.kind != "text" else "uint8"
    codes = np.zeros(inputs.size, storage)
    others = codes.copy()
    for index, input_value in enumerate(inputs.tolist()):
        allowed = allow(ruling, input_value)
        branch_indices[index] = allowed.branch_index
        if allowed.codes:
            codes[index] = allowed.codes[0]
            others[index] = allowed.codes[-1]
    return Expected(branch_indices, codes, others)


def _expect_texts(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return the branch of each number that is cast to a text, without any patterns."""
    if ruling.is_rejection:
        branches = np.zeros(inputs.size, np.uint8)
    else:
        patterns = tuple(inputs.tolist())
        atoms, which = _atoms(ruling.source, ruling.target, patterns)
        branches = np.array([ruling.branch_of[atom] for atom in atoms], np.uint8)[which]
    nothing = np.zeros(inputs.size, np.uint8)
    return Expected(branches, nothing, nothing)


@lru_cache(ARRAYS_KEPT)
def _atoms(
    source: Format, target: Format, patterns: tuple[int, ...]
) -> tuple[tuple[Atom, ...], NDArray[np.intp]]:
    """Return the distinct atoms of patterns, and for each pattern the index of its atom.

    They are those for rounding to nearest: for a text as target, rounding does not matter.
    """
    numbers: dict[Atom, int] = {}
    which = np.empty(len(patterns), np.intp)
    for index, pattern in enumerate(patterns):
        atom = exact.atom_of(source, target, "nearest-even", exact.decode(source, pattern))
        which[index] = numbers.setdefault(atom, len(numbers))
    return tuple(numbers), which
