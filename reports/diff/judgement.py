"""What was found out about one case on one backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from reports.diff.failure_runs import Runs
from reports.diff.kept_answers import Answered

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
Datum = int | str
"""A bit pattern, or a text of the string dtype."""


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
    """What is wrong about an answer as a whole: its shape, its dtype, or that there is one at all.

    ``kind`` tells how it shows: by the answer, by an error, or by an opt-out (`unsupported`).
    """

    kind: str
    rule: str
    clause: str
    level: str
    message: str


@dataclass(frozen=True)
class Judgement:
    """The verdict on a case, with all that is needed to explain it."""

    case: str
    backend: str
    verdict: Verdict
    message: str = ""
    inputs: int = 0
    open_inputs: int = 0
    divergences: tuple[Divergence, ...] = field(default=())
    faults: tuple[Fault, ...] = ()
    reproduction: str = ""
    road: str = ""
    answered: Answered | None = None

    @property
    def wrong(self) -> int:
        """How many inputs got an answer outside what is allowed."""
        return sum(divergence.count for divergence in self.divergences)
