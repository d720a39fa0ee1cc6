"""Answers one part of a sequence of inputs after another, from one buffer that stays bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.protocol import Bits, Bound, InputsChanged, Oracle, WithBind
from oracles.reference.sweep_inputs import Dense, InputSequence
from specs.cases import Case
from specs.formats import Format, format_named

CALL_BYTES = 1 << 20
"""Bytes of the inputs and answers of one call. They fit into a core's own cache, where
fast casts, such as torch's from float32 to float64, take less than half of the time."""


def call_size(source: Format, target: Format) -> int:
    """Return how many inputs one call of a sweep has: a power of two that ``CALL_BYTES`` holds."""
    element = np.dtype(source.storage).itemsize + np.dtype(target.storage).itemsize
    return int(1 << (CALL_BYTES // element).bit_length() - 1)


class BoundSweep:
    """Answers the inputs that a sequence has between two numbers, at most ``most`` in one call."""

    def __init__(
        self, oracle: Oracle, case: Case, sequence: InputSequence, lo: int, hi: int, most: int
    ) -> None:
        self._oracle, self._case, self._sequence = oracle, case, sequence
        self._first, self._hi = lo, hi
        self.inputs = np.zeros(min(most, hi - lo), format_named(case.source).storage)
        """The inputs of the last call, and at the end of the sequence some that follow them."""
        sequence.fill(self.inputs, lo)
        self._is_dense = isinstance(sequence, Dense)
        self._size = self.inputs.size
        self._step = self.inputs.dtype.type(self._size)
        self._call = self._bound()

    def __call__(self, first: int, count: int) -> Bits:
        """Return the answers to ``count`` inputs from number ``first`` on.

        Raises ``InputsChanged`` if the oracle wrote to an earlier input, at the last call at the
        latest.
        """
        if first != self._first:
            self._move_to(first)
        answer = self._call() if count == self._size else self._answer_part(count)
        if first + count >= self._hi:
            self._check_unchanged()
        return answer

    def _answer_part(self, count: int) -> Bits:
        try:
            answer = self._call()
        except Exception:
            # An input that was not asked for may be the cause.
            return self._oracle.cast(self._case, self.inputs[:count].copy())
        is_whole = isinstance(answer, np.ndarray) and answer.shape == self.inputs.shape
        return answer[:count] if is_whole else answer

    def _move_to(self, first: int) -> None:
        if self._is_dense:
            # Added in place, so that a change of any call shows at the end.
            distance = first - self._first
            step = self._step if distance == self._size else self._step_of(distance)
            np.add(self.inputs, step, self.inputs)
        else:
            self._check_unchanged()
            self._sequence.fill(self.inputs, first)
        self._first = first

    def _step_of(self, distance: int) -> Any:
        return self.inputs.dtype.type(distance % (1 << 8 * self.inputs.itemsize))

    def _check_unchanged(self) -> None:
        unchanged = np.empty_like(self.inputs)
        self._sequence.fill(unchanged, self._first)
        if (self.inputs != unchanged).any():
            raise InputsChanged

    def _bound(self) -> Bound:
        """A call that answers what the buffer holds: the oracle's own, or its cast of a copy."""
        oracle, case = self._oracle, self._case
        if isinstance(oracle, WithBind):
            return oracle.bind(case, self.inputs)
        return lambda: oracle.cast(case, self.inputs.copy())
