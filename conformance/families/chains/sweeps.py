"""Asks chains every pattern of a source of 32 bits, on the road that users get: the tier full.

Block after block goes to the backend, and a compiled loop counts the answers that the chain does
not allow. Only these inputs are asked step by step, too: where the steps alone give the same, no
optimizer is to blame.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.chains.checks import allowed, count_forbidden
from conformance.judging.asking import Ask
from oracles.backend.replies import Answered, NoAnswer
from oracles.backend.requests import Cast, CastChains
from oracles.protocol import Bits
from specs.chains import Chain, Company
from specs.formats import format_named

SWEPT_BITS = 32
BLOCK = 1 << 22
MOST_KEPT = 1 << 16
"""The most inputs of a chain that are kept to explain it; all are counted."""


class Swept(NamedTuple):
    """The result of a sweep: inputs with a forbidden answer that the steps alone do not give.

    ``missing`` is the reply that came instead of answers; the sweep ends there.
    """

    inputs: Bits
    answers: Bits
    alone: Bits
    wrong: int
    asked: int
    missing: NoAnswer | None = None

    @property
    def has_problems(self) -> bool:
        """Whether anything is wrong."""
        return self.wrong > 0 or self.missing is not None


def is_swept(chain: Chain) -> bool:
    """Whether the tier full asks a chain every pattern of its source, beyond the tier quick."""
    return format_named(chain.source).bits == SWEPT_BITS


def sweep(chain: Chain, road: str) -> Ask[Swept]:
    """Ask a chain every pattern."""
    storage = format_named(chain.source).storage
    count_of = count_forbidden(chain.rulings)
    kept: list[tuple[Bits, ...]] = []
    size, wrong, room = 1 << SWEPT_BITS, 0, MOST_KEPT
    for first in range(0, size, BLOCK):
        inputs = np.arange(first, first + BLOCK, dtype=storage)
        company = Company((chain,), road)
        [reply] = yield [CastChains(chain.steps[0], company, [inputs])]
        if not isinstance(reply, Answered):
            return _swept(chain, kept, wrong, first, reply)
        [answers] = reply.value
        if not count_of(first, answers):
            continue
        at = np.flatnonzero(~allowed(chain.rulings, inputs, answers))
        found = yield from _alone(chain, inputs[at])
        if not isinstance(found, np.ndarray):
            return _swept(chain, kept, wrong, first, found)
        moved: NDArray[np.intp] = np.flatnonzero(found != answers[at])
        wrong += moved.size
        few = moved[:room]
        room -= few.size
        kept.append((inputs[at][few], answers[at][few], found[few]))
    return _swept(chain, kept, wrong, size)


def _alone(chain: Chain, inputs: Bits) -> Ask[Bits | NoAnswer]:
    """Ask the steps one after another; return the last answers, or the first other reply."""
    now = inputs
    for step in chain.steps:
        [reply] = yield [Cast(step, now)]
        if not isinstance(reply, Answered):
            return reply
        now = reply.value
    return now


def _swept(
    chain: Chain,
    kept: list[tuple[Bits, ...]],
    wrong: int,
    asked: int,
    missing: NoAnswer | None = None,
) -> Swept:
    source, target = format_named(chain.source), format_named(chain.target)
    nothing = tuple(np.empty(0, each.storage) for each in (source, target, target))
    inputs, answers, alone = map(np.concatenate, zip(nothing, *kept, strict=True))
    return Swept(inputs, answers, alone, wrong, asked, missing)
