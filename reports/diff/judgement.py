"""The judgement of one case on one backend: the verdict, and everything that explains it.

Part files serialize the field names of these classes, so that renaming one changes the format.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reports.diff.answer_arrays import InputsAndAnswers
from reports.diff.failure_runs import Runs
from reports.diff.verdicts import Verdict

Datum = int | str
"""A bit pattern, or a text of the string dtype."""


NEXT_SCRIPT = "\n# Another fault of this case:\n"
"""Separates the script for a wrong value from the script for another fault of a case."""


@dataclass(frozen=True)
class Divergence:
    """The inputs on which a backend breaks one rule, and the smallest of them."""

    rule: str
    clause: str
    level: str
    count: int
    runs: Runs
    smallest: Datum
    answer: Datum
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """Describes a fault of a whole answer: its shape, its dtype, or that it was not refused.

    ``kind`` says what came back: an `answer`, an `error`, or an opt-out (`unsupported`).
    """

    kind: str
    rule: str
    clause: str
    level: str
    message: str

    @property
    def count(self) -> int:
        """How many inputs got a wrong value: none, for a fault is not about single values."""
        return 0


@dataclass(frozen=True)
class Judgement:
    """The verdict on a case on a backend, with all that is needed to explain it.

    ``check`` names what was asked of a dtype pair beyond its cases; ``case`` is then the case by
    which it was asked.
    ``reaches_ends`` says that every stretch of failing inputs was followed to its ends.
    """

    case: str
    backend: str
    verdict: Verdict
    message: str = ""
    inputs: int = 0
    open_inputs: int = 0
    reaches_ends: bool = False
    divergences: tuple[Divergence, ...] = field(default=())
    faults: tuple[Fault, ...] = ()
    reproduction: str = ""
    road: str = ""
    answered: InputsAndAnswers | None = None
    check: str = ""

    @property
    def wrong(self) -> int:
        """How many inputs got an answer that is not allowed."""
        return sum(divergence.count for divergence in self.divergences)

    @property
    def broken_rules(self) -> tuple[Divergence | Fault, ...]:
        """Every rule that is broken: first those with wrong values, then those with a fault."""
        return (*self.divergences, *self.faults)
