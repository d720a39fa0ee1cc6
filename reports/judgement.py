"""A judgement: the verdict on a case on a backend, and the problems that led to it.

Part files serialize the field names of this class, so that renaming one changes the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from reports.problem_words import joined_words
from reports.problems import BrokenRule, Fault, Problem, WrongValues, wrong_inputs
from reports.run_store.answer_arrays import InputsAndAnswers

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


Verdict = Literal[
    "conforms",
    "violates",
    "deviates",
    "differs",
    "open",
    "unsupported",
    "error",
    "crashed",
    "not-run",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Every verdict, in the order of table columns and of the codes in data files."""

VERDICT_OF_LEVEL: dict[str, Verdict] = {"required": "violates", "recommended": "deviates"}
"""The verdict on a backend that breaks a rule of this level in a document that it claims."""
BREAKS_RULE: tuple[Verdict, ...] = ("violates", "deviates")
"""A rule of a claimed document is broken."""
NO_ANSWER: tuple[Verdict, ...] = ("error", "crashed")
"""An answer was due and none came, so no rule was compared."""
NOT_RUN: tuple[Verdict, ...] = ("unsupported", "not-run")
"""The backend declined the case, or was never asked: nothing was judged."""
FAILING: tuple[Verdict, ...] = (*BREAKS_RULE, *NO_ANSWER)
"""A run with one of these exits with code 1."""
WRONG: tuple[Verdict, ...] = (*BREAKS_RULE, "differs", *NO_ANSWER)
"""Verdicts of which fewer are better. `differs` is among them, although it never fails a run."""
BY_SEVERITY: tuple[Verdict, ...] = (
    "open",
    "conforms",
    "differs",
    "deviates",
    "violates",
    "not-run",
    "unsupported",
    "error",
    "crashed",
)
"""From the best to the worst: the worst verdict on a part of a case's inputs is the case's."""

VERDICT_DIGITS: dict[str, str] = {verdict: str(index) for index, verdict in enumerate(VERDICTS)}
"""A verdict as one character in data files."""
