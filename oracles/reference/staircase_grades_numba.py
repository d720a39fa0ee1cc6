"""The same grading compiled by numba: one walk over the inputs and the stretches beside them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import Staircase
from oracles.reference.staircase_grades import OPEN


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
        shift, step = stretch["shift"], stretch["begin"]
        while place < inputs.size and np.uint64(inputs[place]) <= stretch["last"]:
            inside = np.uint64(inputs[place]) - stretch["first"]
            periods = inside >> shift
            offset = inside - (periods << shift)
            if offset < steps[step]["offset"]:
                step = stretch["begin"]
            while step + 1 < stretch["end"] and steps[step + 1]["offset"] <= offset:
                step += 1
            end = np.uint64(1) << shift
            if step + 1 < stretch["end"]:
                end = steps[step + 1]["offset"]
            # By lengths: the place where a period would end may lie beyond the last pattern.
            left = min(end - offset - np.uint64(1), stretch["last"] - stretch["first"] - inside)
            last = stretch["first"] + inside + left
            place = _grade_step(steps[step], periods, mask, last, inputs, answers, result, place)


@numba.njit(cache=True, nogil=True)
def _grade_step(
    step: Any,
    periods: Any,
    mask: Any,
    last: Any,
    inputs: Any,
    answers: Any,
    result: Any,
    place: Any,
) -> Any:
    """Grade what lies in one step of one period; where that ends."""
    low = step["low"] + periods * step["rise"]
    other_low = step["other_low"] + periods * step["other_rise"]
    span, other_span = step["high"] - step["low"], step["other_high"] - step["other_low"]
    broken, fine = np.uint8(step["place"] + 1), np.uint8(OPEN if span == mask else 0)
    while place < inputs.size and np.uint64(inputs[place]) <= last:
        code = np.uint64(answers[place])
        allowed = ((code - low) & mask <= span) | ((code - other_low) & mask <= other_span)
        result[place] = fine if allowed and code <= mask else broken
        place += 1
    return place
