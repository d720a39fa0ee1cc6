"""Loads the oracle that a ``--backend`` value names, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from oracles.backend.backend_supervisor import SupervisedOracle
from oracles.backend.isolated_oracle import IsolatedOracle
from oracles.backend.launch_config import LaunchConfig
from oracles.claims import check_claims
from oracles.registry import Backend, is_program, load_backend
from specs.errors import CastigateError

IN_PROCESS = ("reference", "conformance.families.reference")
"""Backends that drive no framework, and so need no process of their own."""


def load_isolated(
    name: str, config: LaunchConfig, on_reply: Callable[[], None] = lambda: None
) -> Backend:
    """Load a backend in a process of its own; raise CastigateError if that fails.

    A backend in ``IN_PROCESS`` is loaded in this process. ``on_reply`` is called after every reply,
    to show progress.
    """
    if not drives_framework(name):
        return load_backend(name)
    if is_program(name):
        from oracles.wire.program_oracle import ProgramOracle  # Only programs need the wire.

        backend = Backend(name, ProgramOracle(name, config, on_reply))
    else:
        backend = Backend(name, IsolatedOracle(name, config, on_reply))
    check_claims(name, backend.oracle)
    return backend


def load_all(stack: ExitStack, configs: Mapping[str, LaunchConfig]) -> list[Backend]:
    """Load backends, in processes of their own; raise CastigateError with all that failed, if any.

    When the ``stack`` is closed, it closes those that are loaded, also if others failed.
    """
    backends: list[Backend] = []
    failed: list[CastigateError] = []
    for name, config in configs.items():
        try:
            backends.append(load_isolated(name, config))
        except CastigateError as error:
            failed.append(error)
        else:
            stack.callback(close, backends[-1])
    if failed:
        raise CastigateError("; ".join(map(str, failed))) from failed[0]
    return backends


def drives_framework(name: str) -> bool:
    """Return whether a backend is not the reference, and so gets a process of its own."""
    return name.partition(":")[0] not in IN_PROCESS


def can_run_in_process(name: str, config: LaunchConfig) -> bool:
    """Return whether a backend is no program, and is to run under no other Python than this one."""
    return config.python is None and not is_program(name)


def is_isolated(backend: Backend) -> bool:
    """Return whether a backend runs in another process."""
    return isinstance(backend.oracle, SupervisedOracle)


def seconds_waited(backend: Backend) -> float:
    """Return how many seconds this process has waited for a backend's process; 0 if it has none."""
    if isinstance(backend.oracle, SupervisedOracle):
        return backend.oracle.waited
    return 0.0


def deaths_of(backend: Backend) -> list[str]:
    """Return texts on how a backend's processes ended that failed in an exchange."""
    if isinstance(backend.oracle, SupervisedOracle):
        return backend.oracle.deaths
    return []


def close(backend: Backend) -> None:
    """End the process of a backend, if it has one."""
    if isinstance(backend.oracle, SupervisedOracle):
        backend.oracle.close()
