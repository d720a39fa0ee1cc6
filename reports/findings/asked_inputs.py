"""The inputs that were asked of a case, and what its rules allow for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from oracles.reference import expect_by_exact
from oracles.reference.expect_by_kernels import KernelExpectations
from oracles.reference.expectations import Expected
from reports.findings.input_regions import Classes, classify
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.ruling import ruling

KEPT = 64
"""Expectations that are cached: many mechanisms are tried on the same inputs."""
DECODED = 2
FEW = 1024
"""Failing inputs, and others, for which it is computed first where a mechanism would fail."""


@dataclass(frozen=True, eq=False)
class AskedInputs:
    """The inputs of a case that were asked, their answers, and which of them fail."""

    rules: Ruling
    inputs: NDArray[Any]
    answers: NDArray[Any]
    fails: Mask

    @cached_property
    def few(self) -> AskedInputs:
        """A sample of at most ``FEW`` failing inputs and ``FEW`` others."""
        chosen = [
            places[:: max(1, -(-places.size // FEW))]
            for places in (np.flatnonzero(self.fails), np.flatnonzero(~self.fails))
        ]
        some = np.sort(np.concatenate(chosen))
        return AskedInputs(self.rules, self.inputs[some], self.answers[some], self.fails[some])

    @cached_property
    def classes(self) -> Classes:
        """The class of each input."""
        return classify(self.rules.source, self.rules.target, self.inputs)

    @cached_property
    def expected(self) -> Expected:
        """What is allowed for each input."""
        return expected_of(self.rules, self.inputs)


@lru_cache(1 << 14)
def known_ruling(case: Case) -> Ruling | None:
    """The ruling of a case; None where inputs have none, or the document has the case no longer."""
    try:
        return ruling(case)
    except (CastigateError, KeyError):
        return None


def answered_ruling(case: Case) -> Ruling | None:
    """The ruling of a case; None if there is none, or if it rejects or leaves open the case."""
    rules = known_ruling(case)
    return None if rules is None or rules.is_rejection or rules.is_open else rules


def expected_of(rules: Ruling, inputs: NDArray[Any]) -> Expected:
    """Compute what a ruling allows for each input, by the kernels where they can tell."""
    is_numeric = rules.source.is_numeric and rules.target.is_numeric and not rules.worked
    if not is_numeric:
        return expect_by_exact.expect(rules, inputs)
    return _expected_by_kernels(rules, inputs.tobytes())


@lru_cache(KEPT)
def _expected_by_kernels(rules: Ruling, inputs: bytes) -> Expected:
    patterns, kernels = _decoded(rules.source, inputs)
    return kernels.expect(rules, patterns)


@lru_cache(DECODED)
def _decoded(source: Format, inputs: bytes) -> tuple[NDArray[Any], KernelExpectations]:
    """Return the patterns, and expectations that decode them once for all rulings."""
    return np.frombuffer(inputs, source.storage), KernelExpectations()
