"""The half of the proof by exhaustion: staircases and kernels say the same on every input.

Of sources of 64 bits, on both sides of every breakpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from oracles.proof.agreeing import first_difference
from oracles.proof.groups import groups
from oracles.proof.obligation import Obligation
from oracles.proof.spreading import spread
from oracles.reference import by_kernels
from oracles.reference.compiled import compiled
from oracles.reference.expected import Expected
from oracles.reference.staircase import Staircase, staircase
from oracles.reference.visits import Dense, Steps
from specs.ruling import Ruling

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
        return lambda inputs: by_kernels.expect(ruling, inputs)
    return compiled(ruling).expect
