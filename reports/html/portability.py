"""The comparisons of two backends that the page of portability shows.

A higher layer provides them: it compares backends by the answers that a run holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from specs.formats import formats

SAFE, IN_RANGE, NOT_SAFE, ABSENT = "safe", "safe in range", "not safe", "not offered"
SIGNS: Mapping[str, str] = {SAFE: "=", IN_RANGE: "~", NOT_SAFE: "!", ABSENT: "–"}
"""The sign of each portability of a pair of dtypes, the best first."""
CLASSES: Mapping[str, str] = {
    SAFE: "v-conforms",
    IN_RANGE: "v-deviates",
    NOT_SAFE: "v-violates",
    ABSENT: "v-unsupported",
}
"""The colors of pairs: those of verdicts."""
MEANINGS: Mapping[str, str] = {
    SAFE: "both give the same bits for every input asked",
    IN_RANGE: "they do so in a range of values that holds zero and one, and not everywhere",
    NOT_SAFE: "there is no such range",
    ABSENT: "only one of them offers it, or the run holds no answers of the other",
}


@dataclass(frozen=True)
class PortedPair:
    """A pair of dtypes as two backends answer it: how safe it is, words, a case."""

    source: str
    target: str
    portability: str
    words: str
    case: str


@dataclass(frozen=True)
class Porting:
    """Two backends, and the pairs of dtypes that either of them offers."""

    one: str
    other: str
    pairs: tuple[PortedPair, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of pairs of each portability."""
        return Counter(each.portability for each in self.pairs)

    @property
    def sources(self) -> list[str]:
        """The sources, in the order of all dtypes."""
        return _in_order({each.source for each in self.pairs})

    @property
    def targets(self) -> list[str]:
        """The targets, in the order of all dtypes."""
        return _in_order({each.target for each in self.pairs})

    @cached_property
    def by_dtypes(self) -> Mapping[tuple[str, str], PortedPair]:
        """The pairs by source and target."""
        return {(each.source, each.target): each for each in self.pairs}

    @property
    def differing(self) -> list[PortedPair]:
        """The pairs that are not safe everywhere, those that are not safe at all first."""
        order = [NOT_SAFE, IN_RANGE]
        found = [each for each in self.pairs if each.portability in order]
        return sorted(found, key=lambda each: order.index(each.portability))


def _in_order(names: set[str]) -> list[str]:
    return [name for name in formats() if name in names]


Portings = Callable[[str], Sequence[Porting]]
"""Compares every two backends by the answers that a run holds."""
