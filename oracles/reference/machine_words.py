"""The 64-bit words that kernels compute on, as numpy arrays or as Python integers.

A kernel uses only and, or, xor, shift, add, subtract, compare and ``select``. Arithmetic is modulo
2**64, and a shift by 64 or more gives 0, as in numpy and in SMT-LIB.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH = 64
MASK = (1 << WIDTH) - 1


def select_arrays(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return, per element, ``then`` where the condition holds and ``otherwise`` elsewhere."""
    # From two Python integers numpy would make signed ones, which words from 2**63 on do not fit.
    return np.where(condition, np.asarray(then, np.uint64), np.asarray(otherwise, np.uint64))


def select_words(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` as a word if the condition holds, else ``otherwise``."""
    return Word(int(then)) if condition else Word(int(otherwise))


class Word:
    """A 64-bit word, held in a Python integer."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: int) -> None:
        self.value = value & MASK

    def __int__(self) -> int:
        return self.value

    def __and__(self, other: Word | int) -> Word:
        return Word(self.value & int(other))

    def __or__(self, other: Word | int) -> Word:
        return Word(self.value | int(other))

    def __xor__(self, other: Word | int) -> Word:
        return Word(self.value ^ int(other))

    def __add__(self, other: Word | int) -> Word:
        return Word(self.value + int(other))

    __radd__ = __add__

    def __sub__(self, other: Word | int) -> Word:
        return Word(self.value - int(other))

    def __rsub__(self, other: int) -> Word:
        return Word(other - self.value)

    def __lshift__(self, other: Word | int) -> Word:
        return Word(self.value << int(other)) if int(other) < WIDTH else Word(0)

    def __rshift__(self, other: Word | int) -> Word:
        return Word(self.value >> int(other)) if int(other) < WIDTH else Word(0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word | int) and self.value == int(other)

    def __lt__(self, other: Word | int) -> bool:
        return self.value < int(other)

    def __gt__(self, other: Word | int) -> bool:
        return self.value > int(other)
