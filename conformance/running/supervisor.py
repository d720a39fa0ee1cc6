"""Worker processes: starts them, exchanges messages with them, and notices when they end."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from oracles.backend.resource_limits import (
    collect_garbage_rarely,
    die_with_parent,
    keep_freed_memory,
)
from oracles.backend.supervised_process import describe_exit
from specs.errors import CastigateError

SECONDS_BETWEEN_SILENCE_CHECKS = 1.0
MOST_STARTS = 10
"""The most attempts to start a process that is killed as it starts."""

Sent = TypeVar("Sent")


class ChildProcess(Protocol):
    """A process that was started here, or by another process on our behalf."""

    @property
    def exitcode(self) -> int | None:
        """The exit code, once ``join`` has returned; negative for the signal that ended it."""
        ...

    def kill(self) -> None:
        """Kill the process."""

    def join(self) -> None:
        """Wait until the process has ended."""


Start = Callable[..., tuple[ChildProcess, Connection]]
"""Starts a process that calls ``work(link, *arguments)``; returns it and our end of the link."""


class WorkerDiedError(Exception):
    """A worker's process has ended, or cannot be reached any more."""


@dataclass(frozen=True)
class WorkerFailure:
    """A message of a worker that cannot go on: what is wrong, in one line."""

    message: str
    is_of_loading: bool = False
    """Whether this process could not load the backend, though another one may have."""


@dataclass(eq=False)
class Worker(Generic[Sent]):
    """A child process, the connection to it, and the tasks that it has, in their order."""

    process: ChildProcess
    link: Connection
    silence_limit: float = math.inf
    """Seconds without a message after which a busy worker is killed."""
    is_ready: bool = False
    """Whether the process has started up, so that it can be given a task."""
    tasks: deque[Sent] = field(default_factory=deque)
    last_heard: float = field(default_factory=monotonic)
    was_silent: bool = False
    """Whether it was killed because it sent nothing for too long."""

    @property
    def ending(self) -> str:
        """How the process has ended, as a predicate such as ``was ended by SIGSEGV``."""
        return describe_exit(self.process.exitcode)

    @property
    def was_killed(self) -> bool:
        """Whether something outside Castigate has killed the process."""
        return not self.was_silent and self.process.exitcode == -signal.SIGKILL

    def add(self, task: Sent) -> None:
        """Add a task; if the worker was idle, the limit of its silence counts from now on."""
        if not self.tasks:
            self.last_heard = monotonic()
        self.tasks.append(task)

    def send(self, message: object) -> None:
        """Send a message; raise WorkerDiedError if the process has ended."""
        try:
            self.link.send(message)
        except OSError:
            self.process.join()
            raise WorkerDiedError from None

    def receive(self, seconds: float | None = None) -> object:
        """Return the next message; raise WorkerDiedError if the process has ended.

        A process that sends nothing for ``seconds`` is killed; with None it may be silent without
        limit.
        """
        try:
            if seconds is not None and not self.link.poll(seconds):
                self.kill_as_silent()
            self.last_heard = monotonic()
            return self.link.recv()
        except (EOFError, OSError):
            self.process.join()
            raise WorkerDiedError from None

    def check_silence(self) -> None:
        """Kill the process if it has sent nothing for ``silence_limit`` seconds."""
        if monotonic() - self.last_heard > self.silence_limit:
            self.kill_as_silent()

    def kill_as_silent(self) -> None:
        """Kill the process, and note that this was for its silence."""
        self.was_silent = True
        self.process.kill()

    def end(self) -> None:
        """Kill the process if it still runs, and release what belongs to it."""
        self.process.kill()
        self.process.join()
        self.link.close()


def spawn(work: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Connection]:
    """Start a process that calls ``work(link, *arguments)``; return it and our end of the link."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *arguments), daemon=True)
    with without_ctrl_c():
        _start(process)
    there.close()
    return process, here


def _start(process: SpawnProcess) -> None:
    """Start a process, and start it again if it is killed before it has read its arguments.

    Only Python 3.14 and later raise an error in that case, that of a closed pipe. Raises
    CastigateError after ``MOST_STARTS`` attempts.
    """
    for _ in range(MOST_STARTS):
        with suppress(BrokenPipeError):
            process.start()
            return
    raise CastigateError(
        f"{MOST_STARTS} processes in turn were ended before they began; see what kills them"
    )


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Ignore Ctrl-C within the block, so that a child started there ignores it from its first line.

    Only the main thread can do so; in any other thread, as on a cluster, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def live_with_parent() -> None:
    """Set up this process as a worker: it ignores Ctrl-C, and ends when its parent process ends.

    It also keeps memory that it has freed, and collects garbage rarely.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    keep_freed_memory()
    collect_garbage_rarely()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
