"""What a case allows for a whole array of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specs.ruling import Branch


class Allowed(NamedTuple):
    """The branch that takes an input, and the patterns it allows where it names patterns."""

    place: int
    branch: Branch
    codes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Expected:
    """Per input: the branch that takes it, the pattern it allows, a second one where there are two.

    ``codes`` means something only where the branch's outcome names patterns.
    """

    places: NDArray[np.uint8]
    codes: NDArray[Any]
    others: NDArray[Any]

    def at(self, where: NDArray[np.bool_] | NDArray[np.intp]) -> Expected:
        """The expectations of some of the inputs."""
        return Expected(self.places[where], self.codes[where], self.others[where])
