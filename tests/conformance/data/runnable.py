"""Backends for whole runs: quick to load, and right, wrong or deadly as their names say.

Only casts from float32 to float16 and from unsigned numbers to bool are swept at the tier full.
``RUNNABLE_PAUSE`` in the environment is slept at every call of a sweep; answers stay the same.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from conformance.families.reference import Reference
from oracles.protocol import Unsupported
from oracles.reference.sweep_inputs import Sample
from specs.cases import Case

RIGHT = Reference()
PAUSE = float(os.environ.get("RUNNABLE_PAUSE", "0"))
ONE = 0x3F800000
RANGES = {"float32": (0x3FFFFF00, 0x40000FFF), "uint32": (0x7FFFFF00, 0x80000FFF)}
"""Patterns about 2.0 and about 2^31, on either side of a border between two tasks."""
NORMAL_HALVES = ((0x38800000, 0x477FFFFF), (0xB8800000, 0xC77FFFFF))


def is_swept(case: Case) -> bool:
    pair = (case.source, case.target)
    return pair in {("float32", "float16"), ("uint32", "bool"), ("uint64", "bool")}


class Right:
    """Always answers rightly."""

    name = "right"
    version = "1"
    wrong: tuple[tuple[int, int], ...] = ()
    """Sweeps call ``spoil`` only for chunks that overlap these ranges, which saves time."""

    def road(self, case: Case) -> str:
        return f"{case.source} to {case.target}" if is_swept(case) else ""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        self.spoil(case, bits, answers)
        return answers

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        right = RIGHT.bind(case, bits) if case.target != "bool" else lambda: (bits != 0).view("u1")

        def call() -> Any:
            if PAUSE:
                time.sleep(PAUSE)
            self.before(case, bits)
            answers = right()
            # The patterns of a sweep are in rising order.
            if any(bits[-1] >= first and bits[0] <= last for first, last in self.wrong):
                self.spoil(case, bits, answers)
            return answers

        return call

    def before(self, case: Case, bits: Any) -> None:
        """Called before a chunk of a sweep is answered."""

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        """Called with right answers, to make some of them wrong."""


class OnePattern(Right):
    """Wrong on one pattern of each source."""

    wrong = ((ONE, ONE),)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source in RANGES:
            answers[bits == ONE] ^= 1


class WrongByte(Right):
    """Wrong on the byte 3."""

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source == "uint8":
            answers[bits == 3] ^= 1


class WrongText(Right):
    """Wrong on the text ``-1``."""

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source == "string":
            answers[(bits == "-1").astype(bool)] = 7


class WrongRange(Right):
    """Wrong on one range of each source."""

    wrong = tuple(RANGES.values())

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source in RANGES:
            first, last = RANGES[case.source]
            answers[(bits >= first) & (bits <= last)] ^= 1


class KnownRange(Right):
    """Answers false to the numbers about 2^31, some of which the tier quick asks."""

    wrong = (RANGES["uint32"],)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if (case.source, case.target) == ("uint32", "bool"):
            for first, last in self.wrong:
                answers[(bits >= first) & (bits <= last)] = 0


class HiddenRange(KnownRange):
    """Also answers false to five other numbers, none of which the tier quick asks."""

    wrong = (*KnownRange.wrong, (0x12345670, 0x12345674))


class ReplacesTheJudge(WrongRange):
    """Patches the sweep's checks in the process that loads it, so that they find nothing wrong."""

    def __init__(self) -> None:
        from conformance.sweep import engine

        engine.RulingCheck.look = lambda *_: 0  # type: ignore[method-assign]
        engine.RulingCheck.look_at_once = lambda *_: 0  # type: ignore[method-assign]


class TiesAway(Right):
    """Rounds ties away from zero where float16 is normal."""

    wrong = NORMAL_HALVES

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if (case.source, case.target) == ("float32", "float16"):
            exponent = bits >> 23 & 0xFF
            answers[(bits & 0x3FFF == 0x1000) & (exponent > 112) & (exponent < 143)] += 1


class ManyRuns(Right):
    """Answers false to every 1024th of the first 2^27 numbers."""

    wrong = ((0, (1 << 27) - 1),)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source == "uint32":
            answers[(bits & 0x3FF == 0x3FF) & (bits < 1 << 27)] = 0


class FewSamples(Right):
    """Reduces the sample of 64-bit inputs that sweeps visit, and answers false to a part of it."""

    wrong = ((0, (1 << 64) - 1),)

    def __init__(self) -> None:
        Sample.__init__.__defaults__ = (1 << 20,)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        if case.source == "uint64":
            answers[(bits & 3 == 3) | (bits == 1)] = 0


class Halves(Right):
    """Offers float32 to float16 alone."""

    def cast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) != ("float32", "float16"):
            raise Unsupported("only float32 to float16")
        return super().cast(case, bits)


