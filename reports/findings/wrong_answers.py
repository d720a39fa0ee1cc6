"""The wrong answers under one broken rule of one case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.findings.cells import Cell, Divergence
from reports.findings.failing_inputs import FailingInputs, Mask, Samples
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format

StoredArrays = Callable[[str], NDArray[Any]]
"""Reads the inputs or answers that a run stores under a digest."""


@dataclass
class WrongAnswers:
    """The wrong answers under one broken rule; nothing explains the runs of ``left`` so far."""

    cell: Cell
    case: Case
    broken: Divergence
    failing: FailingInputs
    samples: Samples
    left: Mask

    @classmethod
    def of(
        cls, cell: Cell, broken: Divergence, failing: FailingInputs, stored: StoredArrays
    ) -> WrongAnswers:
        """The wrong answers of a broken rule, none of them explained."""
        asked, answers = (
            stored(digest) if digest is not None else None for digest in (cell.asked, cell.answers)
        )
        every = np.ones(failing.count.size, bool)
        return cls(cell, cell.as_case, broken, failing, failing.samples(asked, answers), every)

    @property
    def kind(self) -> tuple[str, str, str]:
        """The same for cases of one pair with the same answers to the same failing inputs."""
        return self.cell.source, self.cell.target, self.broken.digest

    def share(self, runs: Mask) -> float:
        """The share of the wrong answers that lie in some runs."""
        return float(self.failing.count[runs].sum()) / float(self.failing.count.sum())


def is_exhaustive(source: Format) -> bool:
    """Whether every tier asks all inputs."""
    return source.is_numeric and source.bits <= EXHAUSTIVE_BITS
