"""Supervises a child process: exchanges frames with timeouts, reads its stderr, and ends it.

Of what the child writes to stderr, a bounded part is kept, in which the reason for a crash is
found.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from threading import Timer
from time import monotonic

from oracles.backend.frames import (
    MAX_PAYLOAD,
    Frame,
    FrameError,
    Pieces,
    TruncatedFrame,
    read_frame,
)
from oracles.backend.remote_errors import SILENT

MAX_REASON = 200
"""The most characters of a crash reason."""
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[-:./]\d+)+|\d{4,}")
"""Matches addresses, times and numbers as long as process ids: they differ from crash to crash."""

FATAL = re.compile(
    r"""
    F\d{4,8}\ [^\]]*\]\ (?P<glog>.+)            # glog, absl: F1123 03:16:42.323884 18963 a.h:681]
  | [-\d]+\ [:.\d]+:\ F\ [^\]]*\]\ (?P<tsl>.+)  # TensorFlow: 2025-11-23 03:16:42.323884: F a.h:681]
  | what\(\):\s*(?P<what>.+)                    # the C++ runtime: an uncaught exception
  | (?P<llvm>LLVM\ ERROR:.+)
    """,
    re.VERBOSE,
)
"""Matches a line in which a library gives its reason before it aborts; a group has the reason."""

TRACE = re.compile(
    r"""
    \*{3}\ .*                                   # glog, absl: *** Check failure stack trace: ***
  | @\s+0x.*                                    # frames of glog, absl
  | \#\d+\s.*                                   # frames of LLVM, sanitizers, gdb
  | \S*\([^()]*\)\s?\[0x[0-9a-f]+\]             # frames of glibc
  | .*\(most\ recent\ call\ (?:first|last)\):   # Python, paddle
  | File\ ".*                                   # frames of Python
  | Extension\ modules:.*
  | PLEASE\ submit\ a\ bug\ report.* | Stack\ dump.* | \d+\.\s+Program\ arguments:.*
  | (?:note|stack\ backtrace):.*                # Rust
  | \d+:\ .* | at\ .*:\d+(?::\d+)?              # frames of Rust
  | \W+                                         # rulers, carets
    """,
    re.VERBOSE,
)
"""Matches a line of a stack trace."""

NAMED_ERROR = re.compile(
    r"""
    (?:Uncaught\ |Exception\ in\ thread\ \S+\ )?           # node, Java
    [\w.$]*(?:Error|Exception)(?:\ \[\w+\])?:\ .+
  | panic:\ .+                                             # Go
    """,
    re.VERBOSE,
)
"""Matches a line in which a program in another language names the error that ended it."""

TRACEBACK = "Traceback (most recent call last):"


def crash_reason(stderr: bytes) -> str:
    """Return the line of stderr that says why a process died; empty if no line says it.

    That is a library's fatal message, else a Python exception, else the first line that names an
    error, else the last line above the stack trace. The line is cut to ``MAX_REASON``, and its
    addresses, times and long numbers become ellipses.
    """
    lines = ["".join(filter(str.isprintable, line)) for line in _decoded_lines(stderr)]
    reason = (
        _fatal_message(lines)
        or _python_exception(lines)
        or _named_error(lines)
        or _line_above_trace(lines)
    )
    return VARYING.sub("…", reason)[:MAX_REASON]


def _decoded_lines(stderr: bytes) -> list[str]:
    text = stderr.decode("utf-8", "backslashreplace")
    return [line for line in text.splitlines() if line.strip()]


def _fatal_message(lines: list[str]) -> str:
    for line in lines:
        if match := FATAL.fullmatch(line.strip()):
            message: str = next(filter(None, match.groups()))
            return message
    return ""


def _python_exception(lines: list[str]) -> str:
    """Return the first unindented line below the last traceback; empty if there is none."""
    if TRACEBACK not in lines:
        return ""
    below = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
    return next((line for line in below if not line[0].isspace()), "")


def _named_error(lines: list[str]) -> str:
    return next((line.strip() for line in lines if NAMED_ERROR.fullmatch(line.strip())), "")


def _line_above_trace(lines: list[str]) -> str:
    """Return the last line above the first stack trace.

    If nothing is above it, return the last line outside of traces, else the first line, else an
    empty text.
    """
    stripped = [line.strip() for line in lines]
    above = list(takewhile(lambda line: not TRACE.fullmatch(line), stripped))
    outside = [line for line in stripped if not TRACE.fullmatch(line)]
    return next(iter([*above[-1:], *outside[-1:], *stripped[:1]]), "")


def describe_exit(code: int | None) -> str:
    """Describe how a process ended; ``code`` is None, an exit code or minus a signal's number."""
    if code is None or code >= 0:
        return f"ended by itself with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def describe_timeout(seconds: float) -> str:
    """Describe a process that did not answer within ``seconds``."""
    return f"{SILENT} {seconds:g} s"


