"""Where a backend lives: its interpreter, how long it is waited for, what it may take."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oracles.isolation.resource_limits import memory_share
from oracles.registry import framework_of, is_program
from specs.errors import CastigateError
from specs.release import VERSION

SECONDS = 60.0
"""What a single call may take: a compiler's longest, many times what a cast takes."""
SECONDS_TO_BEGIN = 300.0
"""What loading a framework, or a program's opening of its device, may take."""


@dataclass(frozen=True)
class Home:
    """What a backend's process is given; without a Python of its own it runs under ours."""

    python: str | None = None
    seconds: float = SECONDS
    seconds_to_begin: float = SECONDS_TO_BEGIN
    memory: int = field(default_factory=lambda: memory_share(1))

    @property
    def interpreter(self) -> str:
        """The Python that serves the backend."""
        return self.python or sys.executable

    def command(self, name: str) -> list[str]:
        """What serves a backend; its two pipes are still to be appended."""
        # -P: a folder that one happens to be in holds no packages.
        server = ["-P", "-m", "oracles.isolation.server"]
        return [self.interpreter, *server, name, str(self.memory)]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment; under our own interpreter modules are found where we find them."""
        if self.python is not None:
            return os.environ
        return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    @property
    def advice(self) -> str:
        """What to do where the interpreter has no Castigate of this version."""
        return f"install this version there: {self.interpreter} -m pip install castigate=={VERSION}"


def homes(
    backends: Iterable[str],
    pythons: Iterable[str] = (),
    seconds: float = SECONDS,
    processes: int = 1,
) -> dict[str, Home]:
    """The home of each backend, as ``--python NAME=PATH`` and ``--timeout`` say.

    A Python that is given to a name serves its variants too; the memory is shared by so many.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise CastigateError(f"--timeout {seconds:g}: give a number of seconds above 0")
    backends, found = list(backends), dict[str, str]()
    for given in pythons:
        name, equals, path = given.partition("=")
        if not (name and equals and path):
            raise CastigateError(f"--python `{given}`: write NAME=PATH, the backend's name first")
        if name in found:
            raise CastigateError(f"--python is given twice for `{name}`; give one of them")
        if name not in {part for backend in backends for part in _names(backend)}:
            raise CastigateError(
                f"--python `{given}`: no backend `{name}` is asked; it is for {', '.join(backends)}"
            )
        if name == "reference":
            raise CastigateError(f"--python `{given}`: the reference runs under this Python only")
        if is_program(name):
            raise CastigateError(f"--python `{given}`: a program has no Python; name it in exec:")
        found[name] = _interpreter(given, path)
    memory = memory_share(processes)
    return {
        backend: Home(
            next((found[name] for name in _names(backend) if name in found), None),
            seconds,
            memory=memory,
        )
        for backend in backends
    }


def _names(backend: str) -> tuple[str, str]:
    """What a backend may be called by: with its variant, and without."""
    return backend, framework_of(backend)


def _interpreter(given: str, path: str) -> str:
    # An environment is known by the link that its Python is: links are not followed.
    where = shutil.which(os.path.expanduser(path))
    if where is None:
        there = os.path.exists(os.path.expanduser(path))
        wrong = f"{path} is no program that can be run" if there else f"{path} does not exist"
        raise CastigateError(f"--python `{given}`: {wrong}; give the path of a Python")
    return os.path.abspath(where)
