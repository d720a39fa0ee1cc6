"""Load a framework, and raise Unsupported for what it does not offer."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from oracles.protocol import NotInstalled, Unsupported
from specs.calls import SHAPE
from specs.cases import Case

PLAIN_MODES: Mapping[str, frozenset[str] | None] = {
    "saturate": None,
    "round_mode": None,
    "satmode": None,
    SHAPE: None,
    "mode": frozenset({"CAST_NONE"}),
    "casting": frozenset({"unsafe"}),
    "operator": frozenset({"trunc_sat"}),
    "profile": None,
}
"""By parameter, the values with which a cast without parameters answers cases; None: all values.

A shape is no parameter of the cast: it is the input tensor's own.
"""

REASONS: Mapping[str, str] = {
    "mode": "takes no rounding mode",
    "casting": "takes no casting mode",
}


def load(module: str, extra: str) -> Any:
    """Import a framework's module; raise NotInstalled with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise not_installed(error, extra) from error


def not_installed(error: ModuleNotFoundError, extra: str) -> NotInstalled:
    """Return the error that says how to install the missing module."""
    return NotInstalled(f"{error.name} is missing: pip install 'castigate[{extra}]'")


def require_variant(oracle: str, variant: str | None, known: tuple[str, ...]) -> None:
    """Raise Unsupported if the oracle does not have the variant."""
    if variant is not None and variant not in known:
        variants = f"its variants are {', '.join(known)}" if known else "it has none"
        raise Unsupported(f"{oracle} has no variant `{variant}`; {variants}")


def require_plain(case: Case, operation: str) -> None:
    """Raise Unsupported if a case has a mode that an operation without parameters cannot match."""
    for name, value in case.modes:
        accepted = PLAIN_MODES.get(name, frozenset())
        if accepted is not None and value not in accepted:
            reason = REASONS.get(name, f"takes no {name}")
            raise Unsupported(f"{operation} {reason}: {value}")


def plain_road(case: Case, operation: str) -> str:
    """Return the pair, the road of an operation without parameters; raise as ``require_plain``."""
    require_plain(case, operation)
    return f"{case.source}->{case.target}"


def first_line(error: BaseException) -> str:
    """Return the first line of the framework's message, or the error's type if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
