"""Adapters that do one thing wrong each, and otherwise answer as the reference does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.families.reference import Reference
from oracles.protocol import Unsupported
from specs.cases import Case

RIGHT = Reference()


class Honest:
    """Always answers rightly; it declares no claims, hence it claims every document."""

    name = "hostile"
    version = "0"

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)


def adapter(cast: Callable[[Case, Any], Any]) -> type[Honest]:
    """Return an adapter that casts by a function."""
    return type("Adapter", (Honest,), {"cast": lambda self, case, bits: cast(case, bits)})


def changing(change: Callable[[Any, Any], Any]) -> type[Honest]:
    """Return an adapter whose answers are ``change(inputs, right answers)``."""
    return adapter(lambda case, bits: change(bits, RIGHT.cast(case, bits)))


def raising(error: BaseException, when: Callable[[Any], Any] = lambda bits: True) -> type[Honest]:
    """Return an adapter that raises an error for the tensors that ``when`` selects."""

    def cast(case: Case, bits: Any) -> Any:
        if when(bits):
            raise error
        return RIGHT.cast(case, bits)

    return adapter(cast)


def skip(case: Case, bits: Any) -> Any:
    import pytest  # No other adapter needs its import, a fifth of the time to load one.

    pytest.skip("not today")


def has_nan(bits: Any) -> Any:
    return (bits & 0x7FFF > 0x7C00).any()


def is_tie(bits: Any) -> Any:
    return (bits & 0x1FF == 0x80) & (bits & 0x7FFF < 0x7C00)


TooShort = changing(lambda bits, answer: answer[:-1])
OtherStorage = changing(lambda bits, answer: answer.astype(np.uint64))
SwapsBytes = changing(lambda bits, answer: answer.astype(">u2"))
Flat = changing(lambda bits, answer: answer.reshape(-1))
Silent = adapter(lambda case, bits: None)
Listing = changing(lambda bits, answer: answer.tolist())
TooWide = changing(lambda bits, answer: np.where(answer == 0xF, 0x1F, answer).astype(np.uint8))
Scalars = changing(lambda bits, answer: answer[()])
WideScalars = changing(lambda bits, answer: answer if bits.ndim else np.array(0xFF, np.uint8))
BoolsOfAllOnes = changing(lambda bits, answer: answer * np.uint8(0xFF))
NumbersAsTexts = adapter(lambda case, bits: np.arange(bits.size).astype(object).reshape(bits.shape))
Masked = changing(lambda bits, answer: np.ma.masked_array(answer))
GivesItsInputBack = adapter(lambda case, bits: bits)
TurnsMatrices = changing(lambda bits, answer: answer[::-1].copy() if bits.ndim == 2 else answer)
OddOnNan = changing(
    lambda bits, answer: np.where(bits & 0x7FFF > 0x7C00, 0x55, answer).astype(np.uint8)
)
TiesAway = changing(
    lambda bits, answer: np.where(is_tie(bits), bits >> 8, answer).astype(np.uint8) + is_tie(bits)
)
"""Wrong for float16 to float8e5m2 where the dropped bits are exactly half of a step."""
LosesMinusZero = changing(
    lambda bits, answer: np.where(bits == 0x8000, 0, answer).astype(np.uint16)
)
"""Departs from what is recommended for float16 to bfloat16."""

Raises = raising(ValueError("boom"))
RaisesLines = raising(ValueError("\n  the first line\nthe second\n" + "x" * 5000))
RaisesEmpty = raising(RuntimeError())
SaysSurrogates = raising(ValueError("no file caf\udce9"))
Exits = raising(SystemExit(0))
Skips = adapter(skip)
Declines = raising(Unsupported("no such kernel\nand more"))
RaisesOnOne = raising(ValueError("cannot do this one"), lambda bits: (bits == 0x1234).any())
RaisesOnNan = raising(ValueError("NaN has no integer"), has_nan)


class QuantizesOnly(Honest):
    """Right, and quantizes as the libraries of block formats do, which cast nothing."""

    def cast(self, case: Case, bits: Any) -> Any:
        raise Unsupported("casts nothing")

    def quantize(self, case: Case, tensors: Any) -> Any:
        return RIGHT.quantize(case, tensors)


class RaisesOnNanAndLies(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if has_nan(bits):
            raise ValueError("NaN has no integer")
        return np.where(bits == 0x3C00, 2, super().cast(case, bits)).astype(np.uint8)


class RaisesOnce(Honest):
    def __init__(self) -> None:
        self.calls = 0

    def cast(self, case: Case, bits: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise ValueError("warming up")
        return super().cast(case, bits)


class HidesItsShape(Honest):
    """Breaks a recommendation about -0 in long tensors, and loses the shape of scalars."""

    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        if bits.size > 1000:
            answer[bits == 0x8000] = 0
        return np.atleast_1d(answer)


class OneBuffer(Honest):
    """Returns all answers of a target dtype in one buffer."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}

    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        buffer = self.buffers.setdefault(case.target, np.empty(1 << 16, answer.dtype))
        view = buffer[: answer.size].reshape(answer.shape)
        view[...] = answer
        if answer.size > 1000:
            view[0] = 0x55  # where the next answers will be written
        return view


