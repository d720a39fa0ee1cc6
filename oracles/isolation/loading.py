"""Finds an oracle by what stands after ``--backend``, and gives it a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from oracles.isolation.home import Home
from oracles.isolation.isolated import Isolated
from oracles.registry import Backend, load_backend

OURS = ("reference", "oracles.reference.oracle")
"""What is no framework: it answers in the process that asks."""


def load_isolated(name: str, home: Home, beat: Callable[[], None] = lambda: None) -> Backend:
    """The backend of that name behind a process, or an error that says what to do."""
    if name.partition(":")[0] in OURS:
        return load_backend(name)
    return Backend(name, Isolated(name, home, beat))


def is_isolated(backend: Backend) -> bool:
    """Whether a backend lives in another process."""
    return isinstance(backend.oracle, Isolated)


def close(backend: Backend) -> None:
    """End the process of a backend that has one."""
    if isinstance(backend.oracle, Isolated):
        backend.oracle.close()
