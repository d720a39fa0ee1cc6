"""A run with one judgement, and a helper for the errors that a run's folder raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reports.run_store.store import RunStore, create
from specs.errors import CastigateError
from tests.reports.common import HALF, divergence, judgement, record, steps

FOUND = [judgement(HALF, divergence(steps(3)))]
ROWS = [("ort", HALF, FOUND[0])]


def complete(out: str) -> RunStore:
    """Create a complete run."""
    return create(out, record()).finish(ROWS, lambda: 1)


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    """The message of the CastigateError that a call raises."""
    with pytest.raises(CastigateError) as caught:
        call(*arguments)
    return str(caught.value)
