"""Looks up what a ruling allows for rising patterns on its staircase."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expectations import Expected
from oracles.reference.staircase import staircase
from oracles.reference.staircase_lookup import locate_steps
from specs.branches import Ruling
from specs.outcomes import Either, Exactly


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return what a numeric ruling allows for each input; inputs must rise strictly."""
    stairs = staircase(ruling)
    steps, periods = locate_steps(stairs, inputs)
    mask, storage = np.uint64(ruling.target.mask), ruling.target.storage
    codes, others = (
        ((stairs.column(low)[steps] + periods * stairs.column(rise)[steps]) & mask).astype(storage)
        for low, rise in (("low", "rise"), ("other_low", "other_rise"))
    )
    branch_indices = stairs.column("branch_index")[steps]
    for branch_index, branch in enumerate(ruling.branches):
        # Steps hold only the recommended constant; the rule itself allows a second one.
        match branch.recommended, branch.outcome:
            case Exactly(), Either(options=[*_, Exactly(code=code)]):
                others[branch_indices == branch_index] = code
    return Expected(branch_indices, codes, others)
