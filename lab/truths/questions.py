"""The questions to truths: round these patterns of a source to a target in one way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Atom, Rounding
from specs.outcomes import Anything, Exactly, Outcome, Round, Wrap

Patterns = NDArray[Any]
Mask = NDArray[np.bool_]

Overflow = Literal["ieee", "saturate", "wrap"]
"""The treatment of values that are out of the target's range after rounding.

- ``ieee``: what IEEE 754 says for each rounding, an infinity or the largest value; a NaN stands in
  for the infinity of a format that has none
- ``saturate``: the largest or the lowest value; of an infinity too
- ``wrap``: the rounded integer's low bits
"""

NEAREST = ("nearest-even", "nearest-away")


@dataclass(frozen=True)
class Question:
    """A cast without the answers to NaNs, which documents fix."""

    source: Format
    target: Format
    rounding: Rounding
    overflow: Overflow

    @property
    def kind(self) -> str:
        """The kinds of the two formats, such as ``float to integer``."""
        return f"{_kind(self.source)} to {_kind(self.target)}"

    def __str__(self) -> str:
        return f"{self.source.name} to {self.target.name}, {self.rounding}, {self.overflow}"


def _kind(fmt: Format) -> str:
    return "float" if fmt.kind == "float" else "text" if fmt.kind == "text" else "integer"


class Answers(NamedTuple):
    """Patterns of the target, and a mask of those that the truth really answers."""

    codes: Patterns
    known: Mask


class Truth(Protocol):
    """Arithmetic that others wrote.

    ``package`` must be installed; a truth imports it only when it is asked. A slow truth is asked
    about at most ``most_inputs`` of a pair.
    """

    name: str
    package: str
    most_inputs: int | None

    def version(self) -> str:
        """The version of the library that answers."""

    def can_answer(self, question: Question) -> bool:
        """Whether the truth has these formats, this rounding and this overflow."""

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        """Answer each pattern of the source."""


def question_of(ruling: Ruling) -> Question:
    """Return the question that a ruling's numbers answer.

    If no branch of the ruling rounds, the rounding is to nearest even, which every truth knows.
    """
    rounds = any(isinstance(branch.outcome, Round) for branch in ruling.branches)
    exact = ruling.target.kind == "float" and not rounds
    rounding = "nearest-even" if exact else ruling.rounding
    return Question(ruling.source, ruling.target, rounding, _overflow_of(ruling))


def _overflow_of(ruling: Ruling) -> Overflow:
    """Return how a ruling treats values beyond the range of its target.

    Where the document leaves that open, truths are asked to saturate integers, as most of them can,
    and floats that have nothing beyond their range.
    """
    target = ruling.target
    too_large = _outcomes(ruling, lambda atom: atom.zone == "overflow")
    infinite = _outcomes(ruling, lambda atom: atom.kind == "infinity")
    if Wrap() in too_large:
        return "wrap"
    if target.is_integral or not (target.entry.infinity or target.nan_codes):
        return "saturate"
    ends = {Exactly(target.max_code), Exactly(target.lowest_code)}
    # Toward zero IEEE 754 saturates finite values, too; there the answer to infinity tells which.
    telling = too_large if ruling.rounding in NEAREST else too_large | infinite
    return "saturate" if telling and telling <= ends else "ieee"


def _outcomes(ruling: Ruling, belongs: Callable[[Atom], bool]) -> set[Outcome]:
    """Return the outcomes, except open ones, of the atoms of input that ``belongs`` selects."""
    taking = {taker for atom, taker in ruling.branch_of.items() if belongs(atom)}
    found = {ruling.branches[taker].outcome for taker in taking}
    return {outcome for outcome in found if not isinstance(outcome, Anything)}
