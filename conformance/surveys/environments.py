"""Environments with one release of a framework each, made once and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.surveys.releases import requirements_of
from specs.errors import CastigateError

COMPLETE = "made"
"""An empty file in an environment in which everything is installed."""
OF_THE_SERVER = ("numpy", "pydantic", "ruamel.yaml")
"""Packages that a backend's process imports, besides its framework."""
OWN_PACKAGES = ("specs", "oracles", "reports", "conformance")
ROOT = Path(__file__).parents[2]


def default_folder() -> Path:
    """The folder in which environments are kept if none is named."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "castigate" / "environments"


@dataclass
class Environments:
    """The environments of one backend in a folder; ``made`` are those that did not exist yet."""

    backend: str
    folder: Path
    made: list[str] = field(default_factory=list)

    def python(self, version: str) -> str:
        """The Python of the environment of a release, which is made if it does not exist.

        Other packages get the versions that are installed here, if that is possible. This Castigate
        is copied into it each time, since it may have changed.
        """
        framework, *others = requirements_of(self.backend)
        tag = f"py{sys.version_info.major}.{sys.version_info.minor}"
        place = self.folder / f"{framework.name}-{version}-{tag}"
        python = place / "bin" / "python"
        if not (place / COMPLETE).exists():
            try:
                self._make(place, python, [f"{framework.name}=={version}", *map(str, others)])
            except OSError as error:
                raise CastigateError(f"no environment in {place}: {error.strerror}") from None
            self.made.append(version)
        _copy_castigate(python)
        return str(python)

    def _make(self, place: Path, python: Path, wanted: Sequence[str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        uv = shutil.which("uv")
        if uv is not None:
            subprocess.run([uv, "venv", "-q", "--python", sys.executable, place], check=True)
            install = [uv, "pip", "install", "-q", "--python", str(python)]
        else:
            venv.create(place, with_pip=True)
            install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        names = [Requirement(each).name for each in wanted]
        pins = place / "constraints.txt"
        pins.write_text("\n".join(_pins_but(names[0])) + "\n")
        requirements = [*OF_THE_SERVER, *(each.partition(";")[0].strip() for each in wanted)]
        for constrained in (["-c", str(pins)], []):
            done = subprocess.run(
                [*install, *constrained, *requirements], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                break
        else:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            reason = lines[-1].removeprefix("ERROR: ") if lines else "no reason given"
            raise CastigateError(f"no environment of {wanted[0]}: {reason}")
        (place / COMPLETE).touch()


def _pins_but(framework: str) -> list[str]:
    """The version of everything that is installed here, except the framework and Castigate."""
    left_out = {canonicalize_name(framework), "castigate"}
    found = {
        canonicalize_name(each.metadata["Name"]): each.version.partition("+")[0]
        for each in distributions()
    }
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name not in left_out]


def _copy_castigate(python: Path) -> None:
    """Put this Castigate beside the framework: both ends of a conversation are of one version."""
    [packages] = (python.parent.parent / "lib").glob("python3*/site-packages")
    for name in OWN_PACKAGES:
        shutil.rmtree(packages / name, ignore_errors=True)
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
