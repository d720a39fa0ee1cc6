"""Backends that are asked about consecutive patterns of uint32, as uint8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

GUILTY = 0x01234567


class Swept:
    """Answers rightly, but on the guilty input does what the name of the class says."""

    name = "swept"
    version = "1"

    def cast(self, case: Any, bits: Any) -> Any:
        answers = (bits & 255).astype(np.uint8)
        return self.guilty(bits, answers) if (bits == GUILTY).any() else answers

    def guilty(self, bits: Any, answers: Any) -> Any:
        return answers


class Bound(Swept):
    """Returns the same array from each call."""

    def bind(self, case: Any, bits: Any) -> Callable[[], Any]:
        answers = np.empty(bits.size, np.uint8)

        def call() -> Any:
            found = self.cast(case, bits)
            if found.shape != answers.shape:
                return found
            answers[:] = found
            return answers

        return call


class Wrong(Bound):
    def guilty(self, bits: Any, answers: Any) -> Any:
        return answers ^ (bits == GUILTY)


class TooShort(Bound):
    def guilty(self, bits: Any, answers: Any) -> Any:
        return answers[:-1]


class OtherStorage(Swept):
    def guilty(self, bits: Any, answers: Any) -> Any:
        return answers.astype(np.uint16)


class NoArray(Swept):
    def guilty(self, bits: Any, answers: Any) -> Any:
        return "nothing"


class Raises(Bound):
    def guilty(self, bits: Any, answers: Any) -> Any:
        raise OverflowError("too large")


class Writes(Swept):
    """Changes an input of the buffer that it is bound to."""

    def bind(self, case: Any, bits: Any) -> Callable[[], Any]:
        return partial(self.cast, case, bits)

    def guilty(self, bits: Any, answers: Any) -> Any:
        bits[5] ^= 1
        return answers


class Dies(Bound):
    def guilty(self, bits: Any, answers: Any) -> Any:
        import os

        os.abort()


class MakesTheInputs(Swept):
    """Makes the inputs itself, so that it needs no buffer."""

    def sweep(self, case: Any, lo: int, hi: int) -> Any:
        def answer(first: int, count: int) -> Any:
            bits = np.arange(first, first + count, dtype=np.uint32)
            assert lo <= first < hi
            return self.cast(case, bits) ^ (bits == GUILTY)

        return answer


class ReplacesTheJudge(Wrong):
    """Patches the sweep's checks in its own process, so that they find nothing wrong."""

    def __init__(self) -> None:
        from conformance.sweep import engine

        engine.RulingCheck.look = lambda *_: 0  # type: ignore[method-assign]
        engine.RulingCheck.look_at_once = lambda *_: 0  # type: ignore[method-assign]
