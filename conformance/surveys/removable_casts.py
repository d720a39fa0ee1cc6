"""Which casts may be left out of a chain: decided for every input, from a document's rules alone.

In A→B→C the cast to B may be left out where all that the cast A→C may give is what the chain may
give. The answer is one of these:

- ``always``: for every input, and the chain leaves none open; or the same cast is left, so that it
  answers open inputs as before;
- ``defined``: for every input, but some are open, so that a framework may answer otherwise then;
- ``unlisted``: the document lists no cast A→C, so that nothing can take the place of the two;
- ``never``: for some input the cast A→C may give what the chain does not allow. The simplest such
  input found is the counterexample, and ``level`` says how strictly the chain decides it.

Sources of up to 16 bits are tried whole. Of a wider one, inputs near all breakpoints are tried, and
what they do not contradict, the solver proves for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conformance.kinds.chain_inputs import chain_inputs
from oracles.proof.smt_chains import Removal
from oracles.protocol import Bits
from oracles.reference.chain_composition import compose_arrays
from oracles.reference.chain_ends import Ends, ends, joined
from reports.grading.chain_answers import ends_words
from reports.grading.divergences import index_of_simplest
from specs.chains import Chain, chain_named, chains_of, is_listed
from specs.formats import EXHAUSTIVE_BITS, format_named
from specs.model.strict_model import StrictModel
from specs.release import VERSION
from specs.ruling import Ruling, ruling

Removable = Literal["always", "defined", "never", "unlisted", "unknown"]
Method = Literal["all inputs", "solver", "counterexample", "the document's list"]
SECONDS = 120.0
"""For one question to the solver; the slowest known takes two."""
INPUTS = 6000
"""About how many inputs of a wide source are tried for each pair of dtypes before the solver."""


class Counterexample(StrictModel):
    """An input for which the direct cast may give what the chain does not allow."""

    input: str
    chain: tuple[str, ...]
    direct: tuple[str, ...]


class RemovableCast(StrictModel):
    """Whether the cast to the middle dtype of a chain may be left out, and how that is known.

    ``level`` is that of what the chain decides and the direct cast does not keep.
    """

    chain: str
    direct: str
    removable: Removable
    known_by: Method
    level: Literal["", "required", "recommended"] = ""
    counterexample: Counterexample | None = None


class RemovableCasts(StrictModel):
    """The answers for all chains of two casts of an edition, as an optimizer may ship them."""

    suite: str = VERSION
    edition: str
    chains: tuple[RemovableCast, ...]


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
    """Decide whether the middle cast of a chain may be left out."""
    direct, rulings = chain.direct, chain.rulings
    shorter = [ruling(direct)]

    def holds(has_open: bool, method: Method) -> RemovableCast:
        # Where the same cast is left, it answers open inputs as before.
        removable: Removable = "defined" if has_open and direct not in chain.steps else "always"
        return RemovableCast(chain=chain.id, direct=direct.id, removable=removable, known_by=method)

    if not is_listed(direct):
        return RemovableCast(
            chain=chain.id,
            direct=direct.id,
            removable="unlisted",
            known_by="the document's list",
        )
    contradicted, has_open = _tried(chain, shorter)
    if contradicted:
        found = contradicted.get("required", contradicted.get("recommended"))
        if "required" not in contradicted and not _is_narrow(chain):
            # The solver looks for an input that is decided more strictly.
            removal = Removal(rulings, shorter)
            stricter = removal.solve(removal.required_contradiction, seconds)
            found = stricter if isinstance(stricter, int) else found
        assert found is not None
        return _contradiction(chain, shorter, found)
    if _is_narrow(chain):
        return holds(has_open, "all inputs")
    removal = Removal(rulings, shorter)
    answers = removal.solve(removal.contradiction, seconds)
    if isinstance(answers, int):
        return _contradiction(chain, shorter, answers)
    if answers == "none" and not has_open:
        answers = removal.solve(removal.is_open, seconds)
        has_open = isinstance(answers, int)
    if answers == "out of time":
        return RemovableCast(
            chain=chain.id, direct=direct.id, removable="unknown", known_by="solver"
        )
    return holds(has_open, "solver")


def _is_narrow(chain: Chain) -> bool:
    return format_named(chain.source).bits <= EXHAUSTIVE_BITS


def _tried(chain: Chain, shorter: Sequence[Ruling]) -> tuple[dict[str, int], bool]:
    """The simplest contradicting input of each level, and whether the chain leaves inputs open."""
    inputs = chain_inputs(chain.dtypes, INPUTS)
    composed = compose_arrays(chain.rulings, inputs)
    wrong = ~_everywhere(composed.allows_all_of(compose_arrays(shorter, inputs)), inputs)
    weak = _everywhere(composed.is_recommended, inputs)
    source = format_named(chain.source)
    found = {
        level: int(inputs[index_of_simplest(source, inputs, where)])
        for level, where in (("required", wrong & ~weak), ("recommended", wrong & weak))
        if where.any()
    }
    return found, bool(_everywhere(composed.is_open, inputs).any())


def _everywhere(condition: Any, inputs: Bits) -> NDArray[np.bool_]:
    return np.broadcast_to(condition, inputs.shape)


def _contradiction(chain: Chain, shorter: Sequence[Ruling], code: int) -> RemovableCast:
    """A counterexample, which the definition must confirm."""
    kept, direct = ends(chain.rulings, code), ends(shorter, code)
    if not contradicts(kept, direct):
        raise AssertionError(f"{chain.id}: kernels and definition disagree on {code:#x}")
    source, target = format_named(chain.source), format_named(chain.target)
    return RemovableCast(
        chain=chain.id,
        direct=chain.direct.id,
        removable="never",
        known_by="counterexample",
        level="required" if kept.level == "required" else "recommended",
        counterexample=Counterexample(
            input=source.hexadecimal(code),
            chain=tuple(ends_words(target, kept)),
            direct=tuple(ends_words(target, direct)),
        ),
    )


def contradicts(kept: Ends, other: Ends) -> bool:
    """Whether something allowed by ``other`` is not allowed by a chain's own ends."""
    if kept.is_open:
        return False
    both = joined([kept, other])
    if both.is_open:
        return True
    signs = both.nans if "any" not in kept.nans else frozenset(["any"])
    return not (both.codes <= kept.codes and signs <= kept.nans)
