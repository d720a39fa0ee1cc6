"""Groups rulings by pair and rounding into proof obligations, and proves them in parallel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from typing import Literal, TypeVar

from lab.proof.bit_vectors import NoAnswer
from specs.branches import Ruling
from specs.editions import editions
from specs.formats import Format
from specs.loader import documents
from specs.model.vocabulary import Rounding
from specs.operations import is_cast
from specs.ruling import ruling


@dataclass(frozen=True)
class Group:
    """The rulings of one pair and one rounding, each under the id of the first case it rules."""

    source: Format
    target: Format
    rounding: Rounding
    rulings: tuple[tuple[str, Ruling], ...]

    @property
    def name(self) -> str:
        """The id of the first case, and how many other rulings the group has."""
        others = len(self.rulings) - 1
        first = self.rulings[0][0]
        return f"{first} and {others} more" if others else first


@cache
def distinct_rulings() -> dict[str, Ruling]:
    """Return every ruling of a cast with a meaning of its own, under the id of its first case."""
    first: dict[Hashable, tuple[str, Ruling]] = {}
    for document in documents().values():
        for edition in editions(document):
            for case in edition.cases():
                if case.example is None and is_cast(case):
                    rules = ruling(case)
                    first.setdefault(rules.meaning, (case.id, rules))
    return dict(first.values())


@cache
def groups() -> tuple[Group, ...]:
    """Group all numeric rulings with distinct meanings, except rejections and open ones."""
    grouped: dict[tuple[Format, Format, Rounding], list[tuple[str, Ruling]]] = {}
    for name, rules in distinct_rulings().items():
        numeric = rules.source.is_numeric and rules.target.is_numeric
        if numeric and not (rules.is_rejection or rules.is_open):
            key = rules.source, rules.target, rules.rounding
            grouped.setdefault(key, []).append((name, rules))
    return tuple(Group(*key, tuple(rulings)) for key, rulings in grouped.items())


TIME_LIMIT = 300.0
"""Seconds for one obligation of the solver; the slowest takes about one minute."""

Half = Literal["solver", "exhaustion", "order", "quantization"]
"""The parts of the proof."""
Verdict = Literal["proved", "counterexample", "open"]


@dataclass(frozen=True)
class Obligation:
    """One claim about all inputs of a pair, and its verdict.

    ``rulings`` names the first case it covers and counts the others. ``statement`` is what the
    kernels were compared with, ``inputs`` how many inputs that covers. ``found`` shows a
    counterexample, with both answers.
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
        """The pair, the rounding and the statement."""
        return f"{self.source} to {self.target}, {self.mode}, {self.statement}"

    def __str__(self) -> str:
        found = f": {self.found}" if self.found else ""
        return f"{self.verdict:<14} {self.seconds:7.2f} s  {self.name} ({self.rulings}){found}"


def verdict_of(answer: int | NoAnswer) -> Verdict:
    """The verdict if the solver was asked for a counterexample and gave this answer."""
    verdicts: dict[int | NoAnswer, Verdict] = {"none": "proved", "out of time": "open"}
    return verdicts.get(answer, "counterexample")


Task = TypeVar("Task")


def prove_in_parallel(
    prove: Callable[[Task], Obligation],
    tasks: Sequence[Task],
    jobs: int,
    report: Callable[[Obligation], None],
) -> list[Obligation]:
    """Prove tasks in ``jobs`` processes; report each as soon as those before it are done.

    An interrupt (Ctrl-C) ends the run and returns the obligations reported so far.
    """
    results = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            for obligation in pool.map(prove, tasks):
                report(obligation)
                results.append(obligation)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    return results
