"""Data types for the allowed answers: ``Allowed`` for one input, ``Expected`` for an array.

``expect_by_exact``, ``expect_by_staircase`` and ``expect_by_kernels`` compute them independently. A
``branch_index`` counts in ``ruling.branches``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specs.branches import Branch


class Allowed(NamedTuple):
    """The branch that takes one input, and the patterns that the branch allows.

    ``codes`` is empty if the branch's outcome names no patterns.
    """

    branch_index: int
    branch: Branch
    codes: tuple[int, ...] = ()


def has_branch(branch_indices: NDArray[np.uint8], some: Sequence[int]) -> NDArray[np.bool_]:
    """Return whether each of the indices, one per input, is in ``some``."""
    found = np.zeros(branch_indices.shape, bool)
    for index in some:
        found |= branch_indices == index
    return found


@dataclass(frozen=True)
class Expected:
    """Per input: the index of the branch that takes it, a pattern it allows, and a second one.

    ``others`` equals ``codes`` where only one pattern is allowed. Both are meaningless where the
    branch's outcome names no patterns (any NaN, anything, a text, an error).
    """

    branch_indices: NDArray[np.uint8]
    codes: NDArray[Any]
    others: NDArray[Any]

    def at(self, where: NDArray[np.bool_] | NDArray[np.intp]) -> Expected:
        """Return the expectations of some inputs, selected by a mask or by indices."""
        return Expected(self.branch_indices[where], self.codes[where], self.others[where])
