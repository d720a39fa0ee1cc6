"""The releases of a framework, and environments with one release each, made once and kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path
from typing import Annotated

import typer
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from oracles.registry import BUILTINS, framework_of
from specs.errors import CastigateError

OFFERED = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
"""The line of ``pip index versions`` that lists all releases, the newest first."""
RANGE = re.compile(r"(?P<first>[^,.][^,]*?)?\.\.(?P<last>[^,]*)")
COMPLETE = "made"
"""An empty file in an environment in which everything is installed."""
OF_THE_SERVER = ("numpy", "pydantic", "ruamel.yaml")
"""Packages that a backend's process imports, besides its framework."""
OWN_PACKAGES = ("specs", "oracles", "reports", "conformance")
ROOT = Path(__file__).parents[3]
EnvironmentsOption = Annotated[
    str | None,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Where environments of releases are kept (default: castigate/environments in the"
        " user's cache).",
    ),
]


def requirements_of(backend: str) -> list[Requirement]:
    """Return a backend's requirements besides Castigate; the first is its framework.

    Raise CastigateError if the backend has no package, or if Castigate is not installed as a
    package.
    """
    builtin = BUILTINS.get(framework_of(backend))
    if builtin is None or builtin.extra is None:
        known = ", ".join(name for name, each in BUILTINS.items() if each.extra)
        raise CastigateError(
            f"backend `{backend}` has no releases in a package index that Castigate knows; "
            f"these have: {known}"
        )
    try:
        declared = [Requirement(each) for each in requires("castigate") or ()]
    except (PackageNotFoundError, InvalidRequirement):
        declared = []
    wanted = [
        each
        for each in declared
        if each.marker is not None and each.marker.evaluate({"extra": builtin.extra})
    ]
    if not wanted:
        raise CastigateError("Castigate is not installed as a package; run pip install -e . first")
    return wanted


def releases(framework: Requirement, wanted: str) -> list[str]:
    """Return the releases of a framework that a range or a list names, the oldest first.

    A range is ``1.28..1.32``, in which 1.32 includes 1.32.1. Either end may be left out; without
    the first, only releases that Castigate supports are returned. Only a list may name prereleases;
    its releases are not looked up. Raise CastigateError for a malformed version, for a range
    without releases, and if the package index cannot be read.
    """
    bounds = RANGE.fullmatch(wanted)
    if bounds is None:
        named = [each.strip() for each in wanted.split(",")]
        return sorted(named, key=_version)
    first = _version(bounds["first"]) if bounds["first"] else None
    last = _version(bounds["last"]) if bounds["last"] else None
    found = [
        each
        for each in _offered(framework.name)
        if not _version(each).is_prerelease
        and (first is None or _version(each) >= first)
        and (last is None or _is_up_to(each, last))
        and (first is not None or framework.specifier.contains(each))
    ]
    if not found:
        raise CastigateError(f"the package index offers no release of {framework.name} in {wanted}")
    return sorted(found, key=_version)


def _offered(package: str) -> list[str]:
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    done = subprocess.run(
        [*command, "--disable-pip-version-check"], capture_output=True, text=True, check=False
    )
    listed = OFFERED.search(done.stdout)
    if listed is None:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"
        raise CastigateError(
            f"the releases of {package} cannot be listed: {reason}; "
            "name them instead: --versions 1.0,1.1"
        )
    return listed[1].split(", ")


def _is_up_to(version: str, last: Version) -> bool:
    """Return whether a version is at most ``last``, or begins with it, as 1.32.1 does with 1.32."""
    parts = last.release
    return _version(version) <= last or _version(version).release[: len(parts)] == parts


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise CastigateError(
            f"--versions: `{text[:40]}` is not a version; write 1.28..1.32, or 1.28.0,1.29.1"
        ) from None


def default_folder() -> Path:
    """Return the folder for environments if the user names none."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "castigate" / "environments"


@dataclass
class Environments:
    """A folder with an environment for each release that a backend was asked in.

    ``made`` lists the releases whose environments this object created.
    """

    backend: str
    folder: Path
    made: list[str] = field(default_factory=list)

    def python(self, version: str) -> str:
        """Return the path of the Python in a release's environment, which is created if needed.

        Other packages get the versions that are installed here, if that is possible. This Castigate
        is copied into the environment each time, since it may have changed. Raise CastigateError if
        the environment cannot be created.
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
            except subprocess.CalledProcessError as error:
                raise CastigateError(f"no environment in {place}: {error}") from None
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
            raise CastigateError(
                f"no environment of {wanted[0]}: {reason}; name another release, or see whether"
                " pip can install this one"
            )
        (place / COMPLETE).touch()


def _pins_but(framework: str) -> list[str]:
    left_out = {canonicalize_name(framework), "castigate"}
    found = {
        canonicalize_name(each.metadata["Name"]): each.version.partition("+")[0]
        for each in distributions()
    }
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name not in left_out]


def _copy_castigate(python: Path) -> None:
    """Copy this Castigate into an environment, so that both processes run the same version."""
    [packages] = (python.parent.parent / "lib").glob("python3*/site-packages")
    for name in OWN_PACKAGES:
        shutil.rmtree(packages / name, ignore_errors=True)
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
