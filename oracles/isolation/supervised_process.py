"""A served process as its parent has it: asked within a time, heard on stderr, and ended."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import subprocess
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from time import monotonic

from oracles.isolation.frames import MOST_PAYLOAD, BrokenOff, Frame, FrameError, read_frame

LONGEST = 200
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[-:./]\d+)+|\d{4,}")
"""Addresses, times, and numbers as long as those of processes."""

FATAL = re.compile(
    r"""
    F\d{4,8}\ [^\]]*\]\ (?P<glog>.+)            # glog, absl: F1123 03:16:42.323884 18963 a.h:681]
  | [-\d]+\ [:.\d]+:\ F\ [^\]]*\]\ (?P<tsl>.+)  # TensorFlow: 2025-11-23 03:16:42.323884: F a.h:681]
  | what\(\):\s*(?P<what>.+)                    # the C++ runtime: an uncaught exception
  | (?P<llvm>LLVM\ ERROR:.+)
    """,
    re.VERBOSE,
)
"""Lines that a library prints to give its reason before it aborts."""

TRACE = re.compile(
    r"""
    \*{3}\ .*                                   # glog, absl: *** Check failure stack trace: ***
  | @\s+0x.*                                    # and its frames
  | \#\d+\s.*                                   # frames of LLVM, sanitizers, gdb
  | \S*\([^()]*\)\s?\[0x[0-9a-f]+\]             # frames of glibc
  | .*\(most\ recent\ call\ (?:first|last)\):   # Python, paddle
  | File\ ".*                                   # frames of Python
  | Extension\ modules:.*
  | PLEASE\ submit\ a\ bug\ report.* | Stack\ dump.* | \d+\.\s+Program\ arguments:.*
  | note:\ run\ with\ .*                        # Rust
  | \W+                                         # rulers, carets
    """,
    re.VERBOSE,
)
"""Lines of a stack trace."""


TRACEBACK = "Traceback (most recent call last):"


def crash_text(said: bytes) -> str:
    """The line that says why a process died, without what differs from one death to the next.

    That is a library's fatal message, else a Python exception, else the last line above the trace.
    """
    lines = ["".join(filter(str.isprintable, line)) for line in _decoded(said)]
    text = _fatal_message(lines) or _python_exception(lines) or _above_the_trace(lines)
    return VARYING.sub("…", text)[:LONGEST]


def _decoded(said: bytes) -> list[str]:
    return [line for line in said.decode("utf-8", "backslashreplace").splitlines() if line.strip()]


def _fatal_message(lines: list[str]) -> str:
    for line in lines:
        if found := FATAL.fullmatch(line.strip()):
            message: str = next(filter(None, found.groups()))
            return message
    return ""


def _python_exception(lines: list[str]) -> str:
    """The first line below the last traceback: frames and their code are indented."""
    if TRACEBACK not in lines:
        return ""
    below = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
    return next((line for line in below if not line[0].isspace()), "")


def _above_the_trace(lines: list[str]) -> str:
    """The last line above a trace; of a trace with nothing above it, the last line that is none."""
    stripped = [line.strip() for line in lines]
    above = list(takewhile(lambda line: not TRACE.fullmatch(line), stripped))
    others = [line for line in stripped if not TRACE.fullmatch(line)]
    return next(iter([*above[-1:], *others[-1:], *stripped[:1]]), "")


def end_in_words(code: int | None) -> str:
    """How a process has ended, by its exit code."""
    if code is None or code >= 0:
        return f"ended by itself with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def silence_in_words(seconds: float) -> str:
    """What to say of a process that was waited for in vain."""
    return f"was silent for {seconds:g} s"


def nonsense_in_words(error: Exception) -> str:
    """What to say of a process that answers by no answer."""
    return f"wrote something else than answers: {error}"


ROOM_IN_PIPE = 1 << 20
READ_AT_ONCE = 1 << 18
KEPT_OF_STDERR = 1 << 16
"""Bytes: the reason of a death stands above its stack trace, which may be long."""
MILLISECONDS_BETWEEN_LOOKS = 100
"""How often it is looked whether a process lives whose children keep its pipes open."""
MOST_SECONDS_BETWEEN_LOOKS = 0.2
"""More than that between two looks is no silence: the machine was paused, or had no time for us."""
SECONDS_TO_END = 2.0
MOST_READS = 16


class Gone(Exception):
    """The process has died, or cannot be spoken with; the message says how that came."""

    was_killed = False
    """Whether somebody else has ended the process."""


class Late(Exception):
    """The process did not answer in time; the message says how long that was."""


class Process:
    """A process that answers each frame by another."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        keep: Callable[[bytes], None] | None = None,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        """Start a command; the pipes that it reads and writes are appended as two numbers.

        With ``keep``, which is given all that it says on stderr, they are its stdin and stdout.
        """
        theirs_to_read, self._questions = os.pipe()
        self._answers, theirs_to_write = os.pipe()
        self._stderr, theirs_to_say = os.pipe()
        mine = (self._questions, self._answers, self._stderr)
        theirs = (theirs_to_read, theirs_to_write)
        self._keep = keep
        try:
            self._popen = subprocess.Popen(
                command if keep else [*command, *map(str, theirs)],
                stdin=theirs_to_read if keep else subprocess.DEVNULL,
                stdout=theirs_to_write if keep else theirs_to_say,
                stderr=theirs_to_say,
                env=environment,
                pass_fds=descriptors if keep else theirs,
                start_new_session=True,
            )
        except OSError:
            for pipe in mine:
                os.close(pipe)
            raise
        finally:
            for pipe in (*theirs, theirs_to_say):
                os.close(pipe)
        for pipe in mine:
            os.set_blocking(pipe, False)
        _widen(self._questions, self._answers)
        self._polls = {
            pipe: _poll(pipe, event, self._stderr)
            for pipe, event in (
                (self._questions, select.POLLOUT),
                (self._answers, select.POLLIN),
            )
        }
        self._said = b""
        self._known = b""
        self._seconds = self._left = self._looked = 0.0
        self.end = weakref.finalize(self, _end, self._popen, mine)
        """Ends the process and all of its children that have stayed with it."""

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._popen.poll() is None

    def ask(
        self, pieces: Iterable[bytes | bytearray], seconds: float, most: int = MOST_PAYLOAD
    ) -> Frame:
        """Send a frame and give the one that answers it, of at most so many bytes of payload."""
        self.tell(pieces, seconds)
        return self._frame(most)

    def tell(self, pieces: Iterable[bytes | bytearray], seconds: float) -> None:
        """Send a frame, and wait for no answer."""
        self._hear_stderr()
        self._said = b""
        self._begin(seconds)
        for piece in pieces:
            self._write(memoryview(piece))

    def hear(self, seconds: float, most: int = MOST_PAYLOAD) -> Frame:
        """The frame that comes without being asked for, or was asked for before."""
        self._begin(seconds)
        return self._frame(most)

    def _begin(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._looked = monotonic()

    def _frame(self, most: int) -> Frame:
        try:
            frame = read_frame(self._read, most)
        except BrokenOff as error:
            self.wait_for_end(SECONDS_TO_END)
            raise self._gone(nonsense_in_words(error)) from None
        except FrameError as error:
            # What becomes of it later is no matter: the same is to be said each time.
            raise Gone(nonsense_in_words(error)) from None
        if frame is None:
            self.wait_for_end(SECONDS_TO_END)
            raise self._gone("closed its pipe")
        return frame

    def _gone(self, otherwise: str) -> Gone:
        """How the process has ended, or what it did that is worse."""
        code = self._popen.poll()
        how = otherwise if code is None else end_in_words(code)
        for _ in range(MOST_READS):  # it may have children that go on talking
            self._hear_stderr()
        said = crash_text(self._said)
        gone = Gone(f"{how} ({said})" if said else how)
        gone.was_killed = code == -signal.SIGKILL
        return gone

    def wait_for_end(self, seconds: float) -> None:
        """Give it a moment to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        self._hear_stderr()

    def _write(self, rest: memoryview) -> None:
        while rest:
            try:
                rest = rest[os.write(self._questions, rest) :]
            except BlockingIOError:
                self._wait(self._questions)
            except BrokenPipeError:
                self.wait_for_end(SECONDS_TO_END)
                raise self._gone("closed its pipe") from None

    def _read(self, count: int) -> bytes:
        if not self._known:
            while True:
                try:
                    self._known = os.read(self._answers, max(count, READ_AT_ONCE))
                    break
                except BlockingIOError:
                    if not self._wait(self._answers):
                        return b""
        found, self._known = self._known[:count], self._known[count:]
        return found

    def _wait(self, pipe: int) -> bool:
        """Wait for a pipe and hear what is said meanwhile; false where nobody is there any more."""
        poll = self._polls[pipe]
        while True:
            now = monotonic()
            # Where we were not run ourselves, the process had no chance to answer either.
            self._left -= min(now - self._looked, MOST_SECONDS_BETWEEN_LOOKS)
            self._looked = now
            if self._left <= 0:
                raise Late(silence_in_words(self._seconds))
            ready = dict(poll.poll(min(1000 * self._left, MILLISECONDS_BETWEEN_LOOKS)))
            if pipe in ready:
                return True
            if self._stderr in ready and not self._hear_stderr():
                for each in self._polls.values():
                    each.unregister(self._stderr)
            if not self.is_alive:
                # What it has written before it died is still to be read.
                return pipe in dict(poll.poll(0))

    def _hear_stderr(self) -> bool:
        """Keep the end of what is said; false where no more can come."""
        try:
            said = os.read(self._stderr, READ_AT_ONCE)
        except BlockingIOError:
            return True
        self._said = (self._said + said)[-KEPT_OF_STDERR:]
        if self._keep is not None:
            self._keep(said)
        return bool(said)


def _poll(pipe: int, event: int, stderr: int) -> select.poll:
    poll = select.poll()
    poll.register(pipe, event)
    poll.register(stderr, select.POLLIN)
    return poll


def _widen(*pipes: int) -> None:
    """More room in a pipe means fewer turns of reader and writer; less is no harm."""
    with suppress(AttributeError, OSError):
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, ROOM_IN_PIPE)


def _end(popen: subprocess.Popen[bytes], pipes: tuple[int, ...]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
    for pipe in pipes:
        os.close(pipe)
