"""Computes by the exact definition what a ruling allows, one input at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact, exact_text
from oracles.reference.expectations import Allowed, Expected
from specs.ruling import Ruling


def allow(ruling: Ruling, input_value: int | str) -> Allowed:
    """Return what a ruling allows for one input, a pattern or a text."""
    if ruling.is_rejection or ruling.source.kind == "complex":
        # Such a ruling does not distinguish inputs: its only branch applies to all of them.
        return Allowed(0, ruling.branches[0])
    if isinstance(input_value, str):
        return exact_text.allow_text(ruling, input_value)
    return exact.allow(ruling, input_value)


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return what a ruling allows for each input of an array."""
    branch_indices = np.zeros(inputs.size, np.uint8)
    storage = ruling.target.storage if ruling.target.is_numeric else "uint8"
    codes = np.zeros(inputs.size, storage)
    others = codes.copy()
    for index, input_value in enumerate(inputs.tolist()):
        allowed = allow(ruling, input_value)
        branch_indices[index] = allowed.branch_index
        if allowed.codes:
            codes[index] = allowed.codes[0]
            others[index] = allowed.codes[-1]
    return Expected(branch_indices, codes, others)
