"""What the proof has to show, one obligation after the other, and what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Half = Literal["solver", "exhaustion"]
Verdict = Literal["proved", "counterexample", "open"]


@dataclass(frozen=True)
class Obligation:
    """One claim about all inputs of a pair, and its verdict.

    ``rulings`` names the first case it speaks of, and how many others there are. ``statement`` is
    what the kernels were held against, ``inputs`` how many inputs that covers. ``found`` shows the
    input that contradicts a claim, with both answers.
    """

    half: Half
    source: str
    target: str
    mode: str
    rulings: str
    statement: str
    verdict: Verdict
    inputs: str
    seconds: float
    found: str = ""

    @property
    def name(self) -> str:
        return f"{self.source} to {self.target}, {self.mode}, {self.statement}"

    def __str__(self) -> str:
        found = f": {self.found}" if self.found else ""
        return f"{self.verdict:<14} {self.seconds:7.2f} s  {self.name} ({self.rulings}){found}"
