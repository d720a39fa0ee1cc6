"""Loads the oracle that a ``--backend`` value names, in a process of its own, as options say."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack

from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT, LaunchConfig, SupervisedOracle
from oracles.backend.isolated_oracle import IsolatedOracle
from oracles.backend.resource_limits import memory_share
from oracles.claims import check_claims
from oracles.registry import Backend, framework_of, is_program, load_backend
from specs.errors import CastigateError
from specs.plain_text import is_plain

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


def launch_configs(
    backends: Iterable[str],
    pythons: Iterable[str] = (),
    seconds: float = DEFAULT_TIMEOUT,
    processes: int = 1,
) -> dict[str, LaunchConfig]:
    """Return the configuration of each backend; ``pythons`` are the options ``NAME=PATH``.

    A Python for ``NAME`` also runs its variants. ``seconds`` is the option ``--timeout``. The
    memory is divided by the number of ``processes``. Raises CastigateError for options that cannot
    be used, and for a backend's name with a control character.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise CastigateError(f"--timeout {seconds:g}: give a number of seconds above 0")
    backends = list(backends)
    for name in backends:
        if not is_plain(name):
            raise CastigateError(
                f"backend `{name}`: its name has several lines or a control character; rename it, "
                "or write what it runs to a script"
            )
    interpreters = dict[str, str]()
    for option in pythons:
        name, equals, path = option.partition("=")
        if not (name and equals and path):
            raise CastigateError(f"--python `{option}`: write NAME=PATH, the backend's name first")
        if name in interpreters:
            raise CastigateError(f"--python is given twice for `{name}`; give one of them")
        if name not in {known for backend in backends for known in _names(backend)}:
            raise CastigateError(
                f"--python `{option}`: no backend `{name}` is asked; it is for "
                f"{', '.join(backends)}"
            )
        if name == "reference":
            raise CastigateError(
                f"--python `{option}`: the reference runs under this Python only; leave it out"
            )
        if is_program(name):
            raise CastigateError(
                f"--python `{option}`: a program has no Python; name its interpreter in exec:"
            )
        interpreters[name] = _interpreter(option, path)
    memory = memory_share(processes)
    return {
        backend: LaunchConfig(
            next((interpreters[name] for name in _names(backend) if name in interpreters), None),
            seconds,
            memory=memory,
        )
        for backend in backends
    }


def _names(backend: str) -> tuple[str, str]:
    return backend, framework_of(backend)


def _interpreter(option: str, path: str) -> str:
    """Return an interpreter's absolute path; raise CastigateError if it cannot be executed.

    ``option`` is the option's text, for the error. Links are not followed: a virtual environment is
    recognized by its own link to Python.
    """
    executable = shutil.which(os.path.expanduser(path))
    if executable is None:
        exists = os.path.exists(os.path.expanduser(path))
        problem = f"{path} is not an executable file" if exists else f"{path} does not exist"
        raise CastigateError(f"--python `{option}`: {problem}; give the path of a Python")
    return os.path.abspath(executable)
