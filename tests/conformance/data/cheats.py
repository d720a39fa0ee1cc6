"""Backends that are wrong, and try to pass a gate all the same.

They offer casts from float16 to int8 and float32 only, so that a gate takes seconds.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from conformance.families.cast.quick_inputs import quick_inputs
from conformance.judging.probe import shape_of_pair
from oracles.protocol import Unsupported
from specs.cases import Case
from tests.conformance.data.runnable import Right


class Few(Right):
    """Right in the few casts that it offers."""

    def cast(self, case: Case, bits: Any) -> Any:
        if case.source != "float16" or case.target not in ("int8", "float32"):
            raise Unsupported("only float16 to int8 and float32")
        return super().cast(case, bits)


class WrongInRows(Few):
    """Wrong in rows of 9 to 199 elements, which no case asks by itself."""

    is_wrong = True

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if self.is_wrong and 9 <= bits.size <= 199:
            answers ^= 1


class SaysThatItCompiles(WrongInRows):
    """Says that it compiles per shape, and is right in the one shape that it is then asked."""

    compiles_shapes = True

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if bits.shape != shape_of_pair(f"{case.source}/{case.target}"):
            super().spoil(case, bits, answers)


class WrongInRowsLater(WrongInRows):
    """The same, once ``CHEATS_SWITCH`` is set in the environment."""

    is_wrong = "CHEATS_SWITCH" in os.environ


class KnowsTheBaseline(Right):
    """Right on the inputs that are drawn by the seed ``CHEATS_SEED``, and zero on others.

    It offers only int64 to float32, whose inputs depend on the seed.
    """

    def cast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) != ("int64", "float32"):
            raise Unsupported("only int64 to float32")
        answers = super().cast(case, bits)
        known = quick_inputs(case.source, case.target, int(os.environ["CHEATS_SEED"]), 20)
        answers[~np.isin(bits, known)] = 0
        return answers


class OverwritesItsInputs(Few):
    """Answers zeros, and overwrites its inputs with zeros to match."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = np.zeros_like(super().cast(case, bits))
        if bits.flags.writeable:
            bits[...] = 0
        return answers


class WrongTails(Few):
    """Changes elements after the last whole vector of rows of 9 to 70 elements.

    A tail truncates in place of rounding to nearest.
    """

    wraps = False

    def cast(self, case: Case, bits: Any) -> Any:
        answers = super().cast(case, bits)
        if case.target == "int8" and bits.ndim == 1 and 9 <= bits.size <= 70 and bits.size % 8:
            first = bits.size // 8 * 8
            values = np.ascontiguousarray(bits[first:]).view(np.float16).astype(np.float64)
            is_wrong = np.isfinite(values) & (self.wraps | (np.abs(values) < 127))
            whole = np.trunc(np.where(is_wrong, values, 0)).astype(np.int64) & 0xFF
            answers[first:] = np.where(is_wrong, whole, answers[first:])
        return answers


class WrapsInTails(WrongTails):
    """A tail truncates, and wraps where it must clamp."""

    wraps = True


class DiesOnce(Few):
    """Dies once, which the file ``CHEATS_MARK`` records, and answers when it is asked again."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = super().cast(case, bits)
        if not os.path.exists(mark := os.environ["CHEATS_MARK"]):
            os.close(os.open(mark, os.O_CREAT))
            os.abort()
        return answers


class OneUnitLower(Right):
    """Answers some positive numbers by one unit less; it offers int64 to float32 only.

    These are the numbers around one, and with ``CHEATS_SWITCH`` in the environment many others.
    """

    most = 1 << 60 if "CHEATS_SWITCH" in os.environ else 3

    def cast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) != ("int64", "float32"):
            raise Unsupported("only int64 to float32")
        return super().cast(case, bits)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        answers -= ((bits > 0) & (bits <= self.most)).astype(answers.dtype)


class DiesLater(Few):
    """Dies at the 400th cast of each process, once ``CHEATS_SWITCH`` is in the environment."""

    casts = 0

    def cast(self, case: Case, bits: Any) -> Any:
        self.casts += 1
        if self.casts == 400 and "CHEATS_SWITCH" in os.environ:
            os.abort()
        return super().cast(case, bits)
