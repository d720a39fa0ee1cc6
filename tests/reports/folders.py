"""A run's folder with one finding, and what is refused about it."""

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
    """A run that is complete."""
    return create(out, record()).finish(ROWS, lambda: 1)


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    """The words of the error that a call ends in."""
    with pytest.raises(CastigateError) as caught:
        call(*arguments)
    return str(caught.value)
