"""Which parameter values a cast without parameters stands for."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.protocol import Unsupported
from specs.calls import SHAPE
from specs.cases import Case

# None: the one cast is compared with every value of the parameter; a shape is the tensor's own.
PLAIN: Mapping[str, frozenset[str] | None] = {
    "saturate": None,
    "round_mode": None,
    "satmode": None,
    SHAPE: None,
    "mode": frozenset({"CAST_NONE"}),
}

REASONS: Mapping[str, str] = {"mode": "takes no rounding mode"}


def require_plain(case: Case, cast: str) -> None:
    """Refuse a case whose mode the framework's plain cast cannot stand for."""
    for name, value in case.modes:
        stands_for = PLAIN.get(name, frozenset())
        if stands_for is not None and value not in stands_for:
            reason = REASONS.get(name, f"takes no {name}")
            raise Unsupported(f"{cast} {reason}: {value}")
