"""The answers of a backend to consecutive inputs, call by call and checked for their form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from oracles.backend.replies import attempt, checked, stored, value_of
from oracles.bound_sweep import BoundSweep, call_size
from oracles.protocol import Bits, Oracle, Swept, WithSweep
from oracles.reference.sweep_inputs import Dense, InputSequence
from reports.grading.chunk_check import ChunkCheck
from reports.grading.chunk_comparison import ChunkComparison
from specs.branches import Ruling
from specs.cases import Case

SAMPLED_CALL = 1 << 19
"""Inputs of a call if they are not consecutive patterns: they are computed for each call."""
FEW_PARTS = 8
"""The most steps of a chunk, and the most runs of equal answers in it, if graded by parts."""
ToAdvance = Callable[[], tuple[Bits | None, int]]
"""Returns a buffer of inputs, and the number that the next pass over the answers must add to each.

The buffer is None if nothing is to be added; see ``BoundSweep.to_advance``."""


def _nothing_to_advance() -> tuple[None, int]:
    return None, 0


class Chunk:
    """The inputs from number ``first`` on, their answers, and facts about these answers.

    ``make_inputs`` gets the number of the first input and a count, and returns the inputs. The
    facts are computed with ``comparison`` when they are first needed.
    """

    def __init__(
        self,
        first: int,
        answers: Bits,
        make_inputs: Callable[[int, int], Bits],
        comparison: ChunkComparison,
        to_advance: ToAdvance,
    ) -> None:
        self.first, self.answers = first, answers
        self.last = first + answers.size - 1
        self._make_inputs, self._comparison = make_inputs, comparison
        self.to_advance = to_advance

    def part(self, begin: int, end: int) -> Chunk:
        """Return the chunk of the inputs at the places ``begin`` to before ``end`` of this one."""
        answers = self.answers[begin:end]
        make, comparison = self._make_inputs, self._comparison
        return Chunk(self.first + begin, answers, make, comparison, _nothing_to_advance)

    @cached_property
    def inputs(self) -> Bits:
        """The inputs as an array."""
        return self._make_inputs(self.first, self.answers.size)

    @cached_property
    def uniform_answer(self) -> int | None:
        """The answer that all inputs share, or None; to find it may advance the next inputs."""
        is_uniform = self._comparison.is_uniform(self.answers, *self.to_advance())
        return int(self.answers[0]) if is_uniform else None

    @cached_property
    def changes(self) -> list[int] | None:
        """The indices of answers unlike the one before; None if they are ``FEW_PARTS`` or more."""
        is_other = self.answers[1:] != self.answers[:-1]
        if np.count_nonzero(is_other) >= FEW_PARTS:
            return None
        return [int(place) + 1 for place in np.flatnonzero(is_other)]


class RoadAnswers:
    """The answers of a backend to one part of a sequence after another, checked for their form.

    ``prepare`` gets the most inputs of a call, and returns the function that answers ``size``
    inputs call by call. The constructor raises ``Unanswered`` if ``prepare`` fails.
    """

    def __init__(
        self,
        rules: Ruling,
        comparison: ChunkComparison,
        visit: InputSequence,
        size: int,
        prepare: Callable[[int], Swept],
    ) -> None:
        self._visit = visit
        source, self._target = rules.source, rules.target
        self._is_narrow = self._target.bits not in (8, 16, 32, 64)
        self._comparison = comparison
        self._is_dense = isinstance(visit, Dense)
        self.call_size = call_size(source, self._target) if self._is_dense else SAMPLED_CALL
        self._like = np.zeros(min(self.call_size, size), source.storage)
        self._ask = value_of(attempt(lambda: prepare(self.call_size)))
        self._known: Bits | None = None
        self.to_advance: ToAdvance = _nothing_to_advance
        if isinstance(self._ask, BoundSweep):
            self.to_advance = self._ask.to_advance

    def ask(self, first: int, count: int) -> Bits:
        """Return the answers to ``count`` inputs from number ``first`` on.

        Raises what the backend raises, and ``Unanswered`` if the answers are malformed. An array
        that the backend returns again is not checked again: only codes that are too wide could make
        it malformed. No table finds these right, and ``chunk`` raises an error for them.
        """
        answers = self._ask(first, count)
        if answers is not self._known:
            self._known = checked(self._target, self._like[:count], answers)
        return answers

    def pass_over(self, first: int, stop: int, check: ChunkCheck) -> int:
        """Request inputs from ``first`` on while ``check`` passes; return the next input's number.

        No call begins at ``stop`` or later. Only a BoundSweep can pass over inputs; otherwise
        nothing is requested. See ``BoundSweep.pass_over``.
        """
        if isinstance(self._ask, BoundSweep):
            return self._ask.pass_over(first, stop, check)
        return first

    def chunk(self, first: int, answers: Bits) -> Chunk:
        """Return the last ``answers`` as a chunk; raise ``Unanswered`` if a code is too wide."""
        if self._is_narrow and self._comparison.exceed(answers, self._target.mask):
            stored(self._target, answers)
        return Chunk(first, answers, self.inputs, self._comparison, self.to_advance)

    def inputs(self, first: int, count: int) -> Bits:
        """Return the ``count`` inputs of the last call, which begin at number ``first``."""
        if isinstance(self._ask, BoundSweep) and not self._is_dense:
            return self._ask.inputs[:count]
        inputs = np.empty(count, self._like.dtype)
        self._visit.fill(inputs, first)
        return inputs


def prepared(
    oracle: Oracle, case: Case, visit: InputSequence, lo: int, hi: int, most: int
) -> Swept:
    """Return the function that answers the inputs ``lo`` to before ``hi``, call by call.

    It is the backend's own sweep if it has one and the inputs are consecutive patterns. Otherwise
    it makes casts of at most ``most`` inputs.
    """
    if isinstance(visit, Dense) and isinstance(oracle, WithSweep):
        return oracle.sweep(case, lo, hi)
    return BoundSweep(oracle, case, visit, lo, hi, most)
