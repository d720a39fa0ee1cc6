"""``compare_with_steps`` compiled by numba, as one walk over inputs and stretches."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import Staircase
from reports.grading.staircase_grades import Compared


def compare_with_steps(stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]) -> Compared:
    """Return what ``staircase_grades.compare_with_steps`` returns, in compiled code."""
    outside, branch_indices = np.empty(inputs.size, bool), np.empty(inputs.size, np.uint8)
    mask = np.uint64(stairs.ruling.target.mask)
    _compare(stairs.stretches, stairs.steps, mask, inputs, answers, outside, branch_indices)
    return outside, branch_indices


@numba.njit(cache=True, nogil=True)
def _compare(
    stretches: Any,
    steps: Any,
    mask: Any,
    inputs: Any,
    answers: Any,
    outside: Any,
    branch_indices: Any,
) -> None:
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
            here = steps[step]
            after = _compare_with_step(here, periods, mask, last, inputs, answers, outside, at)
            branch_indices[at:after] = here["branch_index"]
            at = after


@numba.njit(cache=True, nogil=True)
def _compare_with_step(
    step: Any,
    periods: Any,
    mask: Any,
    last: Any,
    inputs: Any,
    answers: Any,
    outside: Any,
    at: Any,
) -> Any:
    """Compare the answers to inputs up to ``last`` with one step in one period.

    ``periods`` is the number of periods before. Write to ``outside`` from ``at`` on, and return the
    index of the first input after ``last``.
    """
    low = step["low"] + periods * step["rise"]
    other_low = step["other_low"] + periods * step["other_rise"]
    span, other_span = step["high"] - step["low"], step["other_high"] - step["other_low"]
    while at < inputs.size and np.uint64(inputs[at]) <= last:
        code = np.uint64(answers[at])
        allowed = ((code - low) & mask <= span) | ((code - other_low) & mask <= other_span)
        outside[at] = not allowed or code > mask
        at += 1
    return at
