"""Counts the answers that a chain forbids, in a compiled loop over consecutive patterns.

A sweep of 2^32 patterns mostly finds that everything is allowed. So the loop only counts; if it
counts any, the composition of arrays (``chain_composition``) finds them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference.chain_composition import Composed, compose, compose_arrays
from oracles.reference.compiled_kernels import loop_body
from oracles.reference.kernel_terms import Term, Trace, select_terms
from specs.branches import Ruling

CHECKS_KEPT = 64
Count = Callable[[int, Bits], int]
"""Takes the first pattern and the answers from it on; counts those that are not allowed."""
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
def count_forbidden(rulings: tuple[Ruling, ...]) -> Count:
    """Return the function that counts for a chain; without numba it composes arrays."""
    return _compiled(rulings) if find_spec("numba") is not None else _by_arrays(rulings)


def _by_arrays(rulings: Sequence[Ruling]) -> Count:
    def count_of(first: int, answers: Bits) -> int:
        inputs = np.arange(first, first + answers.size, dtype=np.uint64)
        return int(np.count_nonzero(~allowed(rulings, inputs, answers)))

    return count_of


def allowed(rulings: Sequence[Ruling], inputs: NDArray[Any], answers: Bits) -> NDArray[np.bool_]:
    """Whether a chain allows each answer."""
    found = compose_arrays(rulings, inputs).allows(answers.astype(np.uint64))
    return np.broadcast_to(found, answers.shape)


def _compiled(rulings: Sequence[Ruling]) -> Count:
    numba: Any = importlib.import_module("numba")
    trace = Trace(rulings[0].source.bits)
    composed = compose(rulings, trace.input(), select_terms)
    names: dict[str, Any] = {"uint64": numba.uint64}
    exec(compile(_program(trace, composed), "<chain>", "exec"), names)
    count_of: Count = numba.njit(nogil=True, boundscheck=False)(names["count_of"])
    return count_of


def _program(trace: Trace, composed: Composed) -> str:
    """Write the loop: an answer is allowed if one of the ways leads to it, or anything is."""
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
