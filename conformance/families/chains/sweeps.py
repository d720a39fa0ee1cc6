"""Sweeps of chains: every pattern of a source of 32 bits, on the road that users get.

This belongs to the tier full. Block after block goes to the backend, and a compiled loop counts the
answers that the chain does not allow. Only these inputs are requested step by step, too: where the
steps alone give the same, no optimizer is to blame.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.chains.composition import Composed, compose, compose_arrays
from conformance.families.chains.program import CastChains
from conformance.judging.asking import Ask
from oracles.backend.replies import Answered, NoAnswer
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from oracles.reference.compiled_kernels import loop_body
from oracles.reference.kernel_terms import Term, Trace, select_terms
from specs.branches import Ruling
from specs.chains import Chain, Company
from specs.formats import format_named

SWEPT_BITS = 32
BLOCK = 1 << 22
MOST_KEPT = 1 << 16
"""The most inputs of a chain that are kept to explain it; all are counted."""


class ChainSweep(NamedTuple):
    """The result of a sweep: inputs with a forbidden answer that the steps alone do not give.

    ``wrong`` counts these inputs. Up to ``MOST_KEPT`` are kept, with the chain's ``answers`` and
    those of the steps ``alone``. ``missing`` is the reply that came instead of answers and ended
    the sweep after ``asked`` inputs; it is None if none did.
    """

    inputs: Bits
    answers: Bits
    alone: Bits
    wrong: int
    asked: int
    missing: NoAnswer | None = None

    @property
    def has_problems(self) -> bool:
        """Whether some inputs have wrong answers, or a reply had no answers."""
        return self.wrong > 0 or self.missing is not None


def is_swept(chain: Chain) -> bool:
    """Whether the tier full requests every pattern of a chain's source, beyond the tier quick."""
    return format_named(chain.source).bits == SWEPT_BITS


def sweep(chain: Chain, road: str) -> Ask[ChainSweep]:
    """Request all patterns of a chain's 32-bit source on a road, until a reply has no answers."""
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
) -> ChainSweep:
    source, target = format_named(chain.source), format_named(chain.target)
    nothing = tuple(np.empty(0, each.storage) for each in (source, target, target))
    inputs, answers, alone = map(np.concatenate, zip(nothing, *kept, strict=True))
    return ChainSweep(inputs, answers, alone, wrong, asked, missing)


CHECKS_KEPT = 64
CountWrong = Callable[[int, Bits], int]
"""Takes the first pattern and the answers to those from it on; counts the forbidden ones."""
LOOP = """
def count_of(first, answers):
    found = 0
    for at in range(answers.size):
        n0 = uint64(first) + uint64(at)
        answer = uint64(answers[at])
{body}
        found += not ({allowed})
    return found
"""


@lru_cache(CHECKS_KEPT)
def count_forbidden(rulings: tuple[Ruling, ...]) -> CountWrong:
    """Return the function that counts the answers that a chain does not allow.

    Numba compiles it; without numba it computes with arrays.
    """
    return _compiled(rulings) if find_spec("numba") is not None else _by_arrays(rulings)


def _by_arrays(rulings: Sequence[Ruling]) -> CountWrong:
    def count_of(first: int, answers: Bits) -> int:
        inputs = np.arange(first, first + answers.size, dtype=np.uint64)
        return int(np.count_nonzero(~allowed(rulings, inputs, answers)))

    return count_of


def allowed(rulings: Sequence[Ruling], inputs: NDArray[Any], answers: Bits) -> NDArray[np.bool_]:
    """Return the mask of those ``answers`` to ``inputs`` that a chain allows."""
    found = compose_arrays(rulings, inputs).allows(answers.astype(np.uint64))
    return np.broadcast_to(found, answers.shape)


def _compiled(rulings: Sequence[Ruling]) -> CountWrong:
    numba: Any = importlib.import_module("numba")
    trace = Trace(rulings[0].source.bits)
    composed = compose(rulings, trace.input(), select_terms)
    names: dict[str, Any] = {"uint64": numba.uint64}
    exec(compile(_program(trace, composed), "<chain>", "exec"), names)
    count_of: CountWrong = numba.njit(nogil=True, boundscheck=False)(names["count_of"])
    return count_of


def _program(trace: Trace, composed: Composed) -> str:
    """Return the source of the loop that counts the answers that ``composed`` does not allow."""
    terms = [composed.is_open, *composed.nans.values()]
    terms += [part for way in composed.ways for part in way if isinstance(part, Term)]
    body, texts = loop_body(trace, tuple(terms))
    of = dict(zip(map(id, terms), texts, strict=True))

    def text(part: Any) -> str:
        return of[id(part)] if isinstance(part, Term) else f"uint64({part})"

    conditions = [text(composed.is_open)]
    for condition, pattern in composed.ways:
        conditions.append(f"({text(condition)} & (answer == {text(pattern)}))")
    for sign, condition in composed.nans.items():
        for codes in composed.target.nans(sign):
            within = f"(answer >= uint64({codes[0]})) & (answer <= uint64({codes[-1]}))"
            conditions.append(f"({text(condition)} & {within})")
    # Without `and` and `or` the loop has no branches, so that it runs on vectors.
    return LOOP.format(body=body, allowed=" | ".join(conditions))
