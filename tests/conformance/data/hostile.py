"""Adapters that do one thing wrong each, and otherwise answer as the reference does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oracles.protocol import Unsupported
from oracles.reference.reference_oracle import Reference
from specs.cases import Case

RIGHT = Reference()


class Honest:
    """Right in all it does; it claims nothing in particular, hence everything."""

    name = "hostile"
    version = "0"

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)


class TooShort(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)[:-1]


class OtherStorage(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits).astype(np.uint64)


class Flat(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits).reshape(-1)


class Silent(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return None


class Listing(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits).tolist()


class TooWide(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        answer[answer == 0xF] = 0x1F
        return answer


class BoolsOfAllOnes(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) * np.uint8(0xFF)


class NumbersAsTexts(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return np.arange(bits.size).astype(object).reshape(bits.shape)


class Raises(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise ValueError("boom")


class RaisesLines(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise ValueError("\n  the first line\nthe second\n" + "x" * 5000)


class RaisesEmpty(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise RuntimeError


class Exits(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        sys.exit(0)


class Skips(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        pytest.skip("not today")


class TurnsMatrices(Honest):
    """Right on a row; on a matrix the elements come back in another order."""

    def cast(self, case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        return answer[::-1].copy() if bits.ndim == 2 else answer


class HidesItsShape(Honest):
    """A slip that is only not recommended, and a shape that is lost."""

    def cast(self, case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        if bits.size > 1000:
            answer[bits == 0x8000] = 0
        return np.atleast_1d(answer)


class OneBuffer(Honest):
    """All answers of a size live in one buffer."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}

    def cast(self, case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        buffer = self.buffers.setdefault(case.target, np.empty(1 << 16, answer.dtype))
        view = buffer[: answer.size].reshape(answer.shape)
        view[...] = answer
        if answer.size > 1000:
            view[0] = 0x55  # where the next answers will be written
        return view


class Masked(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return np.ma.masked_array(RIGHT.cast(case, bits))


class SaysSurrogates(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise ValueError("no file caf\udce9")


class ClaimsNonsense(Honest):
    claims = ("onnx_cast",)


class ClaimsNoVersion(Honest):
    claims = ("pypto-cast", "cinn-cast:tvn")


class ClaimsText(Honest):
    claims = "onnx-cast"


class LimitZero(Honest):
    row_limits = (0,)


class LimitBelowZero(Honest):
    row_limits = (1, -1)


class LimitTooLarge(Honest):
    row_limits = (1 << 40,)


class LimitIsNoInteger(Honest):
    row_limits = (1024.5,)


class LimitIsTrue(Honest):
    row_limits = (True,)


class LimitIsText(Honest):
    row_limits = "65536"


class LimitIsNumber(Honest):
    row_limits = 65536


class ManyLimits(Honest):
    row_limits = range(1, 1 << 24)


class LimitsRaise(Honest):
    @property
    def row_limits(self) -> Any:
        raise OSError("no device\nat all")


class GoodLimits(Honest):
    row_limits = (1, np.int32(65536), 1 << 24)


class ExitsAtOnce(Honest):
    def __init__(self) -> None:
        sys.exit(0)


class Declines(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        raise Unsupported("no such kernel\nand more")


class RaisesOnOne(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if (bits == 0x1234).any():
            raise ValueError("cannot do this one")
        return RIGHT.cast(case, bits)


class RaisesOnce(Honest):
    def __init__(self) -> None:
        self.calls = 0

    def cast(self, case: Case, bits: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise ValueError("warming up")
        return RIGHT.cast(case, bits)


class RaisesOnNan(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if ((bits & 0x7FFF) > 0x7C00).any():
            raise ValueError("NaN has no integer")
        return RIGHT.cast(case, bits)


class RaisesOnNanAndLies(RaisesOnNan):
    def cast(self, case: Case, bits: Any) -> Any:
        answer = super().cast(case, bits)
        answer[bits == 0x3C00] = 2
        return answer


class OddOnNan(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return np.where(bits & 0x7FFF > 0x7C00, 0x55, RIGHT.cast(case, bits)).astype(np.uint8)


class Mutates(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        bits[...] = 0
        return answer


class MutatesThenAnswers(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        bits[...] = 0
        return RIGHT.cast(case, bits)


class GivesItsInputBack(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        return bits


class Chatters(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        print("chatter on stdout")
        return RIGHT.cast(case, bits)


class WrongInLine(Honest):
    """Wrong in one dimension, and no others are offered."""

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim != 1:
            raise Unsupported("only one dimension")
        return RIGHT.cast(case, bits) ^ 1


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


class ClaimsNothing(WrongInLine):
    claims = ()

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ 1


class TiesAway(Honest):
    """Wrong for float16 to float8e5m2 where the dropped bits are just half of a step."""

    def cast(self, case: Case, bits: Any) -> Any:
        tie = (bits & 0x1FF == 0x80) & (bits & 0x7FFF < 0x7C00)
        return np.where(tie, bits >> 8, RIGHT.cast(case, bits)).astype(np.uint8) + tie


class LosesMinusZero(Honest):
    """Departs from what is recommended for float16 to bfloat16."""

    def cast(self, case: Case, bits: Any) -> Any:
        return np.where(bits == 0x8000, 0, RIGHT.cast(case, bits)).astype(np.uint16)


@dataclass
class Dataclass:
    """Dataclasses with written-out annotations need their module to be known."""

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
