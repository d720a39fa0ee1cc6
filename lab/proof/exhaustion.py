"""The proof by exhaustion: compare staircases with kernels on every input.

Sources of 64 bits are compared below, at and above every step of the staircase only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from lab.proof.obligations import Obligation, groups, prove_in_parallel
from oracles.reference import expect_by_kernels
from oracles.reference.compiled_kernels import compiled
from oracles.reference.expectations import Expected
from oracles.reference.staircase import Staircase, staircase
from oracles.reference.sweep_inputs import Dense, StepPatterns
from reports.grading.failure_runs_numba import differs
from specs.branches import Ruling
from specs.outcomes import Anything, Nan

CHUNK = 1 << 16
"""Inputs that are compared at once."""
UNCOMPILED_BITS = 16
"""Kernels run uncompiled for sources of at most this width: compiling would take longer."""

STATEMENTS = {Dense: "every input", StepPatterns: "every breakpoint, below, at and above"}

Task = tuple[int, int]
"""The index of a group, and the index of a ruling in it."""


def first_difference(stairs: Staircase, inputs: NDArray[Any], expected: Expected) -> int:
    """Return the index of the first input on which staircase and kernels differ; if none, the size.

    Inputs must be sorted. Where a branch names no pattern, or recommends one of several constants,
    only the branch's index is compared.
    """
    ruling = stairs.ruling
    named = np.array(
        [
            one.recommended is None and not isinstance(one.outcome, Nan | Anything)
            for one in ruling.branches
        ]
    )
    kernels = (expected.branch_indices, expected.codes, expected.others)
    return int(
        _first_difference(
            stairs.stretches, stairs.steps, named, np.uint64(ruling.target.mask), inputs, *kernels
        )
    )


@numba.njit(cache=True, nogil=True)
def _first_difference(
    stretches: Any,
    steps: Any,
    named: Any,
    mask: Any,
    inputs: Any,
    branch_indices: Any,
    codes: Any,
    others: Any,
) -> Any:
    width = codes.dtype.type
    at = np.int64(0)
    while at < inputs.size:
        pattern = np.uint64(inputs[at])
        stretch = stretches[np.searchsorted(stretches["first"], pattern, "right") - 1]
        first, shift = stretch["first"], stretch["shift"]
        low_bits = (np.uint64(1) << shift) - np.uint64(1)
        if stretch["begin"] + 1 == stretch["end"]:
            after = at + np.searchsorted(inputs[at:], stretch["last"], "right")
            only_step = steps[stretch["begin"]]
            part = inputs[at:after], branch_indices[at:after], codes[at:after], others[at:after]
            if _any_difference(only_step, first, shift, named, mask, *part):
                return at + _first_difference_in_step(only_step, first, shift, named, mask, *part)
            at = after
        while at < inputs.size and np.uint64(inputs[at]) <= stretch["last"]:
            inside = np.uint64(inputs[at]) - first
            periods, offset = inside >> shift, inside & low_bits
            step = stretch["begin"]
            while step + 1 < stretch["end"] and steps[step + 1]["offset"] <= offset:
                step += 1
            here = steps[step]
            # Find the last input of this step in this period.
            end = (periods << shift) + low_bits
            if step + 1 < stretch["end"]:
                end = (periods << shift) + steps[step + 1]["offset"] - np.uint64(1)
            last = min(first + end, stretch["last"])
            after = at + 1
            if np.uint64(inputs[inputs.size - 1]) - np.uint64(inputs[at]) == np.uint64(
                inputs.size - 1 - at
            ):
                # The inputs are consecutive from here on.
                after = min(np.int64(inputs.size), at + np.int64(last - np.uint64(inputs[at])) + 1)
            else:
                while after < inputs.size and np.uint64(inputs[after]) <= last:
                    after += 1
            branch = np.uint8(here["branch_index"])
            wrong = differs(branch_indices[at:after], branch)
            if named[branch]:
                code = width((here["low"] + periods * here["rise"]) & mask)
                other = width((here["other_low"] + periods * here["other_rise"]) & mask)
                wrong |= differs(codes[at:after], code) or differs(others[at:after], other)
            if wrong:
                part = inputs[at:after], branch_indices[at:after], codes[at:after], others[at:after]
                return at + _first_difference_in_step(here, first, shift, named, mask, *part)
            at = after
    return inputs.size


@numba.njit(cache=True, nogil=True)
def _first_difference_in_step(
    step: Any,
    first: Any,
    shift: Any,
    named: Any,
    mask: Any,
    inputs: Any,
    branch_indices: Any,
    codes: Any,
    others: Any,
) -> Any:
    """The index of the first input of one step that differs; if none, the number of inputs."""
    branch, is_named = step["branch_index"], named[step["branch_index"]]
    for index in range(inputs.size):
        periods = (np.uint64(inputs[index]) - first) >> shift
        code = (step["low"] + periods * step["rise"]) & mask
        other = (step["other_low"] + periods * step["other_rise"]) & mask
        is_other = codes[index] != code or others[index] != other
        if branch_indices[index] != branch or (is_named and is_other):
            return index
    return inputs.size


@numba.njit(cache=True, nogil=True)
def _any_difference(
    step: Any,
    first: Any,
    shift: Any,
    named: Any,
    mask: Any,
    inputs: Any,
    branch_indices: Any,
    codes: Any,
    others: Any,
) -> Any:
    """Whether any input of one step differs; the loop has no early exit, so that it vectorizes."""
    width = codes.dtype.type
    branch, is_named = step["branch_index"], named[step["branch_index"]]
    low, rise, other_low, other_rise = (
        step["low"], step["rise"], step["other_low"], step["other_rise"]
    )  # fmt: skip
    wrong = False
    for index in range(inputs.size):
        periods = (np.uint64(inputs[index]) - first) >> shift
        code = width((low + periods * rise) & mask)
        other = width((other_low + periods * other_rise) & mask)
        is_other = (codes[index] != code) | (others[index] != other)
        wrong |= (branch_indices[index] != branch) | (is_named & is_other)
    return wrong


def prove_by_exhaustion(
    jobs: int = 1,
    report: Callable[[Obligation], None] = lambda obligation: None,
) -> list[Obligation]:
    """Prove every ruling, in the order of the documents; those not reached are ``open``."""
    tasks = [
        (group_index, index)
        for group_index, group in enumerate(groups())
        for index in range(len(group.rulings))
    ]
    proved = prove_in_parallel(_prove, tasks, jobs, report)
    return proved + [
        _not_reached(*groups()[group_index].rulings[index])
        for group_index, index in tasks[len(proved) :]
    ]


def _not_reached(name: str, ruling: Ruling) -> Obligation:
    """The obligation of a ruling that an interrupt left unproved."""
    pair = ruling.source.name, ruling.target.name, ruling.rounding
    return Obligation("exhaustion", *pair, name, "not reached", "open", "none", 0.0)


def _prove(task: Task) -> Obligation:
    group_index, index = task
    name, ruling = groups()[group_index].rulings[index]
    bits = ruling.source.bits
    return prove(
        name, staircase(ruling), Dense(1 << bits) if bits <= 32 else StepPatterns([ruling])
    )


def prove(name: str, stairs: Staircase, sequence: Dense | StepPatterns) -> Obligation:
    """Compare a staircase with the kernels on all inputs of a sequence."""
    started = perf_counter()
    ruling = stairs.ruling
    found = next(_differences(stairs, sequence), "")
    return Obligation(
        half="exhaustion",
        source=ruling.source.name,
        target=ruling.target.name,
        mode=ruling.rounding,
        rulings=name,
        statement=STATEMENTS[type(sequence)],
        verdict="counterexample" if found else "proved",
        inputs=f"{sequence.size:,}",
        seconds=perf_counter() - started,
        found=found,
    )


def _differences(stairs: Staircase, sequence: Dense | StepPatterns) -> Iterator[str]:
    """Describe the first difference of each chunk of inputs."""
    ruling = stairs.ruling
    expect = _expect_of(ruling)
    inputs = np.empty(min(CHUNK, sequence.size), ruling.source.storage)
    stride = inputs.dtype.type(inputs.size % (ruling.source.mask + 1))
    for at in range(0, sequence.size, CHUNK):
        if isinstance(sequence, Dense) and at:
            inputs += stride
        else:
            # Past the end the last input is repeated, which does no harm.
            sequence.fill(inputs, at)
        expected = expect(inputs)
        index = first_difference(stairs, inputs, expected)
        if index < inputs.size:
            code = int(inputs[index])
            rule = ruling.branches[int(expected.branch_indices[index])].rule
            yield (
                f"{ruling.source.hexadecimal(code)}: the kernels say "
                f"{ruling.target.hexadecimal(int(expected.codes[index]))} by {rule}"
            )


def _expect_of(ruling: Ruling) -> Callable[[NDArray[np.unsignedinteger]], Expected]:
    if ruling.source.bits <= UNCOMPILED_BITS:
        return lambda inputs: expect_by_kernels.expect(ruling, inputs)
    return compiled(ruling).expect
