"""Decides for every input, by a document's rules alone, which casts a chain may leave out.

The answers are those that ``conformance.extras.removable_casts`` reads from tables. The same is
asked of whatever an optimizer makes of a chain (``replaced``): fewer casts, other ones, or none.

Sources of up to 16 bits are tried whole. Of a wider one, inputs near all breakpoints are tried, and
what they do not contradict, the solver proves for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.removable_casts.removable_casts import (
    Counterexample,
    Method,
    RemovableCast,
    Weakening,
)
from conformance.families.chains.composition import chain_inputs, compose_arrays, unchanged
from conformance.families.chains.ends_words import ends_words
from lab.proof.bit_vectors import NoAnswer
from lab.proof.smt_chains import Removal
from oracles.protocol import Bits
from oracles.reference.chain_ends import Ends, ends
from reports.grading.divergences import index_of_simplest
from specs.branches import Ruling
from specs.cases import Case
from specs.chains import Chain, chain_named, chains_of, is_listed
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.ruling import ruling

SECONDS = 120.0
"""Time limit of one question to the solver; the slowest known takes two seconds."""
INPUTS = 6000
"""About how many inputs of a wide source are tried for each pair of dtypes before the solver."""


def count_of_chains(document: str, version: str) -> int:
    """How many chains of two casts a version has."""
    return sum(1 for _ in chains_of(document, version))


def removable_casts(
    document: str, version: str, jobs: int, seconds: float = SECONDS
) -> Iterator[RemovableCast]:
    """Decide all chains of two casts of a version, in the order of its cases."""
    sources = [
        tuple(each.id for each in group)
        for _, group in groupby(chains_of(document, version), key=lambda chain: chain.steps[0])
    ]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for decided in pool.map(_decided, sources, [seconds] * len(sources)):
            yield from decided


def _decided(ids: Sequence[str], seconds: float) -> list[RemovableCast]:
    return [decide(chain_named(each), seconds) for each in ids]


def decide(chain: Chain, seconds: float = SECONDS) -> RemovableCast:
    """Decide whether the casts on the way of a chain may be left out."""
    return replaced(chain, (chain.direct,), seconds)


def replaced(chain: Chain, instead: Sequence[Case], seconds: float = SECONDS) -> RemovableCast:
    """Decide whether other casts, or none, may stand in the place of a chain."""
    question = _Question(chain, tuple(instead))
    if not all(map(is_listed, instead)):
        return question.answer(removable="unlisted", known_by="the document's list")
    removal = Removal(chain.rulings, question.rulings)
    contradicted, has_open, weakened = question.tried()
    if contradicted:
        found = contradicted.get("required", contradicted.get("recommended"))
        if "required" not in contradicted and not question.is_narrow:
            # The solver looks for an input that is decided more strictly.
            stricter = removal.solve(removal.required_contradiction, seconds)
            found = stricter if isinstance(stricter, int) else found
        assert found is not None
        return question.contradiction(found)
    if question.is_narrow:
        return question.holds(has_open, "all inputs", weakened)
    answers = removal.solve(removal.contradiction, seconds)
    if isinstance(answers, int):
        return question.contradiction(answers)
    if answers == "none" and not has_open:
        answers = removal.solve(removal.is_open, seconds)
        has_open = isinstance(answers, int)
    if answers == "out of time":
        return question.answer(removable="unknown", known_by="solver")
    if weakened == "none":
        weakened = removal.solve(removal.weakening, seconds)
    return question.holds(has_open, "solver", weakened)


@dataclass(frozen=True)
class _Question:
    """A chain, and the casts in its place."""

    chain: Chain
    instead: tuple[Case, ...]

    @cached_property
    def rulings(self) -> list[Ruling]:
        """The rulings of the casts in the chain's place."""
        return [*map(ruling, self.instead)]

    @property
    def is_narrow(self) -> bool:
        return format_named(self.chain.source).bits <= EXHAUSTIVE_BITS

    def answer(self, **fields: Any) -> RemovableCast:
        """An answer to this question."""
        instead = Chain(self.instead).id if self.instead else ""
        return RemovableCast(chain=self.chain.id, instead=instead, **fields)

    def holds(self, has_open: bool, method: Method, weakened: int | NoAnswer) -> RemovableCast:
        """The answer if no input contradicts; ``weakened`` is one that less is required of."""
        # Where casts of the chain itself are left, they answer open inputs as before.
        are_own = self.instead and {*self.instead} <= {*self.chain.steps}
        return self.answer(
            removable="defined" if has_open and not are_own else "always",
            known_by=method,
            **self._strictness(weakened),
        )

    def _strictness(self, weakened: int | NoAnswer) -> dict[str, Any]:
        """Return the fields about what is required; AssertionError if the definition disagrees.

        ``weakened`` is an input of which less is required, or why there is none.
        """
        if not isinstance(weakened, int):
            return {"strictness": "kept" if weakened == "none" else "unknown"}
        other = ends(self.rulings, weakened).level if self.rulings else "required"
        if (ends(self.chain.rulings, weakened).level, other) != ("required", "recommended"):
            raise AssertionError(f"{self.chain.id}: levels of {weakened:#x} are disputed")
        source = format_named(self.chain.source)
        return {
            "strictness": "weaker",
            "weakening": Weakening(input=source.hexadecimal(weakened)),
        }

    def tried(self) -> tuple[dict[str, int], bool, int | NoAnswer]:
        """Try inputs; return contradicting ones by level, whether any is open, and a weakening one.

        Each input is the simplest of its kind. The weakening one is one of which less is required,
        or ``none``. Of a wide source, inputs near breakpoints are tried.
        """
        inputs = chain_inputs(self.chain.dtypes, INPUTS)
        composed = compose_arrays(self.chain.rulings, inputs)
        source = format_named(self.chain.source)
        other = (
            compose_arrays(self.rulings, inputs)
            if self.rulings
            else unchanged(source, inputs.astype(np.uint64))
        )
        wrong = ~_everywhere(composed.allows_all_of(other), inputs)
        weak = _everywhere(composed.is_recommended, inputs)
        found = {
            level: int(inputs[index_of_simplest(source, inputs, where)])
            for level, where in (("required", wrong & ~weak), ("recommended", wrong & weak))
            if where.any()
        }
        weaker = _everywhere(composed.is_required & other.is_recommended, inputs)
        weakened: int | NoAnswer = "none"
        if weaker.any():
            weakened = int(inputs[index_of_simplest(source, inputs, weaker)])
        return found, bool(_everywhere(composed.is_open, inputs).any()), weakened

    def contradiction(self, code: int) -> RemovableCast:
        """Return the answer with a counterexample; AssertionError if the definition disagrees."""
        chain = self.chain
        source, target = format_named(chain.source), format_named(chain.target)
        kept = ends(chain.rulings, code)
        other = ends(self.rulings, code) if self.rulings else Ends(frozenset([code]))
        if not contradicts(target, kept, other):
            raise AssertionError(f"{chain.id}: kernels and definition disagree on {code:#x}")
        return self.answer(
            removable="never",
            known_by="counterexample",
            level="required" if kept.level == "required" else "recommended",
            counterexample=Counterexample(
                input=source.hexadecimal(code),
                chain=tuple(ends_words(target, kept)),
                instead=tuple(ends_words(target, other)),
            ),
        )


def _everywhere(condition: Any, inputs: Bits) -> NDArray[np.bool_]:
    return np.broadcast_to(condition, inputs.shape)


def contradicts(target: Format, kept: Ends, other: Ends) -> bool:
    """Whether something that is allowed by ``other`` is not allowed by a chain's own ends."""
    if kept.is_open:
        return False
    if other.is_open or other.is_rejected != kept.is_rejected:
        return True
    nans = [codes for sign in kept.nans for codes in target.nans(sign)]
    signs = other.nans if "any" not in kept.nans else frozenset()
    return not signs <= kept.nans or any(
        all(code not in codes for codes in nans) for code in other.codes - kept.codes
    )
