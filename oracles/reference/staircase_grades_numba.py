"""``staircase_grades.grades`` compiled by numba, as one walk over inputs and stretches."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import Staircase
from oracles.reference.staircase_grades import ALLOWED, BROKEN, OPEN, Grades


def grades(stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]) -> Grades:
    """Grade each answer: ``ALLOWED``, ``OPEN``, or ``BROKEN`` + the place of the broken branch."""
    result = np.empty(inputs.size, np.uint8)
    mask = np.uint64(stairs.ruling.target.mask)
    _grade(stairs.stretches, stairs.steps, mask, inputs, answers, result)
    return result


@numba.njit(cache=True, nogil=True)
def _grade(stretches: Any, steps: Any, mask: Any, inputs: Any, answers: Any, result: Any) -> None:
    at = 0
    while at < inputs.size:
        number = np.searchsorted(stretches["first"], np.uint64(inputs[at]), "right") - 1
        stretch = stretches[number]
        shift, step = stretch["shift"], stretch["begin"]
        while at < inputs.size and np.uint64(inputs[at]) <= stretch["last"]:
            inside = np.uint64(inputs[at]) - stretch["first"]
            periods = inside >> shift
            offset = inside - (periods << shift)
            if offset < steps[step]["offset"]:
                step = stretch["begin"]
            while step + 1 < stretch["end"] and steps[step + 1]["offset"] <= offset:
                step += 1
            end = np.uint64(1) << shift
            if step + 1 < stretch["end"]:
                end = steps[step + 1]["offset"]
            # Compare lengths, not patterns: the end of a period may lie past 2**64 and wrap.
            left = min(end - offset - np.uint64(1), stretch["last"] - stretch["first"] - inside)
            last = stretch["first"] + inside + left
            at = _grade_step(steps[step], periods, mask, last, inputs, answers, result, at)


@numba.njit(cache=True, nogil=True)
def _grade_step(
    step: Any,
    periods: Any,
    mask: Any,
    last: Any,
    inputs: Any,
    answers: Any,
    result: Any,
    at: Any,
) -> Any:
    """Grade the inputs of one step in one period; return the index of the first input after it."""
    low = step["low"] + periods * step["rise"]
    other_low = step["other_low"] + periods * step["other_rise"]
    span, other_span = step["high"] - step["low"], step["other_high"] - step["other_low"]
    broken = np.uint8(step["place"] + BROKEN)
    not_broken = np.uint8(OPEN if span == mask else ALLOWED)
    while at < inputs.size and np.uint64(inputs[at]) <= last:
        code = np.uint64(answers[at])
        allowed = ((code - low) & mask <= span) | ((code - other_low) & mask <= other_span)
        result[at] = not_broken if allowed and code <= mask else broken
        at += 1
    return at
