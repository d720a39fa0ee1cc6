"""The problem that says in which step an operation gives wrong values, and how far they are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from reports.problems import Origin
from specs.cases import CARRIER, Case

MOST_CARRIERS = 3
"""The most carriers that a sentence names; of more, the others are counted."""
CarrierStep = Literal["load", "operation", "store", "load or store", ""]
"""A step of an operation that carries values; empty if it is not known which."""


@dataclass(frozen=True)
class FaultyStep(Origin):
    """The step at which an operation that carries values gives wrong ones.

    ``also`` are the carriers that answer the same inputs wrongly, too, and ``right`` those that
    answer them rightly. If wrong answers are wrong roundings, ``bias`` is by how many units of the
    last place magnitudes are too large on average of ``inputs`` inputs; else ``inputs`` is 0.
    """

    step: CarrierStep
    also: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    bias: float = 0.0
    inputs: int = 0

    @property
    def words(self) -> str:
        """The step, which other carriers are wrong and right, and how far answers are off."""
        parts = [f"its {self.step} is at fault" if self.step else ""]
        parts += [f"{_listed(self.also)} too" if self.also else ""]
        parts += [f"not {_listed(self.right)}" if self.right else ""]
        parts += [self._bias_words]
        return "; ".join(filter(None, parts))

    @property
    def name_end(self) -> str:
        """The step, as in `-in-load-or-store`; empty if it is not known."""
        return f"-in-{self.step.replace(' ', '-')}" if self.step else ""

    @classmethod
    def sentence_end(cls, found: Sequence[tuple[Case, Self]]) -> str:
        """Return the step and the carriers, and how far the answers that are worst are off."""
        carriers = _listed(sorted({case.mode[CARRIER] for case, _ in found}))
        step = found[0][1].step
        where = f", in the {step} of {carriers}" if step else f", in {carriers}"
        worst = max((each for _, each in found), key=lambda each: (abs(each.bias), each.inputs))
        return "; ".join(filter(None, (where, worst._bias_words)))

    @property
    def _bias_words(self) -> str:
        if not self.inputs:
            return ""
        side = "small" if self.bias < 0 else "large"
        units = f"{abs(self.bias):.4g} units of the last place"
        return f"magnitudes are {units} too {side} on average of {self.inputs:,} inputs"


def _listed(carriers: Sequence[str]) -> str:
    others = len(carriers) - MOST_CARRIERS
    return ", ".join(carriers[:MOST_CARRIERS]) + (f" and {others} more" if others > 0 else "")
