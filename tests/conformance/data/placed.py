"""Adapters that answer as the reference does, but for some places of some tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.protocol import Unsupported
from oracles.reference.reference_oracle import Reference
from specs.cases import Case

RIGHT = Reference()


class Honest:
    name = "placed"
    version = "0"

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        here = np.broadcast_to(self.wrong(bits), answers.shape) & self.inputs(bits)
        return np.where(here, answers ^ 1, answers).astype(answers.dtype)

    def wrong(self, bits: Any) -> Any:
        """In which places answers change."""
        return False

    def inputs(self, bits: Any) -> Any:
        """Which inputs change: none of float32's NaNs."""
        return (bits & 0x7FFFFFFF) <= 0x7F800000


class Tail(Honest):
    def wrong(self, bits: Any) -> Any:
        body = bits.size - bits.size % 8
        return (np.arange(bits.size) >= body).reshape(bits.shape)


class Position(Honest):
    def wrong(self, bits: Any) -> Any:
        return (np.arange(bits.size) == 13).reshape(bits.shape) & (bits.size < 1000)


class Length(Honest):
    def wrong(self, bits: Any) -> Any:
        return bits.shape == (37,)


class Long(Honest):
    def wrong(self, bits: Any) -> Any:
        return bits.shape == (1023,)


class Large(Honest):
    def wrong(self, bits: Any) -> Any:
        return bits.size == (1 << 16) + 3


class Unaligned(Honest):
    def wrong(self, bits: Any) -> Any:
        return bool(bits.ctypes.data % 16) and bits.flags.c_contiguous


class Reversed(Honest):
    def wrong(self, bits: Any) -> Any:
        return any(stride < 0 for stride in bits.strides)


class Scalar(Honest):
    def wrong(self, bits: Any) -> Any:
        return bits.ndim == 0


class IgnoresStrides(Honest):
    """Reads its input as if the elements stood one after another."""

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim and bits.size and min(bits.strides) >= bits.itemsize:
            packed = np.empty(bits.shape, bits.dtype).strides
            bits = np.lib.stride_tricks.as_strided(bits, bits.shape, packed).copy()
        return RIGHT.cast(case, bits)


class OpenTail(Tail):
    def inputs(self, bits: Any) -> Any:
        return ~super().inputs(bits)


class OpenScalar(Scalar):
    def inputs(self, bits: Any) -> Any:
        return ~super().inputs(bits)


class OpenReversed(Reversed):
    def inputs(self, bits: Any) -> Any:
        return ~super().inputs(bits)


class Everywhere(Honest):
    def wrong(self, bits: Any) -> Any:
        return True


class OpenEverywhere(Everywhere):
    def inputs(self, bits: Any) -> Any:
        return ~super().inputs(bits)


class RaisesOnScalars(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise ValueError("no such rank")
        return RIGHT.cast(case, bits)


class RaisesOnScalarsUnclaimed(RaisesOnScalars):
    claims = ()


class LacksScalars(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise Unsupported("no such rank")
        return RIGHT.cast(case, bits)


class Declines(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise Unsupported("no such kernel")


class Moody(Honest):
    """Never the same twice, but for long rows."""

    def __init__(self) -> None:
        self.asked = 0

    def wrong(self, bits: Any) -> Any:
        self.asked += 1
        return bits.size < 10 and self.asked % 2


class Compiles(Tail):
    compiles_shapes = True


class ClaimsNothing(Tail):
    claims = ()


class AllNans(Honest):
    """Another NaN in the tail, which is a NaN all the same."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        tail = np.arange(bits.size).reshape(bits.shape) >= bits.size - bits.size % 8
        return np.where(tail & (answers & 0x7FFF > 0x7C00), answers ^ 1, answers)


class LosesNans(Honest):
    """A number instead of a NaN in the tail."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        tail = np.arange(bits.size).reshape(bits.shape) >= bits.size - bits.size % 8
        return np.where(tail & (answers & 0x7FFF > 0x7C00), answers.dtype.type(0), answers)


class MiddleRows(Honest):
    """Answers zeros in rows of 9 to 199 elements."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        return (
            np.zeros_like(answers)
            if case.source == "float32" and 9 <= bits.size <= 199
            else answers
        )
