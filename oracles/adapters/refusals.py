"""Load a framework, raise Unsupported for what it lacks, and tell by a call whether it does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oracles.protocol import NotInstalled, Unsupported
from oracles.registry import requirements_in
from specs.cases import SHAPE, Case
from specs.ruling import ruling

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
"""By parameter, the values in a case that a cast without parameters can answer; None: all values.

A shape is no parameter of the cast: it is the input tensor's own.
"""

REASONS: Mapping[str, str] = {
    "mode": "takes no rounding mode",
    "casting": "takes no casting mode",
}


def load(module: str, extra: str) -> Any:
    """Import a framework's module and return it.

    Raises NotInstalled with the command that installs ``extra``, the extra of Castigate with the
    framework.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise not_installed(error, extra) from error


def not_installed(error: ModuleNotFoundError, extra: str) -> NotInstalled:
    """Return the error that says how to install the missing module, by an extra of Castigate."""
    return NotInstalled(f"{error.name} is missing: pip install 'castigate[{extra}]'")


def load_own(module: str, adapter: str) -> Any:
    """Import a module for the adapter of a file, which has a folder of its own, and return it.

    Raises NotInstalled with the command that installs what the folder's requirements name.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        wanted = " ".join(f"'{each}'" for each in requirements_in(Path(adapter).parent))
        raise NotInstalled(f"{error.name} is missing: pip install {wanted}") from error


def require_variant(oracle: str, variant: str | None, known: tuple[str, ...]) -> None:
    """Raise Unsupported unless the variant is None or one of the oracle's, ``known``."""
    if variant is not None and variant not in known:
        variants = f"its variants are {', '.join(known)}" if known else "it has none"
        raise Unsupported(f"{oracle} has no variant `{variant}`; {variants}")


def require_plain(case: Case, operation: str) -> None:
    """Raise Unsupported if an operation without parameters cannot answer a case with these modes.

    ``PLAIN_MODES`` lists the modes that it can. ``operation`` names the operation in the message.
    """
    for name, value in case.modes:
        accepted = PLAIN_MODES.get(name, frozenset())
        if accepted is not None and value not in accepted:
            reason = REASONS.get(name, f"takes no {name}")
            raise Unsupported(f"{operation} {reason}: {value}")


def plain_road(case: Case, operation: str) -> str:
    """Return the pair of dtypes as text, the road of an operation without parameters.

    Raises Unsupported as ``require_plain`` does.
    """
    require_plain(case, operation)
    return f"{case.source}->{case.target}"


def wants_error(case: Case) -> bool:
    """Return whether the document of a cast wants an error in place of every answer."""
    return ruling(case).is_rejection


def is_lacking(
    refusals: tuple[type[Exception], ...], plain: Callable[[], Any], neighbor: Callable[[], Any]
) -> bool:
    """Return whether a framework refuses the call ``plain``, but not the call ``neighbor``.

    ``refusals`` are the classes of its refusals; other errors are raised. ``plain`` is a call that
    failed, with tensors so plain that only their dtypes can be at fault. ``neighbor`` is the same
    call with dtypes that the framework has: if that fails too, the framework itself is broken.
    """
    return _is_refused(refusals, plain) and not _is_refused(refusals, neighbor)


def _is_refused(refusals: tuple[type[Exception], ...], call: Callable[[], Any]) -> bool:
    try:
        call()
    except refusals:
        return True
    return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
