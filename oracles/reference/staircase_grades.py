"""Answers against a staircase, input by input: for any inputs in rising order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.staircase import Staircase

Places = NDArray[np.uint8]
OPEN = 255
"""The grade of an answer that may be anything."""


def grades(stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]) -> Places:
    """Per input: 0 if its answer is allowed, ``OPEN`` if any is, else 1 + the branch's place."""
    found, periods = found_steps(stairs, inputs)
    mask = np.uint64(stairs.ruling.target.mask)
    codes = answers.astype(np.uint64)
    # An answer wider than its format is nowhere allowed, not even where anything is.
    wrong = codes > mask
    outside = np.ones(codes.shape, bool)
    for low, high, rise in (("low", "high", "rise"), ("other_low", "other_high", "other_rise")):
        span = stairs.column(high) - stairs.column(low)
        lifted = stairs.column(low)[found] + periods * stairs.column(rise)[found]
        outside &= ((codes - lifted) & mask) > span[found]
    wrong |= outside
    anything = (stairs.column("high") - stairs.column("low") == mask)[found]
    fine = np.where(anything, np.uint8(OPEN), np.uint8(0))
    return np.where(wrong, (stairs.column("place") + 1).astype(np.uint8)[found], fine)


def places(stairs: Staircase, inputs: NDArray[Any]) -> Places:
    """The branch that takes each input."""
    return stairs.column("place")[found_steps(stairs, inputs)[0]]


def is_one_step(stairs: Staircase, first: int, last: int) -> bool:
    """Whether the same is allowed for all patterns from ``first`` to ``last``, by one step."""
    steps, periods = found_steps(stairs, np.array([first, last], np.uint64))
    number = int(np.searchsorted(stairs.stretches["first"], np.uint64(first), "right")) - 1
    part = stairs.steps_of(number)
    flat = part.size == 1 and not part["rise"][0] and not part["other_rise"][0]
    return bool(steps[0] == steps[1] and (flat or periods[0] == periods[1]))


def open_inputs(stairs: Staircase, lo: int, hi: int) -> int:
    """How many of the patterns from ``lo`` to before ``hi`` may be answered with anything."""
    total = 0
    anything = stairs.column("high") - stairs.column("low") == stairs.ruling.target.mask
    for place in np.flatnonzero(anything).tolist():
        number = int(np.searchsorted(stairs.stretches["begin"], place, "right")) - 1
        first, last, shift, _, beyond = stairs.stretches[number].tolist()
        begin = int(stairs.steps["offset"][place])
        is_last = place + 1 == beyond
        end = 1 << shift if is_last else int(stairs.steps["offset"][place + 1])
        before, after = (
            _met(min(max(edge - first, 0), last - first + 1), shift, begin, end)
            for edge in (lo, hi)
        )
        total += after - before
    return total


def _met(length: int, shift: int, begin: int, end: int) -> int:
    """How many of so many places lie in their period from ``begin`` to before ``end``."""
    periods, rest = divmod(length, 1 << shift)
    return periods * (end - begin) + min(max(rest - begin, 0), end - begin)


def found_steps(
    stairs: Staircase, inputs: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """The number of each input's step, and how many periods it lies into its stretch."""
    patterns = inputs.astype(np.uint64)
    table = stairs.stretches
    if not patterns.size:
        return np.zeros(0, np.intp), patterns
    begin, end = np.searchsorted(table["first"], patterns[[0, -1]], "right").tolist()
    near = table[begin - 1 : end]
    shift = near["shift"]
    cuts = np.searchsorted(patterns, near["first"][1:])
    counts = np.diff(cuts, prepend=0, append=patterns.size)
    inside = patterns - np.repeat(near["first"], counts)
    periods = inside >> np.repeat(shift, counts)
    inside &= np.repeat((np.uint64(1) << shift) - np.uint64(1), counts)
    step = np.repeat(near["begin"], counts)
    lengths = near["end"] - near["begin"]
    for more in range(1, int(lengths.max())):
        # Where a stretch has fewer steps, its last one is looked at again and changes nothing.
        nth = np.minimum(near["begin"] + more, near["end"] - 1)
        reached = inside >= np.repeat(stairs.column("offset")[nth], counts)
        step += reached & np.repeat(lengths > more, counts)
    return step, periods