def describe_invalid_reply(error: FrameError) -> str:
    """Describe a reply that could not be decoded."""
    return f"sent an invalid reply: {error}"


PIPE_CAPACITY = 1 << 20
READ_BYTES = 1 << 18
STDERR_TAIL = 1 << 16
"""Bytes of stderr that are kept: a crash's reason stands above its trace, which may be long."""
POLL_MILLISECONDS = 100
"""How often to check for the exit of a process whose children keep its pipes open."""
MAX_SECONDS_PER_POLL = 0.2
"""The most that one poll counts for a timeout: if it lasts longer, this process was suspended."""
SECONDS_TO_EXIT = 2.0
"""How long a process that closed its pipe is given to exit, for its exit code to be reported."""
SECONDS_OF_LAST_WORDS = 0.5
"""How long to wait for the stderr of children that outlive a process, such as a log's filter."""


class ProcessFailed(Exception):
    """The process died, closed its pipe or sent an invalid reply; the message says which."""

    was_killed = False
    """Whether SIGKILL ended the process, which the kernel sends for lack of memory."""


class ProcessTimeout(Exception):
    """The process did not answer in time; the message says how long that was."""


class SupervisedProcess:
    """A child process that answers each request frame by a reply frame."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        on_stderr: Callable[[bytes], None] | None = None,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        """Start a command; raise OSError if that fails.

        Without ``on_stderr``, the command gets the descriptors of two pipes, for requests and
        replies, as its last arguments. With ``on_stderr``, these pipes are its stdin and stdout,
        and ``on_stderr`` gets everything that it writes to stderr. The process inherits the
        ``descriptors``.
        """
        child_requests, self._requests = os.pipe()
        self._replies, child_replies = os.pipe()
        self._stderr, child_stderr = os.pipe()
        parent_ends = (self._requests, self._replies, self._stderr)
        child_ends = (child_requests, child_replies)
        self._on_stderr = on_stderr
        try:
            self._popen = subprocess.Popen(
                command if on_stderr else [*command, *map(str, child_ends)],
                stdin=child_requests if on_stderr else subprocess.DEVNULL,
                stdout=child_replies if on_stderr else child_stderr,
                stderr=child_stderr,
                env=environment,
                pass_fds=descriptors if on_stderr else (*child_ends, *descriptors),
                start_new_session=True,
            )
        except OSError:
            for pipe in parent_ends:
                os.close(pipe)
            raise
        finally:
            for pipe in (*child_ends, child_stderr):
                os.close(pipe)
        for pipe in parent_ends:
            os.set_blocking(pipe, False)
        _enlarge(self._requests, self._replies)
        self._polls = {
            self._requests: _poll(self._requests, select.POLLOUT, self._stderr),
            self._replies: _poll(self._replies, select.POLLIN, self._stderr),
        }
        self._stderr_tail = b""
        self._stderr_is_open = True
        self._has_replied = False
        self._unread = b""
        self._timeout = self._remaining = self._last_poll = 0.0
        self.kill = weakref.finalize(self, _kill, self._popen, parent_ends)
        """Kills the process and all of its children that are still in its process group."""

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._popen.poll() is None

    def request(self, frame: Pieces, seconds: float, max_payload: int = MAX_PAYLOAD) -> Frame:
        """Send a frame and return the reply, both within ``seconds``.

        Raises ProcessFailed or ProcessTimeout, as ``send`` and ``receive`` do.
        """
        self.send(frame, seconds)
        return self._receive(max_payload)

    def send(self, frame: Pieces, seconds: float) -> None:
        """Send a frame without waiting for the reply; raise ProcessFailed or ProcessTimeout."""
        self._read_stderr()
        # A process that dies before its first reply may have written the reason already.
        if self._has_replied:
            self._stderr_tail = b""
        self._start_timeout(seconds)
        for piece in frame:
            self._write(memoryview(piece))

    def receive(self, seconds: float, max_payload: int = MAX_PAYLOAD) -> Frame:
        """Return the next frame of the process, with at most ``max_payload`` bytes of payload.

        Raises ProcessFailed if the process ends, or if the frame is malformed or larger, and
        ProcessTimeout if it does not come within ``seconds``.
        """
        self._start_timeout(seconds)
        return self._receive(max_payload)

    def wait_for_exit(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the process to exit, and read what it writes to stderr."""
        deadline = monotonic() + seconds
        self._drain_stderr(seconds, until_exit=True)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(0.0, deadline - monotonic()))

    def _start_timeout(self, seconds: float) -> None:
        self._timeout = self._remaining = seconds
        self._last_poll = monotonic()

    def _receive(self, max_payload: int) -> Frame:
        try:
            frame = read_frame(self._read, max_payload)
        except TruncatedFrame as error:
            raise self._failure(describe_invalid_reply(error)) from None
        except FrameError as error:
            # Ignore a later exit status so that the message is deterministic.
            raise ProcessFailed(describe_invalid_reply(error)) from None
        if frame is None:
            raise self._failure("closed its pipe")
        self._has_replied = True
        return frame

    def _failure(self, if_alive: str) -> ProcessFailed:
        """Return an error on how the process ended; if it does not exit soon, with ``if_alive``."""
        self.wait_for_exit(SECONDS_TO_EXIT)
        code = self._popen.poll()
        how = if_alive if code is None else describe_exit(code)
        if code is not None:
            self._drain_stderr(SECONDS_OF_LAST_WORDS)
        reason = crash_reason(self._stderr_tail)
        failure = ProcessFailed(f"{how} ({reason})" if reason else how)
        failure.was_killed = code == -signal.SIGKILL
        return failure

    def _write(self, rest: memoryview) -> None:
        while rest:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                if not self._wait(self._requests):
                    raise self._failure("closed its pipe") from None
            except BrokenPipeError:
                raise self._failure("closed its pipe") from None

    def _read(self, count: int) -> bytes:
        """Return one to ``count`` bytes from the process; none if no more can come."""
        if not self._unread:
            while True:
                try:
                    self._unread = os.read(self._replies, max(count, READ_BYTES))
                    break
                except BlockingIOError:
                    if not self._wait(self._replies):
                        return b""
        content, self._unread = self._unread[:count], self._unread[count:]
        return content

    def _wait(self, pipe: int) -> bool:
        """Wait until a pipe is ready; return False if the process has exited and it never will be.

        Reads stderr meanwhile. Raises ProcessTimeout when the remaining time is used up.
        """
        poll = self._polls[pipe]
        while True:
            now = monotonic()
            # While this process was suspended, the child had no chance to answer either.
            self._remaining -= min(now - self._last_poll, MAX_SECONDS_PER_POLL)
            self._last_poll = now
            if self._remaining <= 0:
                raise ProcessTimeout(describe_timeout(self._timeout))
            ready = dict(poll.poll(min(1000 * self._remaining, POLL_MILLISECONDS)))
            if pipe in ready:
                return True
            if self._stderr in ready:
                self._read_stderr()
            if not self.is_alive:
                # What the process wrote before it died is still in the pipe.
                return pipe in dict(poll.poll(0))

    def _drain_stderr(self, seconds: float, *, until_exit: bool = False) -> None:
        """Read stderr to its end, but for at most ``seconds``: children may go on writing.

        With ``until_exit``, stop once the process has exited and all that it wrote is read.
        """
        deadline = monotonic() + seconds
        poll = select.poll()
        poll.register(self._stderr, select.POLLIN)
        while self._stderr_is_open:
            left = max(0.0, deadline - monotonic())
            has_exited = until_exit and not self.is_alive
            ready = poll.poll(0 if has_exited else min(1000 * left, POLL_MILLISECONDS))
            if ready:
                self._read_stderr()
            if not left or (has_exited and not ready):
                return

    def _read_stderr(self) -> None:
        """Read what is in the stderr pipe now; keep the last ``STDERR_TAIL`` bytes of all."""
        try:
            content = os.read(self._stderr, READ_BYTES)
        except BlockingIOError:
            return
        if not content and self._stderr_is_open:
            self._stderr_is_open = False
            for poll in self._polls.values():
                poll.unregister(self._stderr)
        self._stderr_tail = (self._stderr_tail + content)[-STDERR_TAIL:]
        if self._on_stderr is not None:
            self._on_stderr(content)


