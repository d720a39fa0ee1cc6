"""Expectations of an array of rising patterns by the definition, through its staircase."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expectations import Expected
from oracles.reference.staircase import staircase
from oracles.reference.staircase_grades import found_steps
from specs.outcomes import Either, Exactly
from specs.ruling import Ruling


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """What a case with numeric source and target allows for each input, by its steps."""
    stairs = staircase(ruling)
    found, periods = found_steps(stairs, inputs)
    mask, storage = np.uint64(ruling.target.mask), ruling.target.storage
    codes, others = (
        ((stairs.column(low)[found] + periods * stairs.column(rise)[found]) & mask).astype(storage)
        for low, rise in (("low", "rise"), ("other_low", "other_rise"))
    )
    places = stairs.column("place")[found]
    for place, branch in enumerate(ruling.branches):
        # The steps hold what is recommended; the rule itself allows a second constant.
        match branch.recommended, branch.outcome:
            case Exactly(), Either(options=[*_, Exactly(code=code)]):
                others[places == place] = code
    return Expected(places, codes, others)
