"""What a run says of each case on each backend, and what makes two such sayings alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from specs.cases import Case
from specs.operations import is_bitcast

NOT_ANSWERED = ("unsupported", "not-run")
FAILED = ("error", "crashed")
Key = tuple[str, str]
"""A backend's name and a case's id."""


class Stretch(NamedTuple):
    """One run of failing inputs, written out: patterns or texts."""

    first: str
    last: str
    inputs: int
    answer: str
    last_answer: str
    slope: int
    straight: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that is broken in one case: where, by how much, and the smallest input.

    ``digest`` stands for all listed runs with their answers: equal digests are equal divergences.
    """

    rule: str
    clause: str
    level: str
    wrong: int
    runs: int
    smallest: str | None
    answer: str | None
    allowed: tuple[str, ...]
    digest: str
    segments: tuple[int, ...]
    stretches: tuple[Stretch, ...]

    @property
    def name(self) -> tuple[str, str, str]:
        """What makes it the same divergence in another run."""
        return self.rule, self.clause, self.level


@dataclass(frozen=True, slots=True)
class Cell:
    """One backend's judgement on one case."""

    backend: str
    case: str
    document: str
    version: str
    source: str
    target: str
    mode: str
    verdict: str
    message: str
    inputs: int
    open: int
    wrong: int
    runs: int
    broken: tuple[Broken, ...]
    reproduction: str
    asked: str | None
    answers: str | None

    @property
    def as_case(self) -> Case:
        """The case itself: the last segments of its id are its mode."""
        modes, example = [], None
        for segment in filter(None, self.mode.split("/")):
            name, _, value = segment.partition(":")
            if name == "example":
                example = value
            else:
                modes.append((name, value))
        return Case(self.document, self.version, self.source, self.target, tuple(modes), example)

    @property
    def asks_inputs(self) -> bool:
        """Whether there are inputs to ask; a bitcast may be refused, or of no elements."""
        return not is_bitcast(self.as_case)

    @property
    def is_answered(self) -> bool:
        """Whether there are answers that could be compared with others."""
        return self.verdict not in (*NOT_ANSWERED, *FAILED)

    @property
    def behaves(self) -> tuple[str, ...]:
        """What it does, whoever asks: cells that behave alike are wrong alike, or not at all."""
        if not self.is_answered and not self.broken:
            return (self.verdict,)
        return tuple(f"{each.rule} {each.level} {each.digest}" for each in self.broken)
