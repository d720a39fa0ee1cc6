"""Backends that answer all inputs but one correctly; on that one they do what their names say.

``PLANTED_MARK`` in the environment names a file that outlives the process.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

PAIRS = {("int8", "int4"), ("uint32", "uint8")}
GUILTY = {"int8": 0x95, "uint32": 0x01234567}
PAIR = (0x10, 0x95)
MARK = Path(os.environ.get("PLANTED_MARK", os.devnull))
LIBC = ctypes.CDLL(None)
HALF_A_FRAME = b"CST1\x10\0\0\0\0\0\0\0\0\0\0\0{"
NOISE = b"\x80noise\n" * 30_000
BLOCK = 1 << 28
SEED = 5


def right(case: Any, bits: Any) -> Any:
    """Return the right answer; import the slow reference only for pairs that need it."""
    if (case.source, case.target) in PAIRS:
        return np.asarray(bits & (15 if case.target == "int4" else 255)).astype(np.uint8)
    from conformance.families.reference import Reference

    return Reference().cast(case, bits)


def die() -> NoReturn:
    ctypes.string_at(0)
    raise AssertionError


def sleep() -> NoReturn:
    while True:
        time.sleep(600)


def answering_pipe() -> int:
    """Return the pipe that the server writes its replies to."""
    return int(sys.argv[-1])


class Right:
    """Answers every input correctly."""

    name = "planted"
    version = "1"

    def __init__(self) -> None:
        self.calls = 0

    def cast(self, case: Any, bits: Any) -> Any:
        self.calls += 1
        pair = (case.source, case.target)
        if (bits == GUILTY.get(case.source, -1)).any() and pair in PAIRS:
            return self.guilty(case, bits)
        return right(case, bits)

    def guilty(self, case: Any, bits: Any) -> Any:
        """Answer inputs that include the guilty one."""
        return right(case, bits)


class Segfaults(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        die()


class Hangs(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        sleep()


class Half(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        return right(case, bits)[: len(bits) // 2]


class OtherStorage(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        return right(case, bits).astype(np.float32)


class BreaksOff(Right):
    """Sends half a frame and exits."""

    def guilty(self, case: Any, bits: Any) -> Any:
        os.write(answering_pipe(), HALF_A_FRAME)
        os._exit(0)


class BreaksOffAndStays(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        os.write(answering_pipe(), HALF_A_FRAME)
        os.close(answering_pipe())
        sleep()


class Floods(Right):
    """Writes noise to every open file descriptor."""

    def guilty(self, case: Any, bits: Any) -> Any:
        for number in range(256):
            with suppress(OSError):
                os.set_blocking(number, False)
                os.write(number, NOISE)
        return right(case, bits)


class SaysOtherWords(Right):
    """Sends a well-formed frame with a malformed error."""

    def guilty(self, case: Any, bits: Any) -> Any:
        frame = sys._getframe()
        while "request" not in frame.f_locals:
            assert frame.f_back is not None
            frame = frame.f_back
        number = frame.f_locals["request"].header["number"]
        header = b'{"number":%d,"raised":{"kinds":["\xed\xa0\x80","Exception"],"text":""}}' % number
        os.write(answering_pipe(), b"CST1" + len(header).to_bytes(4, "little") + bytes(8) + header)
        sleep()


class Allocates(Right):
    """Allocates and keeps memory until none is left."""

    def guilty(self, case: Any, bits: Any) -> Any:
        self.blocks = []
        while True:
            self.blocks.append(np.empty(BLOCK, np.uint8))


class AllocatesAndAborts(Allocates):
    def guilty(self, case: Any, bits: Any) -> Any:
        try:
            return super().guilty(case, bits)
        except MemoryError:
            os.abort()


class Leaks(Right):
    """Each answer uses up half of the memory."""

    blocks: list[Any] = []  # noqa: RUF012

    def cast(self, case: Any, bits: Any) -> Any:
        self.blocks.append(np.empty(5 * BLOCK // 2, np.uint8))
        return right(case, bits)


class Chatters(Right):
    """Prints much more than a pipe holds, on both streams."""

    def cast(self, case: Any, bits: Any) -> Any:
        for number in (1, 2):
            rest = memoryview(20 * NOISE)
            while rest:
                rest = rest[os.write(number, rest) :]
        print("a word", "on paper", flush=True)
        return right(case, bits)


class ChattersAndDies(Chatters):
    def cast(self, case: Any, bits: Any) -> Any:
        answers = super().cast(case, bits)
        if (bits == GUILTY["int8"]).any():
            print(
                "the last word is \x1b[31mred\x1b[0m at 0x7f1234567890", file=sys.stderr, flush=True
            )
            die()
        return answers


class DiesAtTheThird(Right):
    """Exits in its third call."""

    def cast(self, case: Any, bits: Any) -> Any:
        answers = super().cast(case, bits)
        if self.calls == 3:
            os._exit(7)
        return answers


class DiesAfterwards(Right):
    """Answers, and exits before the next request."""

    def cast(self, case: Any, bits: Any) -> Any:
        import threading

        threading.Timer(0.05, os._exit, (7,)).start()
        return right(case, bits)


class DiesOfTwo(Right):
    """Crashes only if two inputs come together."""

    def cast(self, case: Any, bits: Any) -> Any:
        if all((bits == each).any() for each in PAIR):
            die()
        return right(case, bits)


class DiesAtRandom(Right):
    """Crashes in about every third call, on any input; the mark counts the calls."""

    def cast(self, case: Any, bits: Any) -> Any:
        with MARK.open("a") as mark:
            mark.write(".")
        chance = random.Random(SEED)
        if [chance.random() for _ in range(MARK.stat().st_size)][-1] < 0.3:
            die()
        return right(case, bits)


class LoadsOnce(Segfaults):
    """Cannot be loaded a second time."""

    def __init__(self) -> None:
        super().__init__()
        if MARK.exists():
            raise OSError("the device is busy")
        MARK.touch()


class IsAnotherAfterwards(Segfaults):
    """Reports another version in every process; the mark counts the processes."""

    def __init__(self) -> None:
        super().__init__()
        with MARK.open("a") as mark:
            mark.write(".")
        self.version = str(MARK.stat().st_size)


class RaisesInParts(Right):
    """Crashes on all inputs together, and tries to exit when it is asked for a part."""

    def cast(self, case: Any, bits: Any) -> Any:
        if bits.size > 4:
            die()
        raise SystemExit(bits.size)


class ForksAndDies(Right):
    """Leaves a child behind that keeps all file descriptors open."""

    def guilty(self, case: Any, bits: Any) -> Any:
        child = LIBC.fork()
        if child == 0:
            sleep()
        MARK.write_text(str(child))
        die()


class ForksAndAnswers(ForksAndDies):
    def guilty(self, case: Any, bits: Any) -> Any:
        child = os.fork()
        if child == 0:
            sleep()
        MARK.write_text(str(child))
        return right(case, bits)


class AnswersTwice(Right):
    """Forks, so that two processes serve the same pipes."""

    def guilty(self, case: Any, bits: Any) -> Any:
        LIBC.fork()
        return right(case, bits)


class ClosesAll(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        os.closerange(0, 256)
        return right(case, bits)


class ClosesAllAndStays(Right):
    def guilty(self, case: Any, bits: Any) -> Any:
        os.closerange(0, 256)
        sleep()


class SpeaksWhileLoading(Right):
    def __init__(self) -> None:
        super().__init__()
        os.write(answering_pipe(), NOISE[:100])


class SaysNothingOfItself(Right):
    def __init__(self) -> None:
        super().__init__()
        os.write(answering_pipe(), b"CST1\x02\0\0\0" + bytes(8) + b"{}")


class ClosesAllWhileLoading(Right):
    def __init__(self) -> None:
        super().__init__()
        os.closerange(3, 256)


class LeavesWhileItsNameIsAsked(Right):
    @property
    def name(self) -> str:  # type: ignore[override]
        os._exit(5)


class Where(Segfaults):
    """Reports the environment that it runs in as its version."""

    version = sys.prefix


class SharesOdd(Right):
    """Reports that a bitcast shares the memory of its input if the first pattern is odd."""

    def bitcast(self, case: Any, bits: Any) -> Any:
        return bits

    def bitcast_shares_memory(self, case: Any, bits: Any) -> bool:
        return bool(bits[0] & 1)
