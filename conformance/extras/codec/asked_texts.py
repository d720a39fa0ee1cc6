"""The texts that a codec is asked to read: those of casts, and of few codes those of each tie."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from conformance.families.cast.quick_inputs import quick_inputs
from conformance.families.cast.text_inputs import around_midpoint
from oracles.protocol import Bits
from oracles.reference import exact_text, expect_by_exact
from oracles.reference.expectations import has_branch
from oracles.reference.kernel_text import shortest_text
from specs.branches import Ruling

RANDOM_TEXTS = 200
"""How many of the texts are random numbers; this many are the most of casts from texts."""
FEW_BITS = 8
"""The bits of the widest format of which the texts of each code are asked, and beside each tie."""


@lru_cache(maxsize=4)
def asked_texts(rules: Ruling) -> Bits:
    """Return the texts that are asked: numbers, then the names of infinities and NaN.

    Those for which the ruling allows any answer are left out: a codec may well refuse them.
    """
    target = rules.target
    found = quick_inputs(rules.source.name, target.name, 0, RANDOM_TEXTS).tolist()
    if target.bits <= FEW_BITS:
        for code in range(target.max_code + 1):
            found += [shortest_text(target, code), *around_midpoint(target, code)]
    texts = np.array([*dict.fromkeys(found)], object)
    is_open = has_branch(expect_by_exact.expect(rules, texts).branch_indices, rules.open_branches)
    asked = texts[~is_open]
    names = np.array([_is_name(text) for text in asked], bool)
    return np.concatenate([asked[~names], asked[names]])


def numbers_asked(rules: Ruling) -> int:
    """Return how many of the asked texts are numbers; the names come after them."""
    return sum(not _is_name(text) for text in asked_texts(rules))


def _is_name(text: str) -> bool:
    return exact_text.read_literal(text).number is None


def given_to(rules: Ruling, inputs: Bits) -> Bits:
    """Return what a codec is given for inputs: patterns of the source, or texts by their index."""
    if rules.source.kind == "text":
        return asked_texts(rules)[inputs.astype(np.intp)]
    return inputs.astype(rules.source.storage)
