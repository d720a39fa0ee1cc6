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
from oracles.reference.visits import Dense, Steps, Visit
from specs.ruling import Ruling

CHUNK = 1 << 16
COMPILED_BITS = 16
"""Sources up to so many bits are answered sooner than a compiler would have begun."""

Task = tuple[int, int]
"""The number of a group, and of a ruling in it."""


def prove_by_exhaustion(
    jobs: int = 1,
    report: Callable[[Obligation], None] = lambda obligation: None,
    every: int = 1,
) -> list[Obligation]:
    """The obligations of every (or every so-manyth) ruling, in the order of the documents."""
    tasks = [
        (number, place)
        for number, group in enumerate(groups())
        for place in range(len(group.rulings))
    ][::every]
    return spread(_prove, tasks, jobs, report)


def _prove(task: Task) -> Obligation:
    group = groups()[task[0]]
    name, ruling = group.rulings[task[1]]
    return prove(name, ruling, staircase(ruling))


def prove(name: str, ruling: Ruling, stairs: Staircase) -> Obligation:
    """Compare a staircase with the kernels, wherever it can take a step."""
    started = perf_counter()
    bits = ruling.source.bits
    visit: Visit = Dense(1 << bits) if bits <= 32 else Steps([ruling])
    found = next(_differences(ruling, stairs, visit), "")
    return Obligation(
        half="exhaustion",
        source=ruling.source.name,
        target=ruling.target.name,
        mode=ruling.rounding,
        rulings=name,
        statement="every input" if bits <= 32 else "every breakpoint, below, at and above",
        verdict="counterexample" if found else "proved",
        inputs=f"{visit.size:,}",
        seconds=perf_counter() - started,
        found=found,
    )


def _differences(ruling: Ruling, stairs: Staircase, visit: Visit) -> Iterator[str]:
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
