"""Identifies a backend by its hello and by the digests of its files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from hashlib import file_digest
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

from oracles.backend.loading import close, launch_configs, load_isolated
from oracles.protocol import compiles_per_shape, row_limits_of
from oracles.registry import BUILTINS, is_program, third_party
from oracles.wire.program_client import parse_command


def program_identity(name: str, pythons: tuple[str, ...], seconds: float) -> dict[str, Any]:
    """Load and close a backend; return its ``hello``, and as ``files`` its ``file_digests``.

    ``hello`` has its ``name``, ``version`` and ``claims``, whether it compiles for each shape as
    ``compiles_shapes``, and as ``row_limits`` the numbers of elements above which its code changes.
    If the backend runs in another Python, ``files`` is empty.
    """
    [config] = launch_configs([name], pythons, seconds).values()
    backend = load_isolated(name, config)
    try:
        hello = {
            "name": backend.oracle.name,
            "version": backend.version,
            "claims": list(map(str, backend.claimed)),
            "compiles_shapes": compiles_per_shape(backend.oracle),
            "row_limits": list(row_limits_of(backend.oracle)),
        }
    finally:
        close(backend)
    # Another Python has its own packages, which are not looked up from here.
    return {"hello": hello, "files": {} if config.python else file_digests(name)}


def file_digests(name: str) -> dict[str, str]:
    """Return the sha256 of each file that a backend's name stands for, by a label without folders.

    For a command these are the executable and the arguments that are files, for a ``.py`` path that
    file. For other adapters they are the module's file and the package's list of installed files
    (`RECORD`). The package is the framework of a built-in adapter, or else the adapter's own.
    """
    return {label: _digest(path) for label, path in _files(name) if path.is_file()}


def identity_differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each difference between two results of ``program_identity``.

    A statement that only ``now`` has is left out; a file that only one has is not.
    """
    for part in ("hello", "files"):
        one, other = before[part], now[part]
        # Earlier versions did not record all of a hello.
        for name in sorted(one if part == "hello" else one.keys() | other.keys()):
            old, new = (_shown(each.get(name)) for each in (one, other))
            if one.get(name) != other.get(name):
                what = f"file `{name}`" if part == "files" else f"its {name}"
                yield f"the backend is another: {what} was {old}, now it is {new}"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)[:80]


def _files(name: str) -> Iterator[tuple[str, Path]]:
    if is_program(name):
        for index, word in enumerate(parse_command(name)):
            path = Path(shutil.which(word) or word) if index == 0 else Path(word)
            yield f"{index}:{path.name}", path
        return
    left, _, _ = name.partition(":")
    if left.endswith(".py"):
        yield Path(left).name, Path(left)
        return
    builtin, points = BUILTINS.get(left), third_party()
    module = builtin.module if builtin else points[left].module if left in points else left
    origin = _module_file(module)
    if origin is not None:
        yield module, origin
    package = builtin.package if builtin else module.partition(".")[0]
    for installed in sorted(set(packages_distributions().get(package or "", ()))):
        for file in distribution(installed).files or ():
            if file.name == "RECORD":
                yield f"{installed}/RECORD", Path(str(file.locate()))


def _module_file(module: str) -> Path | None:
    """Find the file of a module without executing it; return None if it has no file.

    ``importlib.util.find_spec`` would execute the packages around it in the judge's process.
    """
    spec, places, name = None, None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        finders = (finder.find_spec(name, places) for finder in sys.meta_path)
        spec = next((found for found in finders if found is not None), None)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
