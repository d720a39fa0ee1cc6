"""Finds an oracle by what stands after ``--backend``, and gives it a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from oracles.isolation.isolated_oracle import Isolated
from oracles.isolation.launch_config import Home
from oracles.registry import Backend, check_claims, is_program, load_backend
from oracles.wire.program_oracle import Program

OURS = ("reference", "oracles.reference.reference_oracle")
"""What is no framework: it answers in the process that asks."""


def load_isolated(name: str, home: Home, beat: Callable[[], None] = lambda: None) -> Backend:
    """The backend of that name behind a process, or an error that says what to do."""
    if name.partition(":")[0] in OURS:
        return load_backend(name)
    if is_program(name):
        backend = Backend(name, Program(name, home, beat))
        check_claims(backend)
        return backend
    return Backend(name, Isolated(name, home, beat))


def is_at_home_here(name: str, home: Home) -> bool:
    """Whether a backend could also answer in this very process."""
    return home.python is None and not is_program(name)


def is_isolated(backend: Backend) -> bool:
    """Whether a backend lives in another process."""
    return isinstance(backend.oracle, Isolated | Program)


def close(backend: Backend) -> None:
    """End the process of a backend that has one."""
    if isinstance(backend.oracle, Isolated | Program):
        backend.oracle.close()
