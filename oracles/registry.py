"""Finds an oracle by what stands after ``--backend``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from oracles.claims import Claim, claim_of, every_document, in_order
from oracles.protocol import NotInstalled, Oracle, Unsupported
from specs.errors import CastigateError
from specs.suggestions import nearest

EXEC = "exec:"


def is_program(name: str) -> bool:
    """Whether a backend is a program that speaks the wire protocol."""
    return name.startswith(EXEC)


def framework_of(name: str) -> str:
    """What the names of a framework's roads have in common; of a program, its whole name."""
    return name if is_program(name) else name.partition(":")[0]


GROUP = "castigate.oracles"


@dataclass(frozen=True)
class Builtin:
    """A backend that ships with the suite: where its class is, which package it drives.

    One without an extra is not to be had from a package index: its adapter says how it is.
    """

    module: str
    attribute: str
    package: str | None = None
    extra: str | None = None

    @property
    def variants(self) -> tuple[str, ...]:
        """The other roads that its adapter knows."""
        return tuple(getattr(importlib.import_module(self.module), "VARIANTS", ()))


ADAPTERS = "oracles.adapters"
BUILTINS: dict[str, Builtin] = {
    "reference": Builtin("oracles.reference.reference_oracle", "Reference"),
    "ort": Builtin(f"{ADAPTERS}.ort", "Ort", "onnxruntime", "ort"),
    "torch": Builtin(f"{ADAPTERS}.torch", "Torch", "torch", "torch"),
    "onnx": Builtin(f"{ADAPTERS}.onnx", "Onnx", "onnx", "onnx"),
    "ml_dtypes": Builtin(f"{ADAPTERS}.ml_dtypes", "MlDtypes", "ml_dtypes", "ml_dtypes"),
    "jax": Builtin(f"{ADAPTERS}.jax", "Jax", "jax", "jax"),
    "tensorflow": Builtin(f"{ADAPTERS}.tensorflow", "TensorFlow", "tensorflow", "tensorflow"),
    "paddle": Builtin(f"{ADAPTERS}.paddle", "Paddle", "paddle", "paddle"),
    "tvm": Builtin(f"{ADAPTERS}.tvm", "Tvm", "tvm", "tvm"),
    "openvino": Builtin(f"{ADAPTERS}.openvino", "OpenVino", "openvino", "openvino"),
    "torch_xla": Builtin(f"{ADAPTERS}.torch_xla", "TorchXla", "torch_xla", "torch_xla"),
    "cinn": Builtin(f"{ADAPTERS}.cinn", "Cinn", "paddle"),
    "pypto": Builtin(f"{ADAPTERS}.pypto", "Pypto", "pypto"),
}


@dataclass(frozen=True)
class Backend:
    """An oracle that is ready to answer, under the name the user gave it."""

    name: str
    oracle: Oracle

    @property
    def version(self) -> str:
        return self.oracle.version

    @cached_property
    def claimed(self) -> tuple[Claim, ...]:
        """What the oracle means to implement; without ``claims`` every document."""
        words = getattr(self.oracle, "claims", None)
        return every_document() if words is None else in_order(map(claim_of, words))

    def claims(self, document: str, version: str) -> bool:
        """Whether the oracle means to implement this version of a document."""
        return any(claim.covers(document, version) for claim in self.claimed)


def load_backend(name: str) -> Backend:
    """Build the oracle that a ``--backend`` value names, or raise an error that says what to do."""
    try:
        made = _made(name)
    except NotInstalled as error:
        raise CastigateError(f"backend `{name}` is not installed: {error}") from None
    except Unsupported as error:
        raise CastigateError(f"backend `{name}`: {error}") from None
    except CastigateError:
        raise
    except (Exception, SystemExit) as error:
        raise CastigateError(f"backend `{name}`: {type(error).__name__}: {error}") from None
    try:
        is_oracle = isinstance(made, Oracle)
        is_oracle = is_oracle and isinstance(made.version, str)
    except (Exception, SystemExit) as error:
        raise CastigateError(f"backend `{name}`: {type(error).__name__}: {error}") from None
    if not is_oracle:
        raise CastigateError(
            f"backend `{name}` is no oracle: it needs name, version and cast(case, bits)"
        )
    backend = Backend(name, made)
    check_claims(backend)
    return backend


def check_claims(backend: Backend) -> None:
    """A claim that names no document would excuse every violation."""
    claimed = getattr(backend.oracle, "claims", None)
    if claimed is None:
        return
    if isinstance(claimed, str) or not all(isinstance(name, str) for name in claimed):
        raise CastigateError(
            f"backend `{backend.name}`: claims must be a tuple of documents, "
            "each as `name` or `name:version`"
        )
    for name in claimed:
        try:
            claim_of(name)
        except CastigateError as error:
            raise CastigateError(f"backend `{backend.name}` claims {error}") from None


def _made(name: str) -> Any:
    left, _, right = name.partition(":")
    if left in BUILTINS:
        builtin = BUILTINS[left]
        make = getattr(importlib.import_module(builtin.module), builtin.attribute)
        return make(right or None)
    if left in (others := third_party()):
        return _entry_point(others[left], right)
    if left.endswith(".py") and right:
        return _attribute(_module_from(Path(left)), right, name)()
    if right and _exists(left):
        return _attribute(importlib.import_module(left), right, name)()
    raise CastigateError(unknown_backend(name))


def _entry_point(point: EntryPoint, variant: str) -> Any:
    made: Callable[..., Any] = point.load()
    return made(variant) if variant else made()


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _module_from(path: Path) -> ModuleType:
    if not path.is_file():
        raise CastigateError(f"backend file {path} does not exist")
    spec = importlib.util.spec_from_file_location(f"castigate_backend_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, attribute: str, name: str) -> Callable[[], Any]:
    try:
        made: Callable[[], Any] = getattr(module, attribute)
    except AttributeError:
        raise CastigateError(f"backend `{name}`: there is no `{attribute}` in it") from None
    return made


def unknown_backend(name: str) -> str:
    """What to say of a backend that nobody knows."""
    return f"unknown backend `{name}`; {nearest(name, BUILTINS)}{listing()}"


def listing() -> str:
    """Which backends are installed, and how to install the rest."""
    parts = [f"installed: {', '.join(installed())}"]
    missing = [
        name for name, builtin in BUILTINS.items() if builtin.extra and not _is_here(builtin)
    ]
    if missing:
        hints = ", ".join(
            f"{name} (pip install 'castigate[{BUILTINS[name].extra}]')" for name in missing
        )
        parts.append(f"not installed: {hints}")
    parts.append("or give package.module:Class, path/to/file.py:Class or exec:COMMAND")
    return "; ".join(parts)


def installed() -> Iterator[str]:
    """The backends whose framework is here, as far as can be told without loading it."""
    for name, builtin in BUILTINS.items():
        if builtin.package is None or (builtin.extra and _is_here(builtin)):
            yield name
    yield from third_party()


def third_party() -> dict[str, EntryPoint]:
    """The backends that other packages bring."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _is_here(builtin: Builtin) -> bool:
    return builtin.package is None or _exists(builtin.package)
