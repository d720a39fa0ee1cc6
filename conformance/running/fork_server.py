"""Forks worker processes off a process without threads, so that none imports everything again.

A second server, forked off the first, imports a framework too. Where a fork is not safe, processes
are spawned instead.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import Pipe, current_process, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from socket import recv_fds, send_fds, socket
from typing import Any

from conformance.running.supervisor import ChildProcess, Start, spawn
from oracles.backend.resource_limits import die_with_parent
from oracles.registry import BUILTINS

THREADS = Path("/proc/self/task")
OWN_PACKAGES = {"numpy", "pyarrow"}
"""Packages of backends that Castigate needs itself, and imports before any fork."""


@dataclass(frozen=True)
class _Fork:
    """A message: fork process ``number``, which calls ``work(link, *arguments)``.

    The descriptor of the process's end of the link follows this message.
    """

    number: int
    work: Callable[..., None]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class _Kill:
    """A message: kill process ``number``, if it still runs."""

    number: int


class ForkServer:
    """A process that forks worker processes, and the connection to it.

    The argument ``start`` starts the server process, which first imports ``package`` if one is
    named. Once the server has ended, ``fallback`` starts the workers in its place.
    """

    def __init__(self, start: Start, fallback: Start, package: str = "") -> None:
        self._fallback = fallback
        self._process, self._link = start(_serve, package)
        self._number = 0
        self._exit_codes: dict[int, int] = {}
        self._has_ended = False

    def start(self, work: Callable[..., None], *arguments: Any) -> tuple[ChildProcess, Connection]:
        """Start a process that calls ``work(link, *arguments)``; return it and the link to it.

        If the server has ended, ``fallback`` starts the process.
        """
        here, there = Pipe()
        self._number += 1
        try:
            self._send(_Fork(self._number, work, arguments), there)
        except OSError:
            here.close()
            return self._fallback(work, *arguments)
        finally:
            there.close()
        return ForkedProcess(self, self._number), here

    def kill(self, number: int) -> None:
        """Kill the process of this number; if the server has ended, the process has ended too."""
        with suppress(OSError):
            self._send(_Kill(number))

    def exit_code_of(self, number: int) -> int:
        """Wait until the process of this number ends; return its exit code.

        If the server ends first, so does the process, and the code is that of SIGKILL.
        """
        while number not in self._exit_codes and not self._has_ended:
            try:
                ended, code = self._link.recv()
                self._exit_codes[ended] = code
            except (EOFError, OSError):
                self._has_ended = True
        return self._exit_codes.get(number, -signal.SIGKILL)

    def close(self) -> None:
        """Kill the server, and so all processes that it has forked."""
        self._process.kill()
        self._process.join()
        self._has_ended = True
        self._link.close()

    def _send(self, message: _Fork | _Kill, there: Connection | None = None) -> None:
        self._link.send(message)
        if there is not None:
            with _socket_of(self._link) as channel:
                send_fds(channel, [b"F"], [there.fileno()])


class ForkedProcess:
    """A process that a fork server has started."""

    def __init__(self, server: ForkServer, number: int) -> None:
        self._server = server
        self._number = number
        self.exitcode: int | None = None

    def kill(self) -> None:
        """Kill the process, if it still runs."""
        if self.exitcode is None:
            self._server.kill(self._number)

    def join(self) -> None:
        """Wait until the process has ended, and set its ``exitcode``."""
        if self.exitcode is None:
            self.exitcode = self._server.exit_code_of(self._number)


@contextmanager
def fork_server() -> Iterator[ForkServer | None]:
    """Yield a server forked off this process, or None if that is not safe; end it afterwards."""
    if not _can_fork():
        yield None
        return
    server = ForkServer(_fork, spawn)
    try:
        yield server
    finally:
        server.close()


def _can_fork() -> bool:
    """Return whether a fork is safe: on Linux, one Python thread, no framework imported but numpy.

    Another thread may hold a lock that the fork would wait for.
    """
    frameworks = {builtin.package for builtin in BUILTINS.values()} - OWN_PACKAGES
    return (
        sys.platform == "linux"
        and threading.active_count() == 1
        and frameworks.isdisjoint(sys.modules)
    )


def _fork(work: Callable[..., None], *arguments: Any) -> tuple[ChildProcess, Connection]:
    here, there = Pipe()
    process = _forked(work, there, here, *arguments, daemon=True)
    there.close()
    return process, here


def _forked(
    work: Callable[..., None],
    link: Connection,
    parents_link: Connection,
    *arguments: Any,
    daemon: bool = False,
) -> ForkProcess:
    """Fork a process that calls ``work(link, *arguments)``; return it.

    The process closes ``parents_link``, the parent's end of the link. Python ends a ``daemon`` when
    this process ends, and waits for any other process.
    """
    arguments = (os.getpid(), work, link, parents_link, *arguments)
    process = get_context("fork").Process(target=_work_in_fork, args=arguments, daemon=daemon)
    process.start()
    return process


def _work_in_fork(
    parent: int,
    work: Callable[..., None],
    link: Connection,
    parents_link: Connection,
    *arguments: Any,
) -> None:
    # If it outlived its parent, it would hold the pipe by which others notice the parent's end.
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    parents_link.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(link, *arguments)


def _serve(link: Connection, package: str) -> None:
    """Import ``package`` unless it is empty, then obey each ``_Fork`` and ``_Kill`` on the link.

    A process that has ended is reported as ``(number, exit code)``. The server ends when the link
    is closed, or at once if the import starts threads.
    """
    die_with_parent()  # also where it was spawned
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A daemonic process may start no others, which would outlive it; these do not.
    current_process().daemon = False
    if package and not _import_without_threads(package):
        os._exit(0)
    # A collection in a fork would copy the memory that it shares.
    gc.freeze()
    children: dict[int, tuple[int, ForkProcess]] = {}
    while True:
        for ready in wait([link, *children]):
            if ready is link:
                _obey(link, children)
            else:
                assert isinstance(ready, int)
                number, process = children.pop(ready)
                process.join()
                link.send((number, process.exitcode))


def _obey(link: Connection, children: dict[int, tuple[int, ForkProcess]]) -> None:
    try:
        match link.recv():
            case _Fork(number, work, arguments):
                with Connection(_receive_fd(link)) as there:
                    process = _forked(work, there, link, *arguments)
                children[process.sentinel] = number, process
            case _Kill(number):
                for known, process in children.values():
                    if known == number:
                        process.kill()
    except (EOFError, OSError):
        os._exit(0)


def _receive_fd(link: Connection) -> int:
    """Receive a descriptor over the link and return it; raise EOFError if none comes.

    multiprocessing's own function acknowledges it from Python 3.14 on. The acknowledgement would
    mix with the server's messages about processes that end.
    """
    with _socket_of(link) as channel:
        _, received, _, _ = recv_fds(channel, 1, 1)
    if not received:
        raise EOFError
    return received[0]


def _socket_of(link: Connection) -> socket:
    """Return a socket on a copy of the link's descriptor; to close it leaves the link open."""
    return socket(fileno=os.dup(link.fileno()))


def _import_without_threads(package: str) -> bool:
    """Import a package; return whether this process has as many threads as before.

    If the import fails, the worker that loads the backend reports it.
    """
    before = len(list(THREADS.iterdir()))
    # What a framework loads is never garbage.
    gc.disable()
    with suppress(Exception):
        import_module(package)
    gc.enable()
    return len(list(THREADS.iterdir())) == before
