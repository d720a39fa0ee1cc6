"""Adapters that answer as the reference does, except at some places of some tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.families.reference import Reference
from oracles.backend.remote_errors import ProcessDied
from oracles.protocol import Unsupported
from specs.cases import Case

RIGHT = Reference()
Mask = Callable[[Any], Any]
"""Takes a tensor; returns True, False, or which of its elements are selected."""


class Honest:
    name = "placed"
    version = "0"

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)


def specified(bits: Any) -> Any:
    """Select the patterns of float32 whose answers documents specify: all but NaNs."""
    return (bits & 0x7FFFFFFF) <= 0x7F800000


def nan(bits: Any) -> Any:
    return ~specified(bits)


def placed(
    where: Mask,
    inputs: Mask = specified,
    change: Callable[[Any], Any] = lambda answers: answers ^ 1,
    error: Exception | None = None,
    **members: Any,
) -> type[Honest]:
    """Return an adapter that changes the answers to elements that ``where`` and ``inputs`` select.

    If there is an ``error``, the adapter raises it for each tensor without dimensions.
    """

    def cast(self: Honest, case: Case, bits: Any) -> Any:
        if error is not None and bits.ndim == 0:
            raise error
        answers = RIGHT.cast(case, bits)
        wrong = np.broadcast_to(where(bits), answers.shape) & inputs(bits)
        return np.where(wrong, change(answers), answers).astype(answers.dtype)

    return type("Placed", (Honest,), {"cast": cast, **members})


def tail(bits: Any) -> Any:
    """Select the elements after the last whole vector."""
    return (np.arange(bits.size) >= bits.size - bits.size % 8).reshape(bits.shape)


def is_reversed(bits: Any) -> Any:
    return any(stride < 0 for stride in bits.strides)


def is_scalar(bits: Any) -> Any:
    return bits.ndim == 0


def everywhere(bits: Any) -> Any:
    return True


def nowhere(bits: Any) -> Any:
    return False


Tail, OpenTail = placed(tail), placed(tail, nan)
Compiles = placed(tail, compiles_shapes=True)
ClaimsNothing = placed(tail, claims=())
LosesNans = placed(tail, nan, lambda answers: answers & 0)
"""Answers zero to NaNs in the tail of a row."""
Position = placed(
    lambda bits: (np.arange(bits.size) == 13).reshape(bits.shape) & (bits.size < 1000)
)
Length = placed(lambda bits: bits.shape == (37,))
Long = placed(lambda bits: bits.shape == (1023,))
Large = placed(lambda bits: bits.size > 1 << 16)
Unaligned = placed(lambda bits: bool(bits.ctypes.data % 16) and bits.flags.c_contiguous)
Reversed, OpenReversed = placed(is_reversed), placed(is_reversed, nan)
Scalar, OpenScalar = placed(is_scalar), placed(is_scalar, nan)
Everywhere, OpenEverywhere = placed(everywhere), placed(everywhere, nan)
WrongInRankFive = placed(lambda bits: bits.ndim == 5, everywhere, compiles_shapes=True)
"""Errs in rank 5, in which few pairs are asked if the adapter compiles per shape."""

NO_RANK = ValueError("no such rank")
RaisesOnScalars = placed(nowhere, error=NO_RANK)
RaisesOnScalarsUnclaimed = placed(nowhere, error=NO_RANK, claims=())
LacksScalars = placed(nowhere, error=Unsupported("no such rank"))
RaisesLater = placed(tail, error=NO_RANK)
"""Errs in the tail of a row, and raises for a tensor without dimensions, which is asked later."""
OpenRaisesLater = placed(tail, nan, error=NO_RANK)
DiesOfScalars = placed(nowhere, error=ProcessDied("killed by signal 11 (SIGSEGV)"))


class IgnoresStrides(Honest):
    """Reads its input as if it were contiguous."""

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim and bits.size and min(bits.strides) >= bits.itemsize:
            packed = np.empty(bits.shape, bits.dtype).strides
            bits = np.lib.stride_tricks.as_strided(bits, bits.shape, packed).copy()
        return RIGHT.cast(case, bits)


class Declines(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise Unsupported("no such kernel")


class Moody(Honest):
    """Errs in every other call if the tensor has less than 10 elements."""

    def __init__(self) -> None:
        self.asked = 0

    def cast(self, case: Case, bits: Any) -> Any:
        self.asked += 1
        answers = RIGHT.cast(case, bits)
        is_wrong = bits.size < 10 and self.asked % 2
        return np.where(specified(bits) & bool(is_wrong), answers ^ 1, answers)


class MiddleRows(Honest):
    """Answers zeros in rows of 9 to 199 elements."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        is_wrong = case.source == "float32" and 9 <= bits.size <= 199
        return np.zeros_like(answers) if is_wrong else answers
