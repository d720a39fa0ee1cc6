"""How programs are spoken with: the wire protocol of docs/protocol.md."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from oracles.isolation import resource_limits
from oracles.isolation.backend_supervisor import Pieces, Understood
from oracles.isolation.frames import FrameError, packed, written
from oracles.isolation.launch_config import Home
from oracles.isolation.supervised_process import Gone, Late, Process
from oracles.protocol import Bits
from oracles.registry import EXEC
from oracles.wire.reply_checks import Expected
from oracles.wire.schema import (
    PROTOCOL,
    AskBitcast,
    AskBye,
    AskCast,
    AskHello,
    AskSweep,
    CaseWords,
    Error,
    Hello,
    Offer,
    Room,
    answer_of,
    in_one_line,
    words_of,
)
from oracles.wire.shared_memory import SharedMemory
from oracles.wire.stderr_log import Log
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.release import VERSION

SECONDS_TO_PART = 1.0
LAST = 1 << 40
"""The number of the last question."""
MOST_GROWTH = 64
"""Elements of the narrowest format that one of the widest has room for."""
ASKS: Mapping[str, tuple[type[AskCast] | type[AskBitcast], int]] = {
    "cast": (AskCast, 1),
    "bitcast": (AskBitcast, MOST_GROWTH),
}
"""The questions with elements, and how many times as many their answers may have."""


class WireTongue:
    """Speaks with a program by its stdin and stdout."""

    def __init__(self, backend: str, home: Home) -> None:
        self._backend = backend
        self._home = home
        self._command = command_of(backend)
        self._memory = SharedMemory() if hasattr(os, "memfd_create") else None
        self._uses_memory = False
        self.log = Log()

    def started(self) -> Process:
        """A process of the program, within its limits."""
        offered = (self._memory.descriptor,) if self._memory else ()
        # Its interpreter is ours, but finds nothing of ours: the program's environment is its own.
        launch = [sys.executable, "-I", "-S", resource_limits.__file__, str(self._home.memory)]
        return Process([*launch, *self._command], os.environ, self.log.keep, offered)

    def greeted(self, process: Process) -> Hello:
        """What the program says of itself."""
        offer = None
        if self._memory is not None:
            offer = Offer(descriptor=self._memory.descriptor, bytes=self._memory.size)
        asked = AskHello(number=1, castigate=VERSION, memory=offer)
        try:
            frame = process.ask(written(words_of(asked)), self._home.seconds_to_begin, 0)
            hello = answer_of(frame.header)
        except FrameError as error:
            raise self._refusal(f": its hello is {error}") from None
        if isinstance(hello, Error):
            raise self._refusal(f": it answers hello by an error: {in_one_line(hello.text)}")
        if not isinstance(hello, Hello) or hello.number != asked.number:
            raise self._refusal(": its first answer is no hello with the number of the question")
        if hello.protocol != PROTOCOL:
            wrong = f" speaks protocol {hello.protocol}; this Castigate speaks {PROTOCOL}"
            raise self._refusal(wrong)
        for dtype in hello.dtypes:
            try:
                format_named(dtype)
            except CastigateError as error:
                raise self._refusal(f": its hello names a dtype that is none: {error}") from None
        self._uses_memory = hello.memory and self._memory is not None
        return hello

    def asked(
        self, number: int, question: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> tuple[Pieces, int, Understood]:
        """A question as a frame."""
        case: Case = question["case"]
        words, expected = case_words(case), Expected(case.target)
        if question["ask"] == "sweep":
            first, count = question["first"], question["count"]
            expected = self._with_room(expected, number)
            sweep = AskSweep(
                number=number, case=words, first=first, count=count, memory=expected.room
            )
            return written(words_of(sweep)), expected.most(count), expected.value
        ask, growth = ASKS[question["ask"]]
        bits = arrays[""]
        _, payload = packed(arrays)
        asked = ask(number=number, case=words, shape=list(bits.shape))
        most = expected.most(growth * bits.size)
        return written(words_of(asked), payload), most, expected.value

    def parted(self, process: Process) -> None:
        """Say bye, and give the program a moment to end by itself."""
        with suppress(Gone, Late):
            process.ask(written(words_of(AskBye(number=LAST))), SECONDS_TO_PART, 0)
            process.wait_for_end(SECONDS_TO_PART)

    def _with_room(self, expected: Expected, number: int) -> Expected:
        """The same, where the answer may be written to memory: a sweep's always has room there."""
        if self._memory is None or not self._uses_memory:
            return expected
        offset, room = self._memory.slot(number)
        return Expected(expected.dtype, self._memory, Room(offset=offset, bytes=room))

    def _refusal(self, message: str) -> CastigateError:
        return CastigateError(f"backend `{self._backend}`{message}")


def command_of(backend: str) -> list[str]:
    """The words of a command; no shell ever sees them."""
    try:
        words = shlex.split(backend.removeprefix(EXEC))
    except ValueError as error:
        raise CastigateError(f"backend `{backend}`: {error}; quote it as for a shell") from None
    if not words:
        raise CastigateError(f"backend `{backend}`: write exec:COMMAND, for instance exec:./vendor")
    if shutil.which(words[0]) is None:
        wrong = "is no program that can be run" if os.path.exists(words[0]) else "does not exist"
        raise CastigateError(f"backend `{backend}`: {words[0]} {wrong}; give a program's path")
    return words


def case_words(case: Case) -> CaseWords:
    """A case as a header names it."""
    return CaseWords(
        id=case.id,
        document=case.document,
        version=case.version,
        source=case.source,
        target=case.target,
        mode=case.mode,
    )
