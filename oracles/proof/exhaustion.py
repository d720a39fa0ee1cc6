"""The half of the proof by exhaustion: staircases and kernels say the same on every input.

Of sources of 64 bits, on both sides of every breakpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.proof.obligations import Obligation, groups, spread
from oracles.reference import expect_by_kernels
from oracles.reference.chunk_check_numba import differs
from oracles.reference.compiled_kernels import compiled
from oracles.reference.expectations import Expected
from oracles.reference.staircase import Staircase, staircase
from oracles.reference.sweep_inputs import Dense, Steps
from specs.outcomes import Anything, Nan
from specs.ruling import Ruling


def first_difference(stairs: Staircase, inputs: NDArray[Any], expected: Expected) -> int:
    """The place of the first input that the staircase takes otherwise; if none, how many there are.

    The inputs rise. Of a branch that names no pattern, or recommends one of several constants,
    only the place is compared.
    """
    ruling = stairs.ruling
    named = np.array(
        [
            one.recommended is None and not isinstance(one.outcome, Nan | Anything)
            for one in ruling.branches
        ]
    )
    kernels = (expected.places, expected.codes, expected.others)
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
    places: Any,
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
            here = steps[stretch["begin"]]
            part = inputs[at:after], places[at:after], codes[at:after], others[at:after]
            if _is_off_slope(here, first, shift, named, mask, *part):
                return at + _exact_place(here, first, shift, named, mask, *part)
            at = after
        while at < inputs.size and np.uint64(inputs[at]) <= stretch["last"]:
            inside = np.uint64(inputs[at]) - first
            periods, offset = inside >> shift, inside & low_bits
            step = stretch["begin"]
            while step + 1 < stretch["end"] and steps[step + 1]["offset"] <= offset:
                step += 1
            here = steps[step]
            # The last input of this step, in this period.
            end = (periods << shift) + low_bits
            if step + 1 < stretch["end"]:
                end = (periods << shift) + steps[step + 1]["offset"] - np.uint64(1)
            last = min(first + end, stretch["last"])
            after = at + 1
            if np.uint64(inputs[inputs.size - 1]) - np.uint64(inputs[at]) == np.uint64(
                inputs.size - 1 - at
            ):
                after = min(np.int64(inputs.size), at + np.int64(last - np.uint64(inputs[at])) + 1)
            else:
                while after < inputs.size and np.uint64(inputs[after]) <= last:
                    after += 1
            branch = np.uint8(here["place"])
            wrong = differs(places[at:after], branch)
            if named[branch]:
                code = width((here["low"] + periods * here["rise"]) & mask)
                other = width((here["other_low"] + periods * here["other_rise"]) & mask)
                wrong |= differs(codes[at:after], code) or differs(others[at:after], other)
            if wrong:
                part = inputs[at:after], places[at:after], codes[at:after], others[at:after]
                return at + _exact_place(here, first, shift, named, mask, *part)
            at = after
    return inputs.size


@numba.njit(cache=True, nogil=True)
def _exact_place(
    here: Any,
    first: Any,
    shift: Any,
    named: Any,
    mask: Any,
    inputs: Any,
    places: Any,
    codes: Any,
    others: Any,
) -> Any:
    """The first input of one step that the kernels take otherwise; if none, how many there are."""
    branch, is_named = here["place"], named[here["place"]]
    for place in range(inputs.size):
        periods = (np.uint64(inputs[place]) - first) >> shift
        code = (here["low"] + periods * here["rise"]) & mask
        other = (here["other_low"] + periods * here["other_rise"]) & mask
        off = codes[place] != code or others[place] != other
        if places[place] != branch or (is_named and off):
            return place
    return inputs.size


@numba.njit(cache=True, nogil=True)
def _is_off_slope(
    here: Any,
    first: Any,
    shift: Any,
    named: Any,
    mask: Any,
    inputs: Any,
    places: Any,
    codes: Any,
    others: Any,
) -> Any:
    """Whether any is, where a stretch has one step: without a way out, so that it vectorises."""
    width = codes.dtype.type
    branch, is_named = here["place"], named[here["place"]]
    low, rise, other_low, other_rise = (
        here["low"], here["rise"], here["other_low"], here["other_rise"]
    )  # fmt: skip
    wrong = False
    for place in range(inputs.size):
        periods = (np.uint64(inputs[place]) - first) >> shift
        code = width((low + periods * rise) & mask)
        other = width((other_low + periods * other_rise) & mask)
        off = (codes[place] != code) | (others[place] != other)
        wrong |= (places[place] != branch) | (is_named & off)
    return wrong


CHUNK = 1 << 16
COMPILED_BITS = 16
"""Sources up to so many bits are answered sooner than a compiler would have begun."""

STATEMENTS = {Dense: "every input", Steps: "every breakpoint, below, at and above"}

Task = tuple[int, int]
"""The number of a group, and of a ruling in it."""


def prove_by_exhaustion(
    jobs: int = 1,
    report: Callable[[Obligation], None] = lambda obligation: None,
) -> list[Obligation]:
    """The obligations of every ruling, in the order of the documents."""
    tasks = [
        (number, place)
        for number, group in enumerate(groups())
        for place in range(len(group.rulings))
    ]
    done = spread(_prove, tasks, jobs, report)
    return done + [_open(*groups()[group].rulings[place]) for group, place in tasks[len(done) :]]


def _open(name: str, ruling: Ruling) -> Obligation:
    """An obligation that was not reached."""
    pair = ruling.source.name, ruling.target.name, ruling.rounding
    return Obligation("exhaustion", *pair, name, "not reached", "open", "none", 0.0)


def _prove(task: Task) -> Obligation:
    group = groups()[task[0]]
    name, ruling = group.rulings[task[1]]
    bits = ruling.source.bits
    return prove(name, staircase(ruling), Dense(1 << bits) if bits <= 32 else Steps([ruling]))


def prove(name: str, stairs: Staircase, visit: Dense | Steps) -> Obligation:
    """Compare a staircase with the kernels on all inputs of a visit."""
    started = perf_counter()
    ruling = stairs.ruling
    found = next(_differences(stairs, visit), "")
    return Obligation(
        half="exhaustion",
        source=ruling.source.name,
        target=ruling.target.name,
        mode=ruling.rounding,
        rulings=name,
        statement=STATEMENTS[type(visit)],
        verdict="counterexample" if found else "proved",
        inputs=f"{visit.size:,}",
        seconds=perf_counter() - started,
        found=found,
    )


def _differences(stairs: Staircase, visit: Dense | Steps) -> Iterator[str]:
    ruling = stairs.ruling
    expect = _kernels(ruling)
    inputs = np.empty(min(CHUNK, visit.size), ruling.source.storage)
    stride = inputs.dtype.type(inputs.size % (ruling.source.mask + 1))
    for at in range(0, visit.size, CHUNK):
        if isinstance(visit, Dense) and at:
            inputs += stride
        else:
            # Past the last input it is repeated, which changes nothing.
            visit.fill(inputs, at)
        expected = expect(inputs)
        place = first_difference(stairs, inputs, expected)
        if place < inputs.size:
            code = int(inputs[place])
            kernels = ruling.branches[int(expected.places[place])].rule
            yield (
                f"{ruling.source.hexadecimal(code)}: the kernels say "
                f"{ruling.target.hexadecimal(int(expected.codes[place]))} by {kernels}"
            )


def _kernels(ruling: Ruling) -> Callable[[NDArray[np.unsignedinteger]], Expected]:
    if ruling.source.bits <= COMPILED_BITS:
        return lambda inputs: expect_by_kernels.expect(ruling, inputs)
    return compiled(ruling).expect