class HalvesTiesAway(Halves, TiesAway):
    """Offers the same, and rounds ties away from zero."""


class Other(Right):
    """Reports another version."""

    version = "2"


class Deadly(Right):
    """Ends its process when it is asked for int4 to int2."""

    def cast(self, case: Case, bits: Any) -> Any:
        if (case.source, case.target) == ("int4", "int2"):
            self.die()
        return super().cast(case, bits)

    def die(self) -> None:
        """Ends the process."""


class Segfaults(Deadly):
    def die(self) -> None:
        ctypes.string_at(0)


class Aborts(Deadly):
    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGABRT)


class IsAlwaysKilled(Deadly):
    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Leaves(Deadly):
    def die(self) -> None:
        os._exit(3)


class Hangs(Deadly):
    def die(self) -> None:
        while True:
            time.sleep(60)


class HangsAndHoldsTheLock(Deadly):
    """Hangs and holds the GIL, so that no other thread of the process can run."""

    def die(self) -> None:
        while True:
            ctypes.PyDLL(None).sleep(600)


class DiesOnce(Deadly):
    """Dies once; the file ``RUNNABLE_MARK`` records that it has died."""

    def die(self) -> None:
        mark = os.environ["RUNNABLE_MARK"]
        if not os.path.exists(mark):
            os.close(os.open(mark, os.O_CREAT))
            os.kill(os.getpid(), signal.SIGSEGV)


class DiesInASweep(Right):
    """Dies in the sixth of sixteen tasks of a sweep, and in no other."""

    def before(self, case: Case, bits: Any) -> None:
        if case.source == "uint32" and int(bits[0]) >> 28 == 5:
            os.kill(os.getpid(), signal.SIGSEGV)


class HangsInASweep(Right):
    def before(self, case: Case, bits: Any) -> None:
        if case.source == "uint32" and int(bits[0]) >> 28 == 5:
            time.sleep(600)


class DiesOnAnotherRoad(Right):
    """Dies in one of two modes that share a road, and refuses to be swept."""

    def road(self, case: Case) -> str:
        return f"{case.source} to {case.target}"

    def cast(self, case: Case, bits: Any) -> Any:
        if case.mode.get("saturate") == "0":
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().cast(case, bits)

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        raise Unsupported("no sweep")


class TooLong(Right):
    """Answers int4 to int2, and every chunk of a sweep, with one element too many."""

    def cast(self, case: Case, bits: Any) -> Any:
        answers = super().cast(case, bits)
        longer = (case.source, case.target) == ("int4", "int2")
        return answers.repeat(2).reshape(2, *bits.shape) if longer else answers

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        return lambda: (bits != 0).view("u1").repeat(2)


class Raises(Right):
    """Raises in one shape at the quick tier, and answers the sweep wrong once."""

    wrong = ((0x12345678, 0x12345678),)

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 2:
            raise ValueError("no matrices")
        return super().cast(case, bits)

    def spoil(self, case: Case, bits: Any, answers: Any) -> None:
        answers[bits == 0x12345678] ^= 1


class Declines(Right):
    """Offers nothing."""

    def road(self, case: Case) -> str:
        raise Unsupported("nothing is offered")

    def cast(self, case: Case, bits: Any) -> Any:
        return self.road(case)


class SegfaultsLoading(Right):
    def __init__(self) -> None:
        ctypes.string_at(0)


class LeavesLoading(Right):
    def __init__(self) -> None:
        os._exit(3)


class ExitsLoading(Right):
    def __init__(self) -> None:
        sys.exit(3)


class HangsLoading(Right):
    def __init__(self) -> None:
        time.sleep(600)


class SegfaultsWhenItsVersionIsAsked(Right):
    @property
    def version(self) -> str:  # type: ignore[override]
        ctypes.string_at(0)
        return "1"


class RaisesWhenItsVersionIsAsked(Right):
    @property
    def version(self) -> str:  # type: ignore[override]
        raise OSError("no device\nat all")


class HasNumbersForVersion(Right):
    version = (1, 2)  # type: ignore[assignment]


class IsAnotherInEachProcess(Right):
    """Casts slowly, so that a second process gets tasks before the first has done them all."""

    version = str(os.getpid())

    def cast(self, case: Case, bits: Any) -> Any:
        time.sleep(0.05)
        return super().cast(case, bits)


class ExitsOnItsRoad(Right):
    def road(self, case: Case) -> str:
        sys.exit(3)


class InterruptsOnItsRoad(Right):
    def road(self, case: Case) -> str:
        raise KeyboardInterrupt


class AbortsItsJudge(Right):
    """Aborts its parent process when it is asked for a road."""

    def road(self, case: Case) -> str:
        os.kill(os.getppid(), signal.SIGABRT)
        return ""


class SegfaultsOnItsRoad(Right):
    def road(self, case: Case) -> str:
        ctypes.string_at(0)
        return ""
