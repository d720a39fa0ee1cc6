"""Ctrl-C and SIGTERM: both end a command in order, with one line and an exit code of their own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from typer.core import TyperGroup

from conformance.commands.streams import OutputClosedError

INTERRUPTED, TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, so that everything which ends in order on Ctrl-C does so here too.

    The text of either interrupt is advice to the user, or empty.
    """


class CarriedInterrupt(Exception):
    """Carries an interrupt through typer, which would exit without a message."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        is_terminated = isinstance(interrupt, Terminated)
        super().__init__(f"{'terminated' if is_terminated else 'interrupted'}{interrupt}")
        self.exit_code = TERMINATED if is_terminated else INTERRUPTED


class StoppableGroup(TyperGroup):
    """Runs a command so that typer, which would exit itself, sees no interrupt or closed pipe."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; raise StoppedError or OutputClosedError if it is stopped."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise CarriedInterrupt(interrupt) from None
        except BrokenPipeError:
            raise OutputClosedError from None


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and Terminated on SIGTERM within the block.

    An ignored signal stays ignored. The earlier handlers are restored at the end of the block.
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
