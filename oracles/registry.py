"""Finds an oracle by what stands after ``--backend``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from oracles.protocol import NotInstalled, Oracle, Unsupported
from specs.errors import CastigateError
from specs.suggest import nearest

GROUP = "castigate.oracles"


@dataclass(frozen=True)
class Builtin:
    """A backend that ships with the suite: where its class is, which package it drives."""

    module: str
    attribute: str
    package: str | None
    extra: str | None


BUILTINS: dict[str, Builtin] = {
    "reference": Builtin("oracles.reference.oracle", "Reference", None, None),
    "ort": Builtin("oracles.adapters.ort", "Ort", "onnxruntime", "ort"),
    "torch": Builtin("oracles.adapters.torch", "Torch", "torch", "torch"),
    "onnx": Builtin("oracles.adapters.onnx", "Onnx", "onnx", "onnx"),
    "ml_dtypes": Builtin("oracles.adapters.ml_dtypes", "MlDtypes", "ml_dtypes", "ml_dtypes"),
}


@dataclass(frozen=True)
class Backend:
    """An oracle that is ready to answer, under the name the user gave it."""

    name: str
    oracle: Oracle

    @property
    def version(self) -> str:
        return self.oracle.version

    def claims(self, document: str) -> bool:
        """Whether the oracle means to implement a document; one without ``claims`` means all."""
        claimed = getattr(self.oracle, "claims", None)
        return claimed is None or document in claimed


def load_backend(name: str) -> Backend:
    """Build the oracle that a ``--backend`` value names, or raise an error that says what to do."""
    left, _, right = name.partition(":")
    third_party = {point.name: point for point in entry_points(group=GROUP)}
    try:
        if left in BUILTINS:
            builtin = BUILTINS[left]
            made = getattr(importlib.import_module(builtin.module), builtin.attribute)(
                right or None
            )
        elif left in third_party:
            made = _entry_point(third_party[left], right)
        elif left.endswith(".py") and right:
            made = _make(_module_from(Path(left)), right, name)
        elif right and _exists(left):
            made = _make(_imported(left), right, name)
        else:
            raise CastigateError(unknown_backend(name))
    except NotInstalled as error:
        raise CastigateError(f"backend `{name}` is not installed: {error}. {listing()}") from None
    except Unsupported as error:
        raise CastigateError(f"backend `{name}`: {error}") from None
    if not isinstance(made, Oracle):
        raise CastigateError(
            f"backend `{name}` is no oracle: it needs name, version and cast(case, bits)"
        )
    return Backend(name, made)


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
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CastigateError(f"backend file {path}: {type(error).__name__}: {error}") from None
    return module


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise CastigateError(f"backend module {name}: {type(error).__name__}: {error}") from None


def _make(module: ModuleType, attribute: str, name: str) -> Any:
    try:
        made: Callable[[], Any] = getattr(module, attribute)
    except AttributeError:
        raise CastigateError(f"backend `{name}`: there is no `{attribute}` in it") from None
    try:
        return made()
    except (NotInstalled, Unsupported):
        raise
    except Exception as error:
        raise CastigateError(f"backend `{name}`: {type(error).__name__}: {error}") from None


def unknown_backend(name: str) -> str:
    """What to say of a backend that nobody knows."""
    return f"unknown backend `{name}`; {nearest(name, BUILTINS)}{listing()}"


def listing() -> str:
    """Which backends are installed, and how to install the rest."""
    parts = [f"installed: {', '.join(installed())}"]
    missing = [name for name in BUILTINS if name not in set(installed())]
    if missing:
        hints = ", ".join(
            f"{name} (pip install 'castigate[{BUILTINS[name].extra}]')" for name in missing
        )
        parts.append(f"not installed: {hints}")
    parts.append("or give package.module:Class or path/to/file.py:Class")
    return "; ".join(parts)


def installed() -> Iterator[str]:
    """The backends whose framework is here."""
    for name, builtin in BUILTINS.items():
        if builtin.package is None or _exists(builtin.package):
            yield name
    yield from (point.name for point in entry_points(group=GROUP))
