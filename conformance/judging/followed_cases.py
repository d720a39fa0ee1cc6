"""The divergences of a case, with its failing inputs followed to the ends of their stretches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from conformance.judging.answers import Answer, Unanswered, value_of
from conformance.judging.failing_stretches import GradedAnswers, follow
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


class Follower:
    """Follows the failing inputs of one backend's cases, and remembers what it found last."""

    def __init__(self, ask: AskCase) -> None:
        self._ask = ask
        self._results: dict[object, Followed] = {}

    def follow(self, case: Case, rules: Ruling, known: GradedAnswers, road: str) -> Followed:
        """Ask every input around those that fail, unless a case of this road told their answers.

        A case with an empty ``road`` shares no results.
        """
        key = (road or case.id, rules, known.inputs.tobytes(), known.answers.tobytes())
        if key not in self._results:
            while len(self._results) >= REMEMBERED:
                del self._results[next(iter(self._results))]
            whole = None
            with suppress(Unanswered):
                whole = follow(known, partial(self._graded, case, rules))
            self._results[key] = (
                not_followed(rules, known) if whole is None else _followed(rules, known, whole)
            )
        return self._results[key]

    def _graded(self, case: Case, rules: Ruling, inputs: Bits) -> GradedAnswers:
        """The graded answers to many inputs, in rows of one length."""
        answers = np.empty(inputs.size, rules.target.storage)
        for first in range(0, inputs.size, ROW):
            part = inputs[first : first + ROW]
            row = part if part.size == ROW else np.resize(part, ROW)
            answer = value_of(self._ask(case, rules, row))
            answers[first : first + part.size] = answer[: part.size]
        stairs, compare = staircase(rules), _comparison_of(inputs).compare_with_steps
        return GradedAnswers(inputs, answers, *grade_by_staircase(stairs, inputs, answers, compare))


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
