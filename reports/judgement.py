"""A judgement: the verdict on a case on a backend, and the problems that led to it.

Part files serialize the field names of this class, so that renaming one changes the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from reports.problem_words import joined_words
from reports.problems import BrokenRule, Fault, Problem, WrongValues, wrong_inputs
from reports.run_store.answer_arrays import InputsAndAnswers
from reports.verdicts import Verdict

NEXT_SCRIPT = "\n# Another fault of this case:\n"
"""Separates the script for a wrong value from the script for another fault of a case."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on a case on a backend, with all that is needed to explain it.

    ``check`` names what was asked of a dtype pair beyond its cases; ``case`` is then the case by
    which it was asked. ``reaches_ends`` says that every stretch of failing inputs was followed to
    its ends.
    """

    case: str
    backend: str
    verdict: Verdict
    problems: tuple[Problem, ...] = ()
    inputs: int = 0
    open_inputs: int = 0
    reaches_ends: bool = False
    reproduction: str = ""
    road: str = ""
    answered: InputsAndAnswers | None = None
    check: str = ""
    further: tuple[Problem, ...] = ()
    """Further problems of the same failure, for comparisons; messages and ledgers omit them."""

    @cached_property
    def message(self) -> str:
        """All problems but wrong values in words; empty if there are none."""
        return joined_words(self.problems)

    @property
    def divergences(self) -> tuple[WrongValues, ...]:
        """The wrong values, by rule and level."""
        return tuple(each for each in self.problems if isinstance(each, WrongValues))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The other problems that break a rule."""
        return tuple(each for each in self.problems if isinstance(each, Fault) and each.rule)

    @property
    def broken_rules(self) -> tuple[BrokenRule, ...]:
        """Every rule that is broken: first those with wrong values, then those with a fault."""
        return (*self.divergences, *self.faults)

    @property
    def wrong(self) -> int:
        """How many inputs got an answer that is not allowed."""
        return sum(map(wrong_inputs, self.problems))