def _poll(pipe: int, event: int, stderr: int) -> select.poll:
    poll = select.poll()
    poll.register(pipe, event)
    poll.register(stderr, select.POLLIN)
    return poll


def _enlarge(*pipes: int) -> None:
    """Enlarge the pipes' buffers, where the system can: it saves context switches."""
    with suppress(AttributeError, OSError):
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_CAPACITY)


def _kill(popen: subprocess.Popen[bytes], pipes: tuple[int, ...]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
    for pipe in pipes:
        os.close(pipe)


SILENT_SECONDS = 10.0
"""Seconds after which a line tells the user that a backend is still starting."""


@contextmanager
def startup_notice(words: str, startup_seconds: float, advice: str = "") -> Iterator[None]:
    """Print a line to stderr if the block lasts longer than ``SILENT_SECONDS``.

    The block is a backend's start. The line has ``words``, these seconds, the limit
    ``startup_seconds`` and ``advice``.
    """

    def tell() -> None:
        seconds = f"{SILENT_SECONDS:g} s; waiting for up to {startup_seconds:g} s"
        print(f"{words} {seconds}{advice}", file=sys.stderr, flush=True)

    notice = Timer(SILENT_SECONDS, tell)
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


MAX_BYTES = 1 << 16
"""Bytes kept of a log's beginning, and as many of its end."""


@dataclass
class StderrLog:
    """The beginning and the end of what a backend's processes have written to stderr.

    ``size`` counts all bytes written, kept or not.
    """

    size: int = 0
    first: bytes = b""
    last: bytes = b""

    def append(self, written: bytes) -> None:
        """Add what a process has written."""
        self.size += len(written)
        room = MAX_BYTES - len(self.first)
        self.first += written[:room]
        self.last = (self.last + written[room:])[-MAX_BYTES:]

    def drain(self) -> bytes:
        """Return the log's content and empty the log."""
        content = self.content
        self.size, self.first, self.last = 0, b"", b""
        return content

    @property
    def content(self) -> bytes:
        """The whole log or, if it is too long, both ends with a line on the bytes left out."""
        left_out = self.size - len(self.first) - len(self.last)
        between = b"\n[%d bytes are left out]\n" % left_out if left_out else b""
        return self.first + between + self.last
