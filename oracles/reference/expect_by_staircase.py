"""Looks up on a ruling's staircase what the ruling allows for patterns in rising order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expectations import Expected
from oracles.reference.staircase import Staircase, staircase
from specs.branches import Ruling
from specs.outcomes import Either, Exactly


def expect(ruling: Ruling, inputs: NDArray[Any]) -> Expected:
    """Return what a numeric ruling without worked examples allows for inputs that rise strictly."""
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


def branch_indices_of(stairs: Staircase, inputs: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the index of the branch that takes each input; the inputs must be in rising order."""
    return stairs.column("branch_index")[locate_steps(stairs, inputs)[0]]


def last_of_step(stairs: Staircase, first: int) -> int:
    """Return the last pattern of the step that ``first`` is in.

    A step ends with its period, unless its stretch has only this step and it does not rise.
    """
    number = int(np.searchsorted(stairs.stretches["first"], np.uint64(first), "right")) - 1
    start, end, shift, *_ = stairs.stretches[number].tolist()
    steps = stairs.steps_of(number)
    if steps.size == 1 and not steps["rise"][0] and not steps["other_rise"][0]:
        return int(end)
    period, offset = divmod(first - start, 1 << shift)
    after = int(np.searchsorted(steps["offset"], np.uint64(offset), "right"))
    length = 1 << shift if after == steps.size else int(steps["offset"][after])
    return int(min(end, start + (period << shift) + length - 1))


def open_inputs(stairs: Staircase, lo: int, hi: int) -> int:
    """Return how many patterns in ``range(lo, hi)`` the document leaves open."""
    if lo >= hi:
        return 0
    total = 0
    ends = np.array([lo, hi - 1], np.uint64)
    near = stairs.stretches[np.searchsorted(stairs.stretches["first"], ends, "right") - 1]
    first_step, after = int(near["begin"][0]), int(near["end"][1])
    anything = stairs.column("high") - stairs.column("low") == stairs.ruling.target.mask
    for step in (first_step + np.flatnonzero(anything[first_step:after])).tolist():
        number = int(np.searchsorted(stairs.stretches["begin"], step, "right")) - 1
        first, last, shift, _, steps_end = stairs.stretches[number].tolist()
        begin = int(stairs.steps["offset"][step])
        is_last = step + 1 == steps_end
        end = 1 << shift if is_last else int(stairs.steps["offset"][step + 1])
        before, after = (
            _count_in_periods(min(max(edge - first, 0), last - first + 1), shift, begin, end)
            for edge in (lo, hi)
        )
        total += after - before
    return total


def _count_in_periods(length: int, shift: int, begin: int, end: int) -> int:
    """Return how many n in ``range(length)`` have ``begin <= n % 2**shift < end``."""
    periods, rest = divmod(length, 1 << shift)
    return periods * (end - begin) + min(max(rest - begin, 0), end - begin)


def locate_steps(
    stairs: Staircase, inputs: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Return the index of each input's step, and of its period in the stretch.

    The inputs must be in rising order.
    """
    patterns = inputs.astype(np.uint64)
    stretches = stairs.stretches
    if not patterns.size:
        return np.zeros(0, np.intp), patterns
    begin, end = np.searchsorted(stretches["first"], patterns[[0, -1]], "right").tolist()
    near = stretches[begin - 1 : end]
    shift = near["shift"]
    cuts = np.searchsorted(patterns, near["first"][1:])
    counts = np.diff(cuts, prepend=0, append=patterns.size)
    inside = patterns - np.repeat(near["first"], counts)
    periods = inside >> np.repeat(shift, counts)
    inside &= np.repeat((np.uint64(1) << shift) - np.uint64(1), counts)
    step = np.repeat(near["begin"], counts)
    lengths = near["end"] - near["begin"]
    for more in range(1, int(lengths.max())):
        # A stretch with fewer steps looks at its last one again, which changes nothing.
        nth = np.minimum(near["begin"] + more, near["end"] - 1)
        reached = inside >= np.repeat(stairs.column("offset")[nth], counts)
        step += reached & np.repeat(lengths > more, counts)
    return step, periods
