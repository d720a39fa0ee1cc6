"""Whether a cast may be left out of a chain, for every input: by the solver, or by all patterns.

Both get the same traced composition of the kernels (``composition.py`` of the family of chains),
once of the chain and once of the shorter one. The solver looks for an input that contradicts;
exhaustion compiles the question to a loop over all patterns.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conformance.families.chains.composition import Composed, compose, unchanged
from lab.proof.bit_vectors import NoAnswer, Solving, Truth
from lab.proof.smt_traces import translated
from oracles.reference.compiled_kernels import loop_body
from oracles.reference.kernel_terms import Term, Trace, select_terms
from specs.branches import Ruling

BLOCK = 1 << 16
"""Patterns that are tried at once; a loop without an early exit runs on vectors."""
LOOP = """
def count_of(first, count):
    found = 0
    for at in range(count):
        n0 = uint64(first) + uint64(at)
{body}
        found += {wrong}
    return found
"""


@dataclass(frozen=True)
class Removal:
    """The question whether ``shorter`` gives only what the chain of ``rulings`` allows.

    An empty ``shorter`` leaves the input as it is.
    """

    rulings: Sequence[Ruling]
    shorter: Sequence[Ruling]

    @cached_property
    def _traced(self) -> tuple[Composed, Composed]:
        """The chain and the shorter one, of the same input."""
        trace = Trace(self.rulings[0].source.bits)
        term = trace.input()
        chain = compose(self.rulings, term, select_terms)
        other = (
            compose(self.shorter, term, select_terms)
            if self.shorter
            else unchanged(self.rulings[0].source, term)
        )
        return chain, other

    @property
    def contradiction(self) -> Term:
        """Holds for an input if the shorter chain may answer what the chain does not allow."""
        chain, other = self._traced
        contradiction: Term = chain.allows_all_of(other) ^ True
        return contradiction

    @property
    def required_contradiction(self) -> Term:
        """Holds for an input if also every step of the chain is required."""
        required: Term = self.contradiction & (self._traced[0].is_recommended ^ True)
        return required

    @property
    def weakening(self) -> Term:
        """Holds for an input if the chain requires what the shorter one only recommends."""
        chain, other = self._traced
        weakening: Term = chain.is_required & other.is_recommended
        return weakening

    @property
    def is_open(self) -> Term:
        """Holds for an input if the chain allows anything."""
        is_open: Term = self._traced[0].is_open
        return is_open

    def solve(self, question: Term, seconds: float) -> int | NoAnswer:
        """Return an input for which a question holds, or why none was found."""
        solving = Solving()
        pattern = solving.unknown("pattern", self.rulings[0].source.bits)
        terms = translated(question.trace, pattern)
        return solving.find(Truth(solving, terms[question.index]), pattern, seconds)

    def exhaust(self, question: Term) -> int | NoAnswer:
        """Return the first pattern for which a question holds, trying all from zero on."""
        numba: Any = importlib.import_module("numba")
        body, [wrong] = loop_body(question.trace, (question,))
        names: dict[str, Any] = {"uint64": numba.uint64}
        exec(compile(LOOP.format(body=body, wrong=wrong), "<chain>", "exec"), names)
        count_of = numba.njit(nogil=True, boundscheck=False)(names["count_of"])
        size = 1 << self.rulings[0].source.bits
        for first in range(0, size, BLOCK):
            if count_of(first, min(BLOCK, size - first)):
                return next(at for at in range(first, first + BLOCK) if count_of(at, 1))
        return "none"
