"""How commands end: by Ctrl-C or SIGTERM in order, and by a closed pipe with an error of our own.

Ctrl-C and SIGTERM have one line and an exit code of their own. Output is plain text.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import Any

from typer.core import TyperGroup

from specs.plain_text import plain_text

INTERRUPTED, TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, so that what ends in order on Ctrl-C does so on SIGTERM too.

    The text of either interrupt is advice to the user, or empty.
    """


class CarriedInterrupt(Exception):
    """Carries an interrupt through typer, which would exit without a message.

    Its text is the message, and ``exit_code`` the code of the command.
    """

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        is_terminated = isinstance(interrupt, Terminated)
        super().__init__(f"{'terminated' if is_terminated else 'interrupted'}{interrupt}")
        self.exit_code = TERMINATED if is_terminated else INTERRUPTED


class StoppableGroup(TyperGroup):
    """A group of commands that hides an interrupt and a closed pipe from typer.

    On either, typer would exit by itself.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command; raise CarriedInterrupt if it is interrupted.

        Raises OutputClosedError if the reader of its output has closed it.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise CarriedInterrupt(interrupt) from None
        except BrokenPipeError:
            raise OutputClosedError from None


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and Terminated on SIGTERM within the block.

    An ignored signal stays ignored; outside the main thread nothing changes. The earlier handlers
    are restored at the end of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raising = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _raise_terminated}
    before = {number: signal.getsignal(number) for number in raising}
    handled = [number for number in raising if before[number] is not signal.SIG_IGN]
    try:
        for number in handled:
            signal.signal(number, raising[number])
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _raise_terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated


STANDARD_STREAMS = (0, 1, 2)


class OutputClosedError(Exception):
    """The reader of the output has closed it; typer would exit with 1 on a BrokenPipeError."""


class PlainStream(TextIOWrapper):
    """Writes texts to a binary stream, with characters that are unsafe for a terminal escaped."""

    def write(self, text: str, /) -> int:
        """Write a text; raise OutputClosedError if the reader has closed the output."""
        try:
            return super().write(plain_text(text))
        except BrokenPipeError:
            raise OutputClosedError from None

    def flush(self) -> None:
        """Pass on what was written; raise OutputClosedError if the reader has closed the output."""
        try:
            super().flush()
        except BrokenPipeError:
            raise OutputClosedError from None


def open_closed_streams() -> None:
    """Open the null device in place of a standard stream that was closed, as in ``2>&-``.

    Otherwise the next file that is opened would get the stream's descriptor, and what a framework
    prints would be written into it. ``sys.stdin`` stays None, so that ``judge`` can say what is
    missing.
    """
    for descriptor in STANDARD_STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free descriptor, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = _null_stream()
    if sys.stderr is None:
        sys.stderr = _null_stream()


def _null_stream() -> TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")


def stderr_is_open() -> bool:
    """Write what is left for stderr; return False if its reader has closed it.

    What cannot be written goes to the null device: Python would try again when it ends, and exit
    with 120.
    """
    try:
        sys.stderr.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        return not isinstance(error, BrokenPipeError)
    return True


@contextmanager
def plain_stdout() -> Iterator[None]:
    """Print through a PlainStream within the block, and write all at its end.

    A ``sys.stdout`` that is no TextIOWrapper stays. Raises OutputClosedError if the reader has
    closed the output.
    """
    real = sys.stdout
    if not isinstance(real, TextIOWrapper):
        yield
        return
    real.flush()
    stream = PlainStream(real.buffer, "utf-8", "backslashreplace", line_buffering=real.isatty())
    sys.stdout = stream
    try:
        yield
        stream.flush()
    except (OSError, OutputClosedError):
        # What is left goes to the null device, so that no later flush fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), real.fileno())
        raise
    finally:
        sys.stdout = real
        # Otherwise it would close the real stream when it is collected.
        stream.detach()
