"""What every adapter needs of its framework: to find it, and to quote it in one line."""

from __future__ import annotations

import importlib
from typing import Any

from oracles.protocol import NotInstalled, Unsupported


def load(module: str, extra: str) -> Any:
    """The framework's module, or the one-line advice that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        advice = f"{error.name} is missing: pip install 'castigate[{extra}]'"
        raise NotInstalled(advice) from error


def require_variant(oracle: str, variant: str | None, known: tuple[str, ...]) -> None:
    """Refuse a variant that the oracle does not have."""
    if variant is not None and variant not in known:
        variants = f"its variants are {', '.join(known)}" if known else "it has none"
        raise Unsupported(f"{oracle} has no variant `{variant}`; {variants}")


def first_line(error: BaseException) -> str:
    """The framework's reason, as far as one line goes."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
