"""A few of a case's inputs that tell most: of each rule the ends and some between, ties, NaNs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference.breakpoints import breakpoints
from oracles.reference.expected import Expected
from specs.ruling import Ruling

MOST = 32
LEAST_OF_A_RULE = 3
STEPS = 5
"""Target values at which, and in the middle after which, an input is taken."""


def telling(rules: Ruling, inputs: Bits, expected: Expected) -> NDArray[np.intp]:
    """The places of up to ``MOST`` inputs, in their order."""
    found: dict[int, None] = {}
    if rules.source.is_numeric and not rules.worked:
        wanted = np.array([*_nans(rules), *_ties(rules)], inputs.dtype)
        places = np.searchsorted(inputs, wanted).clip(max=inputs.size - 1)
        found.update(dict.fromkeys(places[inputs[places] == wanted].tolist()))
    taken = np.unique(expected.places)
    share = max(LEAST_OF_A_RULE, (MOST - len(found)) // taken.size)
    for place in taken.tolist():
        members = np.flatnonzero(expected.places == place)
        spread = np.linspace(0, members.size - 1, share).astype(int)
        found.update(dict.fromkeys(members[spread].tolist()))
    every = np.array(sorted(found), np.intp)
    few = np.linspace(0, every.size - 1, min(MOST, every.size)).astype(np.intp)
    return np.asarray(every[few], np.intp)


def _nans(rules: Ruling) -> Iterator[int]:
    """Of each sign the first, the middle (a quiet one) and the last."""
    for codes in rules.source.nan_codes:
        yield from (codes[0], codes[len(codes) // 2], codes[-1])


def _ties(rules: Ruling) -> list[int]:
    if not rules.target.is_numeric:
        return []
    source, target = rules.source, rules.target
    codes = [target.max_code * step // (STEPS - 1) for step in range(STEPS)]
    found = sorted(
        code for code in breakpoints(source, target, codes) if 1 < code < source.max_code
    )
    ties = found[1::3]  # of each three the one in the middle
    return ties if source.is_integral else [*ties, *(code | source.sign_bit for code in ties[:1])]
