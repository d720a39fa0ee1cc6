"""Expectations of a whole array by the definition, one input after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact, exact_text
from oracles.reference.expectations import Allowed, Expected
from specs.ruling import Ruling


def allow(ruling: Ruling, given: int | str) -> Allowed:
    """What a case allows for one input, a pattern or a text."""
    if ruling.is_rejection or ruling.source.kind == "complex":
        # No input of these is told from another: one branch takes them all.
        return Allowed(0, ruling.branches[0])
    if isinstance(given, str):
        return exact_text.allow_text(ruling, given)
    return exact.allow(ruling, given)


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """What a case allows for each input, by the definition."""
    places = np.zeros(inputs.size, np.uint8)
    storage = ruling.target.storage if ruling.target.is_numeric else "uint8"
    codes = np.zeros(inputs.size, storage)
    others = codes.copy()
    decide: Callable[[Ruling, Any], Allowed] = allow
    for index, given in enumerate(inputs.tolist()):
        allowed = decide(ruling, given)
        places[index] = allowed.place
        if allowed.codes:
            codes[index] = allowed.codes[0]
            others[index] = allowed.codes[-1]
    return Expected(places, codes, others)
