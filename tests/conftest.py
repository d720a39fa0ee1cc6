"""Which tests begin first: those that take long, lest one process be left with them."""

from __future__ import annotations

import pytest

LONG = (
    "proof/test_whole.py",
    "conformance/test_run.py",
    "conformance/test_kills.py",
    "conformance/test_full_tier.py",
    "conformance/test_gate_command.py",
    "conformance/test_crashes.py",
    "conformance/test_planted.py",
    "conformance/test_nightly.py",
    "conformance/test_progress.py",
    "wire/",
)
SHORT = len(LONG)


def _rank(item: pytest.Item) -> int:
    file = item.path.as_posix()
    return next((rank for rank, part in enumerate(LONG) if f"/tests/{part}" in file), SHORT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by how long a file takes; within a file the order stays."""
    items.sort(key=_rank)
