"""The wrong answers under one broken rule of one case."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from reports.findings.cells import Cell, Divergence
from reports.findings.failing_inputs import FailingInputs, Samples
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format

StoredArrays = Callable[[str], NDArray[Any]]
"""Reads the inputs or answers that a run stores under a digest."""
FailureKind = tuple[str, str, str]
"""A way to fail: the pair of dtypes, and the digest of the failing inputs with their answers."""
SAMPLES_KEPT = 32
"""Samples that are cached: a search returns to the same few cases again and again."""


class StoredSamples:
    """Samples of failing inputs, read when they are asked for; only the last ones are kept.

    Where every answer of every case is wrong, all of them together take gigabytes.
    """

    def __init__(self, stored: StoredArrays) -> None:
        self._stored = stored
        self._kept: dict[Hashable, Samples] = {}

    def of(self, cell: Cell, broken: Divergence, failing: FailingInputs) -> Samples:
        """The samples of a broken rule, which cases with the same answers share."""
        key = (cell.source, cell.target, cell.asked, cell.answers, broken.digest, broken.level)
        found = self._kept.pop(key, None)
        if found is None:
            found = failing.samples(*map(self._values, (cell.asked, cell.answers)))
        self._kept[key] = found
        if len(self._kept) > SAMPLES_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _values(self, digest: str | None) -> NDArray[Any] | None:
        return self._stored(digest) if digest is not None else None


@dataclass
class WrongAnswers:
    """The wrong answers under one broken rule; nothing explains the runs of ``left`` so far."""

    cell: Cell
    case: Case
    broken: Divergence
    failing: FailingInputs
    left: Mask
    stored: StoredSamples

    @classmethod
    def of(
        cls, cell: Cell, broken: Divergence, failing: FailingInputs, stored: StoredSamples
    ) -> WrongAnswers:
        """The wrong answers of a broken rule, none of them explained."""
        every = np.ones(failing.count.size, bool)
        return cls(cell, cell.as_case, broken, failing, every, stored)

    @property
    def samples(self) -> Samples:
        """Failing inputs with their answers, as far as a run stores them."""
        return self.stored.of(self.cell, self.broken, self.failing)

    @property
    def kind(self) -> FailureKind:
        """A key that cases of one pair with the same failing inputs and answers share."""
        return self.cell.source, self.cell.target, self.broken.digest

    def share(self, runs: Mask) -> float:
        """The share of the wrong answers that lie in some runs."""
        return float(self.failing.count[runs].sum()) / float(self.failing.count.sum())


def is_exhaustive(source: Format) -> bool:
    """Whether every tier asks all inputs."""
    return source.is_numeric and source.bits <= EXHAUSTIVE_BITS