class Mutates(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        bits[...] = 0
        return answer


class MutatesThenAnswers(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        bits[...] = 0
        return super().cast(case, bits)


class Chatters(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        print("chatter on stdout")
        return super().cast(case, bits)


class WrongInLine(Honest):
    """Answers tensors of one dimension wrongly, and refuses all others."""

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim != 1:
            raise Unsupported("only one dimension")
        return super().cast(case, bits) ^ 1


class HidesBehindItsScript(WrongInLine):
    def reproduce(self, case: Case, bits: Any) -> str:
        raise Unsupported("no script today")


class ChangesOnTheWay(Honest):
    def identity(self, dtype: str, bits: Any) -> Any:
        return bits | 1 if dtype == "float16" else bits


class ChangesInPlace(Honest):
    def identity(self, dtype: str, bits: Any) -> Any:
        if dtype == "float16":
            bits |= 1
        return bits


class LosesItsWay(Honest):
    def identity(self, dtype: str, bits: Any) -> Any:
        raise KeyError(dtype)


class ClaimsNothing(Honest):
    claims = ()

    def cast(self, case: Case, bits: Any) -> Any:
        return super().cast(case, bits) ^ 1


class ClaimsNonsense(Honest):
    claims = ("onnx_cast",)


class ClaimsNoVersion(Honest):
    claims = ("pypto-cast", "cinn-cast:tvn")


class ClaimsText(Honest):
    claims = "onnx-cast"


class ExitsAtOnce(Honest):
    def __init__(self) -> None:
        sys.exit(0)


@dataclass
class Dataclass:
    """Has annotations that are strings, so ``dataclass`` looks its module up in ``sys.modules``."""

    name: str = "dataclass"
    version: str = "0"

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)


class NoCast:
    name = "no cast"
    version = "0"


class NoVersion:
    name = "no version"

    def cast(self, case: Case, bits: Any) -> Any:
        return bits


class Unmakeable(Honest):
    def __init__(self) -> None:
        raise OSError("no device\nat all")


class NeedsMore(Honest):
    def __init__(self, device: str) -> None:
        self.device = device


class NotHere(Honest):
    def __init__(self) -> None:
        raise Unsupported("not on this machine")


LIMITS = {
    "LimitZero": (0,),
    "LimitBelowZero": (1, -1),
    "LimitTooLarge": (1 << 40,),
    "LimitIsNoInteger": (1024.5,),
    "LimitIsTrue": (True,),
    "LimitIsText": "65536",
    "LimitIsNumber": 65536,
    "ManyLimits": range(1, 1 << 24),
    "GoodLimits": (1, np.int32(65536), 1 << 24),
}
globals().update(
    {name: type(name, (Honest,), {"row_limits": each}) for name, each in LIMITS.items()}
)


class LimitsRaise(Honest):
    @property
    def row_limits(self) -> Any:
        raise OSError("no device\nat all")
