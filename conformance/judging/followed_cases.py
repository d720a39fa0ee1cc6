"""The divergences of a case, with its failing inputs followed to the ends of their stretches."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import numpy as np

from conformance.judging.answers import Answer, Unanswered, value_of
from conformance.judging.failing_stretches import GradedAnswers, Ranges, follow
from oracles.protocol import Bits
from oracles.reference.staircase import staircase
from reports.diff.chunk_comparison import (
    ChunkComparison,
    chunk_comparison,
    fastest_comparison,
)
from reports.diff.divergences import divergence, find_failures
from reports.diff.failure_runs import Gather, gather
from reports.diff.judgement import Divergence
from reports.diff.staircase_grades import grade_by_staircase
from specs.cases import Case
from specs.ruling import Ruling

AskCase = Callable[[Case, Ruling, Bits], Answer]
ROW = 1 << 16
"""Elements of each row that is asked."""
MANY = 1 << 21
"""From so many inputs on, numba saves more time than loading it takes."""
REMEMBERED = 16
"""Results that are kept: many cases of a pair share a road and rules."""


@dataclass(frozen=True)
class Followed:
    """The divergences of a case, each with its smallest input.

    ``inputs`` were asked beyond those of the quick tier. ``reaches_ends``: every failing input
    of each stretch is among them.
    """

    divergences: tuple[tuple[Divergence, Bits], ...]
    inputs: int
    reaches_ends: bool


@dataclass(frozen=True)
class _Trail:
    """A result, and the steps to it: the ranges that were asked and a digest of the answers."""

    steps: tuple[tuple[Ranges, bytes], ...]
    found: Followed


class Follower:
    """Follows the failing inputs of one backend's cases, and remembers what it found last."""

    def __init__(self, ask: AskCase) -> None:
        self._ask = ask
        self._results: dict[Hashable, Followed] = {}
        self._trails: dict[Hashable, _Trail] = {}

    def follow(self, case: Case, rules: Ruling, known: GradedAnswers, road: str) -> Followed:
        """Ask every input around those that fail, unless a case of this road told their answers.

        A case with an empty ``road`` shares no results. Cases of another road with the same rules
        are asked the same inputs; if all answers are equal, the result is not computed again.
        """
        asked = (rules, known.inputs.tobytes(), known.answers.tobytes())
        key = (road or case.id, *asked)
        if key not in self._results:
            try:
                trail = self._trails.get(asked)
                if trail is None or not self._repeats(case, rules, trail):
                    trail = self._walked(case, rules, known)
                    _remember(self._trails, asked, trail)
                found = trail.found
            except Unanswered:
                found = not_followed(rules, known)
            _remember(self._results, key, found)
        return self._results[key]

    def _walked(self, case: Case, rules: Ruling, known: GradedAnswers) -> _Trail:
        """Follow the failing inputs, and remember how."""
        steps: list[tuple[Ranges, bytes]] = []
        stairs = staircase(rules)

        def ask(ranges: Ranges) -> GradedAnswers:
            inputs = ranges.inputs(rules.source.storage)
            answers = self._answers(case, rules, inputs)
            steps.append((ranges, _digest(answers)))
            compare = _comparison_of(inputs).compare_with_steps
            graded = grade_by_staircase(stairs, inputs, answers, compare)
            return GradedAnswers(inputs, answers, *graded)

        whole = follow(known, ask)
        found = not_followed(rules, known) if whole is None else _followed(rules, known, whole)
        return _Trail(tuple(steps), found)

    def _repeats(self, case: Case, rules: Ruling, trail: _Trail) -> bool:
        """Whether this case has the same answers to all inputs of a trail."""
        return all(
            _digest(self._answers(case, rules, ranges.inputs(rules.source.storage))) == digest
            for ranges, digest in trail.steps
        )

    def _answers(self, case: Case, rules: Ruling, inputs: Bits) -> Bits:
        """The answers to many inputs, in rows of one length."""
        answers = np.empty(inputs.size, rules.target.storage)
        for first in range(0, inputs.size, ROW):
            part = inputs[first : first + ROW]
            row = part if part.size == ROW else np.resize(part, ROW)
            answer = value_of(self._ask(case, rules, row))
            answers[first : first + part.size] = answer[: part.size]
        return answers


Result = TypeVar("Result")


def _remember(results: dict[Hashable, Result], key: Hashable, result: Result) -> None:
    """Remember a result in the place of the oldest."""
    while len(results) >= REMEMBERED:
        del results[next(iter(results))]
    results[key] = result


def _digest(answers: Bits) -> bytes:
    return sha256(answers.data).digest()


def _comparison_of(inputs: Bits) -> ChunkComparison:
    """Return numba's comparison for many inputs; for fewer, loading numba takes too long."""
    return fastest_comparison() if inputs.size >= MANY else chunk_comparison(compiled=False)


def not_followed(rules: Ruling, known: GradedAnswers) -> Followed:
    """The divergences of the known answers alone."""
    found = _divergences(rules, known, gather) if known.fails.any() else ()
    return Followed(found, 0, reaches_ends=False)


def _followed(rules: Ruling, known: GradedAnswers, whole: GradedAnswers) -> Followed:
    found = _divergences(rules, whole, _comparison_of(whole.inputs).gather)
    return Followed(found, whole.inputs.size - known.inputs.size, reaches_ends=True)


def _divergences(
    rules: Ruling, graded: GradedAnswers, gather_runs: Gather
) -> tuple[tuple[Divergence, Bits], ...]:
    found = find_failures(
        rules, graded.inputs, graded.branch_indices, graded.answers, graded.grades, gather_runs
    )
    return tuple((divergence(rules, each), graded.inputs[at : at + 1].copy()) for each, at in found)
