"""The releases of a framework: what a package index offers, and a range of it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from oracles.registry import BUILTINS, framework_of
from specs.errors import CastigateError

OFFERED = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
"""The line of ``pip index versions`` that lists all releases, the newest first."""
RANGE = re.compile(r"(?P<first>[^,.][^,]*?)?\.\.(?P<last>[^,]*)")


def requirements_of(backend: str) -> list[Requirement]:
    """The requirements of a backend besides Castigate; the first is its framework."""
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
    """The releases that a range or a list names, the oldest first.

    A range is ``1.28..1.32``, an end of it may be missing; ``1.32`` includes 1.32.1, and ``..`` is
    all that Castigate drives. Only a list may name releases before a final one, such as 1.32rc1;
    those of a list are not looked up before they are installed.
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
    """Whether a release is not after a bound, or a later release of what the bound names."""
    parts = last.release
    return _version(version) <= last or _version(version).release[: len(parts)] == parts


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise CastigateError(
            f"--versions: `{text[:40]}` is not a version; write 1.28..1.32, or 1.28.0,1.29.1"
        ) from None
