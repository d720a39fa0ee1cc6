"""Runs on a Dask worker: reports what is installed, and does tasks in child processes.

Each task goes to a process pool of one process, as on the machine of the run. So a crash of the
backend ends that process and never the Dask worker.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from distributed import get_worker

import conformance
from conformance.running.plan import Task
from conformance.running.process_pool import Listener, ProcessPool, Setup
from conformance.running.program_identity import file_digests
from oracles.backend.loading import launch_configs
from oracles.claims import Claim
from reports.run_store.record import Environment, current_environment
from specs import VERSION
from specs.cases import Case

ROOT = Path(conformance.__file__).parents[1]
PACKAGES = ("specs", "oracles", "reports", "conformance")
SOURCES = (".py", ".yaml")


class TaskCancelledError(Exception):
    """The task was canceled: the process of the run no longer needs the result, or is gone."""


@dataclass(frozen=True)
class Installed:
    """A worker's machine and installed versions, by which the workers of a run are compared."""

    suite: str
    """The version of castigate."""
    sources: str
    """The digest of castigate's own files."""
    environment: Environment
    version: str = ""
    """The backend's own version."""
    files: dict[str, str] = field(default_factory=dict)
    """The digests of a backend's own files."""
    claimed: tuple[Claim, ...] = ()
    """The documents that the backend claims."""
    has_chains: bool = False
    """Whether the backend casts in company: one cast after another, in one program."""

    def facts(self) -> dict[str, str]:
        """Return by name the versions and digests that all workers of a run must have in common.

        The backend's own version is compared besides.
        """
        packages = {name: f"{version}" for name, version in self.environment.packages.items()}
        named = {"castigate": self.suite, "castigate sources": self.sources[:12]}
        files = {f"file `{name}`": digest[:12] for name, digest in self.files.items()}
        return named | {"Python": self.environment.python} | packages | files


@dataclass(frozen=True)
class Done:
    """The result of tasks: the bytes of their parts, and what the worker reports with them.

    ``inputs`` and ``wrong`` count tested inputs and wrong answers. ``messages`` are for the user,
    ``stderr`` is what the backend printed, and ``installed`` describes the worker.
    """

    parts: tuple[bytes, ...]
    inputs: int
    wrong: int
    messages: tuple[str, ...]
    stderr: bytes
    installed: Installed


def installed_here() -> Installed:
    """Describe the castigate and the packages of this process, without loading a backend."""
    return Installed(VERSION, _digest_of_sources(), current_environment())


def installed(setup: Setup, backend: str, processes: int) -> Installed:
    """Load a backend in a process pool, and describe it and this machine.

    ``processes`` is the number of processes among which the memory is divided.
    """
    with _borrowed(setup, backend, processes) as pool:
        return _installed(pool)


def roads(setup: Setup, backend: str, processes: int, cases: tuple[Case, ...]) -> dict[str, str]:
    """Return the road of each case, by the case's id."""
    with _borrowed(setup, backend, processes) as pool:
        return pool.roads(cases)


def do_tasks(
    setup: Setup, backend: str, processes: int, tasks: tuple[Task, ...], crash: str
) -> Done:
    """Do tasks and return their results; raise TaskCancelledError if the call was canceled.

    If ``crash`` gives a reason, the only task is recorded as crashed without being done.
    """
    parts: dict[str, bytes] = {}
    collector = _Collector()
    is_cancelled = _cancellation()
    with _borrowed(setup, backend, processes) as pool:
        if crash:
            pool.give_up(tasks[0], crash)
        pool.run(tasks, parts.__setitem__, collector, is_cancelled)
        if len(parts) < len(tasks):
            raise TaskCancelledError
        found = tuple(parts[task.name] for task in tasks)
        counts = (collector.inputs, collector.wrong, tuple(collector.messages))
        return Done(found, *counts, pool.log.drain(), _installed(pool))


def close_idle(setup: Setup, backend: str) -> None:
    """End the idle processes of a backend that were started with this setup."""
    with _lock:
        pools = _idle.pop((setup, backend), [])
    for pool in pools:
        pool.close()


class _Collector(Listener):
    """A listener that collects what a pool reports while it does tasks."""

    def __init__(self) -> None:
        self.inputs = self.wrong = 0
        self.messages: list[str] = []

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""
        self.inputs += inputs
        self.wrong += wrong

    def say(self, message: str) -> None:
        """Keep a message for the user."""
        self.messages.append(message)


_lock = Lock()
_idle: dict[tuple[Setup, str], list[ProcessPool]] = {}


@contextmanager
def _borrowed(setup: Setup, backend: str, processes: int) -> Iterator[ProcessPool]:
    """Lend an idle process pool of a backend, or a new one.

    The pool is idle again afterward, or closed if its use raised an error. Idle pools of other
    setups, as an earlier run left them, are closed.
    """
    with _lock:
        # The processes of an earlier run, whose coordinating process was killed.
        others = [key for key in _idle if key[0] != setup]
        stale = [pool for key in others for pool in _idle.pop(key)]
        own = _idle.get((setup, backend))
        pool = own.pop() if own else None
    for each in stale:
        each.close()
    if pool is None:
        pool = _opened(setup, backend, processes)
    try:
        yield pool
    except BaseException:
        pool.close()
        raise
    with _lock:
        _idle.setdefault((setup, backend), []).append(pool)


def _opened(setup: Setup, backend: str, processes: int) -> ProcessPool:
    # A process under Dask's nanny is daemonic, and so may start none. The rule is there because
    # its children would outlive it; a process of a pool ends with its parent.
    multiprocessing.current_process().daemon = False
    configs = launch_configs(setup.backends, setup.pythons, setup.seconds, processes)
    pool = ProcessPool(backend, configs, setup.settings)
    try:
        return pool.__enter__()
    except BaseException:
        pool.close()
        raise


def _installed(pool: ProcessPool) -> Installed:
    own = _own_files(pool.backend)
    return Installed(
        VERSION,
        _digest_of_sources(),
        current_environment(),
        pool.version,
        own,
        pool.claimed,
        pool.has_chains,
    )


@cache
def _own_files(backend: str) -> dict[str, str]:
    """Return the digests of an adapter's or a program's files, by name.

    RECORD files of installed packages are left out, as they differ between machines that have the
    same version.
    """
    found = file_digests(backend)
    return {name: digest for name, digest in found.items() if not name.endswith("/RECORD")}


@cache
def _digest_of_sources() -> str:
    """Return one digest of the names and contents of castigate's own files."""
    digest = sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in SOURCES:
                content = sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def _cancellation() -> Callable[[], bool]:
    """Return a function that returns whether the Dask task of this thread was canceled."""
    worker: Any = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        state = worker.state.tasks.get(key)
        return state is None or state.state != "executing"

    return is_cancelled
