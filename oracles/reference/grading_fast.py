"""The same grading compiled by numba: one walk over the inputs and the stretches beside them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.grading import OPEN
from oracles.reference.staircase import Staircase


def grades(stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.uint8]:
    """Per input: 0 if its answer is allowed, ``OPEN`` if any is, else 1 + the branch's place."""
    result = np.empty(inputs.size, np.uint8)
    mask = np.uint64(stairs.ruling.target.mask)
    _grade(stairs.stretches, stairs.steps, mask, inputs, answers, result)
    return result


@numba.njit(cache=True, nogil=True)
def _grade(stretches: Any, steps: Any, mask: Any, inputs: Any, answers: Any, result: Any) -> None:
    place = 0
    while place < inputs.size:
        number = np.searchsorted(stretches["first"], np.uint64(inputs[place]), "right") - 1
        stretch = stretches[number]
        last, shift = stretch["last"], stretch["shift"]
        low_bits = (np.uint64(1) << shift) - np.uint64(1)
        step, end = stretch["begin"], stretch["end"]
        after = place
        while after < inputs.size and np.uint64(inputs[after]) <= last:
            inside = np.uint64(inputs[after]) - stretch["first"]
            periods, offset = inside >> shift, inside & low_bits
            if offset < steps[step]["offset"]:
                step = stretch["begin"]
            while step + 1 < end and steps[step + 1]["offset"] <= offset:
                step += 1
            here = steps[step]
            code = np.uint64(answers[after])
            above = (code - (here["low"] + periods * here["rise"])) & mask
            other = (code - (here["other_low"] + periods * here["other_rise"])) & mask
            allowed = (above <= here["high"] - here["low"]) | (
                other <= here["other_high"] - here["other_low"]
            )
            wrong = code > mask or not allowed
            if wrong:
                result[after] = here["place"] + 1
            else:
                result[after] = OPEN if here["high"] - here["low"] == mask else 0
            after += 1
        place = after
