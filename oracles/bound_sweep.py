"""Casts one part of a sequence of inputs after another, from one buffer that stays bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from oracles.memory_layouts import in_huge_pages
from oracles.protocol import Bits, Bound, InputsChanged, Oracle, WithBind
from oracles.reference.sweep_inputs import Dense, InputSequence
from specs.cases import Case
from specs.formats import Format, format_named

CALL_BYTES = 1 << 20
"""Bytes of the inputs and answers of one call.

They fit into a core's own cache, where fast casts, such as torch's from float32 to float64, take
less than half of the time.
"""
CHECKED = 1 << 13
"""How many inputs at a time are checked to be unchanged."""
PART = 1 << 15
"""Inputs of each call of a compiled loop: with their answers they fit well into that cache."""


@dataclass(frozen=True)
class BoundLoop:
    """A bound call of a compiled function, which gets a count and two addresses.

    Other compiled code may call ``function``, a function of ctypes, for a part of the ``inputs``.
    """

    function: Any
    inputs: Bits
    answers: Bits

    def __call__(self) -> Bits:
        self.function(self.inputs.size, self.inputs.ctypes.data, self.answers.ctypes.data)
        return self.answers


@runtime_checkable
class LoopCheck(Protocol):
    """A check of answers that can call a compiled loop itself, without Python in between."""

    def over(self, function: Any, first: int, end: int, inputs: Bits, answers: Bits) -> int:
        """Answer inputs from number ``first`` on, as many at a time as ``inputs`` holds.

        Return the number of the first input of a call with a wrong answer, or ``end``. After each
        call, the last one too, add the number of its inputs to all of ``inputs``.
        """


def call_size(source: Format, target: Format) -> int:
    """Return how many inputs one call of a sweep gets: the largest power of two that fits.

    Inputs and answers together have at most ``CALL_BYTES`` bytes.
    """
    element = np.dtype(source.storage).itemsize + np.dtype(target.storage).itemsize
    return int(1 << (CALL_BYTES // element).bit_length() - 1)


class BoundSweep:
    """Casts the inputs of a sequence from number ``lo`` to ``hi - 1``, up to ``most`` in a call."""

    def __init__(
        self, oracle: Oracle, case: Case, sequence: InputSequence, lo: int, hi: int, most: int
    ) -> None:
        self._oracle, self._case, self._sequence = oracle, case, sequence
        self._hi = hi
        self._first, self._asked = lo, lo
        """The number of the first input in the buffer, and that of the last call's first input."""
        self._last: Bits | None = None
        self._ahead: Bits | BaseException | None = None
        """The answers, or the error, of the last call in ``pass_over``, until they are returned."""
        self.inputs = in_huge_pages(min(most, hi - lo), format_named(case.source).storage)
        """The inputs of the last call; if that had fewer than the buffer holds, others follow them.

        After ``to_advance``, and the addition that it demands, they are those of the next call.
        """
        sequence.fill(self.inputs, lo)
        self._is_dense = isinstance(sequence, Dense)
        self._size = self.inputs.size
        # It is 0 if there are as many inputs as patterns.
        self._step = np.uint64(self._size).astype(self.inputs.dtype)
        self._call = self._bound()

    def __call__(self, first: int, count: int) -> Bits:
        """Return the answers to ``count`` inputs, at most ``most``, from number ``first`` on.

        Raises what the oracle raises and, at the last call at the latest, ``InputsChanged`` if the
        oracle wrote to ``inputs``. An oracle without ``bind`` gets copies.
        """
        if (ahead := self._ahead) is not None:
            self._ahead = None
            return self._taken(ahead)
        if first != self._first:
            self._move_to(first)
        self._asked = first
        answer = self._call() if count == self._size else self._answer_part(count)
        if first + count >= self._hi:
            self._check_unchanged()
        self._last = answer
        return answer

    def pass_over(
        self, first: int, stop: int, is_right: Callable[[int, Bits, Bits, int], bool]
    ) -> int:
        """Call the oracle up to input number ``stop``, as long as a check finds the answers right.

        ``is_right`` gets the number of the first input, the answers, the inputs and their count; in
        any case it must add that count to the inputs in place. Answers of another dtype, shape or
        strides than the last call's fail without it. Returns the number of the first input whose
        answers were not found right, or not requested. No call begins at ``stop`` or later, or is
        the sequence's last, and there is none if the sequence is not dense or there was no call
        before. If the last call's answers failed the check, or it raised an exception, the next
        ``__call__`` returns or raises that.
        """
        call, known, inputs, size = self._call, self._last, self.inputs, self._size
        end = min(stop, self._hi - size)
        if not self._is_dense or known is None or first >= end:
            return first
        if first != self._first:
            self._move_to(first)
        if isinstance(call, BoundLoop) and isinstance(is_right, LoopCheck) and size % PART == 0:
            return self._pass_by_loop(call, is_right, first, end)
        at = first
        try:
            for at in range(first, end, size):
                answers = call()
                if answers is not known and not _is_alike(answers, known):
                    self._ahead = answers
                    break
                if not is_right(at, answers, inputs, size):
                    self._first, self._asked, self._ahead = at + size, at, answers
                    return at
            else:
                at += size
        except BaseException as error:
            self._ahead = error
        self._first = self._asked = at
        return at

    def _pass_by_loop(self, call: BoundLoop, check: LoopCheck, first: int, end: int) -> int:
        """Do as ``pass_over`` does, in parts; stop before a whole call with a wrong answer."""
        size, inputs = self._size, self.inputs
        last = first - (first - end) // size * size
        at = check.over(call.function, first, last, inputs[:PART], call.answers[:PART])
        reached = at - (at - first) % size
        inputs[PART:] += self._step_of(reached - first)
        inputs[:PART] -= self._step_of(at - reached + (PART if at < last else 0))
        self._first = self._asked = reached
        return reached

    def _taken(self, ahead: Bits | BaseException) -> Bits:
        if isinstance(ahead, BaseException):
            raise ahead
        self._last = ahead
        return ahead

    def to_advance(self) -> tuple[Bits | None, int]:
        """Return the inputs, and the number that the caller must add to each to get the next ones.

        The caller adds it in the same pass in which it reads the call's answers. If there are no
        next inputs, or they are not made by adding, or this was called before for the same call,
        return None and 0.
        """
        is_next = self._first == self._asked and self._asked + self._size < self._hi
        if not (is_next and self._is_dense):
            return None, 0
        self._first += self._size
        return self.inputs, self._size

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
        # A dense sequence is verified in parts that stay in a core's first cache.
        size = min(CHECKED, self._size) if self._is_dense else self._size
        unchanged = np.empty(size, self.inputs.dtype)
        for at in range(0, self._size, size):
            part = self.inputs[at : at + size]
            self._sequence.fill(unchanged[: part.size], self._first + at)
            if (part != unchanged[: part.size]).any():
                raise InputsChanged

    def _bound(self) -> Bound:
        oracle, case = self._oracle, self._case
        if isinstance(oracle, WithBind):
            return oracle.bind(case, self.inputs)
        return lambda: oracle.cast(case, self.inputs.copy())


def _is_alike(answers: object, known: Bits) -> bool:
    if type(answers) is not np.ndarray:
        return False
    form = (answers.dtype, answers.shape, answers.strides)
    return form == (known.dtype, known.shape, known.strides)
