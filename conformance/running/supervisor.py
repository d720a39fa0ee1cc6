"""Worker processes: starts them, hands them tasks one at a time, and notices when they end.

Serves the process pool of ``castigate run`` and the helpers of the pytest plugin. Each of them
decides for itself which task is next, what a message means, and whether a dead worker is replaced.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from oracles.isolation.resource_limits import (
    collect_garbage_rarely,
    die_with_parent,
    keep_freed_memory,
)
from oracles.isolation.supervised_process import describe_exit

SECONDS_BETWEEN_SILENCE_CHECKS = 1.0

Task = TypeVar("Task")


class ChildProcess(Protocol):
    """A process that was started here, or by another process on our behalf."""

    @property
    def exitcode(self) -> int | None:
        """The exit code, once ``join`` has returned; a signal as a negative number."""
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
class Failure:
    """A message of a worker that cannot go on: what is wrong, in one line."""

    message: str


@dataclass(eq=False)
class Worker(Generic[Task]):
    """A child process, the connection to it, and the task that it works on."""

    process: ChildProcess
    link: Connection
    silence_limit: float = math.inf
    """Seconds without a message after which a busy worker is killed."""
    is_ready: bool = False
    """Whether the process has started up, so that it can be given a task."""
    task: Task | None = None
    last_heard: float = field(default_factory=monotonic)
    was_silent: bool = False
    """Whether it was killed because it sent nothing for too long."""

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a task."""
        return self.is_ready and self.task is None

    @property
    def ending(self) -> str:
        """How the process has ended, as a predicate."""
        return describe_exit(self.process.exitcode)

    @property
    def was_killed(self) -> bool:
        """Whether something outside Castigate has killed the process."""
        return not self.was_silent and self.process.exitcode == -signal.SIGKILL

    def send(self, message: object) -> None:
        """Send a message; raise WorkerDiedError if the process has ended."""
        try:
            self.link.send(message)
        except OSError:
            self.process.join()
            raise WorkerDiedError from None

    def receive(self, seconds: float | None = None) -> object:
        """Return the next message; raise WorkerDiedError if the process has ended.

        A process that sends nothing for so many seconds is killed.
        """
        try:
            if seconds is not None and not self.link.poll(seconds):
                self.kill_as_silent()
            self.last_heard = monotonic()
            return self.link.recv()
        except (EOFError, OSError):
            self.process.join()
            raise WorkerDiedError from None

    def kill_as_silent(self) -> None:
        """End a process that has sent nothing for too long."""
        self.was_silent = True
        self.process.kill()

    def end(self) -> None:
        """Kill the process if it still runs, and release what belongs to it."""
        self.process.kill()
        self.process.join()
        self.link.close()


AnyWorker = TypeVar("AnyWorker", bound=Worker[Any])


ItsWorker = TypeVar("ItsWorker", bound=Worker[Any], contravariant=True)


class Client(Protocol[ItsWorker]):
    """Supplies the tasks of workers, and handles what they send."""

    def feed(self, worker: ItsWorker) -> None:
        """Give an idle worker a task, if there is one."""

    def receive(self, worker: ItsWorker, message: object) -> None:
        """Handle a message of a worker."""

    def died(self, worker: ItsWorker) -> None:
        """Handle the end of a worker's process."""


def supervise(
    workers: list[AnyWorker],
    client: Client[AnyWorker],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Feed idle workers and pass on what busy ones send, until all are idle or the time is over.

    The client may add, replace and remove workers of the list in each call.
    """
    while not is_over():
        for worker in [worker for worker in workers if worker.is_idle]:
            client.feed(worker)
        busy = {worker.link: worker for worker in workers if not worker.is_idle}
        if not busy:
            return
        for link in wait(list(busy), timeout=SECONDS_BETWEEN_SILENCE_CHECKS):
            worker = busy[link]  # type: ignore[index]
            try:
                message = worker.receive()
            except WorkerDiedError:
                client.died(worker)
            else:
                client.receive(worker, message)
        for worker in busy.values():
            if monotonic() - worker.last_heard > worker.silence_limit:
                worker.kill_as_silent()


def spawn(work: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Connection]:
    """Start a process that calls ``work(link, *arguments)``; return it and our end of the link."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *arguments), daemon=True)
    with without_ctrl_c():
        process.start()
    there.close()
    return process, here


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Leave Ctrl-C to the parent; a child inherits that, even before its first line runs.

    Only the main thread can do so. On a cluster another thread starts processes.
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
    """In a worker's process: ignore Ctrl-C, and end when the parent ends."""
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
