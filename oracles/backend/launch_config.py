"""How to launch a backend's process: interpreter, timeouts and memory limit."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oracles.backend.resource_limits import memory_share
from oracles.registry import framework_of, is_program
from specs import VERSION
from specs.errors import CastigateError
from specs.plain_text import is_plain

DEFAULT_TIMEOUT = 60.0
"""Seconds for one call: as many as the slowest compilation takes, many more than a cast."""
STARTUP_TIMEOUT = 300.0
"""Seconds in which a framework must be loaded, or a program must have opened its device."""


@dataclass(frozen=True)
class LaunchConfig:
    """How to launch a backend's process; without ``python`` it runs under our own interpreter.

    ``seconds`` is the timeout of one call, ``startup_seconds`` that of each step of a start, and
    ``memory`` the limit of the process in bytes. If it ``shares_answers``, cases that the adapter
    puts on one road share the answers of each method in ``ROADS``.
    """

    python: str | None = None
    seconds: float = DEFAULT_TIMEOUT
    startup_seconds: float = STARTUP_TIMEOUT
    memory: int = field(default_factory=lambda: memory_share(1))
    shares_answers: bool = True

    @property
    def interpreter(self) -> str:
        """The Python that runs the backend's server."""
        return self.python or sys.executable

    def command(self, backend: str) -> list[str]:
        """Return the command that serves a backend; its two pipes are still to be appended."""
        # -P: modules in the current folder must not shadow installed packages.
        server = ["-P", "-m", "oracles.backend.server"]
        numbers = str(self.memory), str(int(self.shares_answers))
        return [self.interpreter, *server, backend, *numbers]

    @property
    def environment(self) -> Mapping[str, str]:
        """The process's environment; under our own interpreter, it finds the modules we find."""
        if self.python is not None:
            return os.environ
        return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    @property
    def install_hint(self) -> str:
        """Advice for an interpreter that lacks this version of Castigate."""
        return f"install this version there: {self.interpreter} -m pip install castigate=={VERSION}"


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
