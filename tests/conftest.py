"""Which tests run, and which begin first: those that take long, so that no process waits."""

from __future__ import annotations

import pytest

from tests.nightly import mark_nightly

LONG = (
    "test_docs.py",
    "conformance/test_run.py",
    "conformance/test_ledger.py",
    "reference/test_agreement.py",
    "conformance/test_full_tier.py",
    "conformance/test_gate_command.py",
    "conformance/test_crashes.py",
    "conformance/test_kills.py",
    "conformance/test_suite.py",
    "conformance/test_progress.py",
    "conformance/test_planted.py",
    "conformance/test_nightly.py",
    "conformance/test_diff_command.py",
    "conformance/test_history.py",
    "conformance/test_shadowing.py",
    "conformance/test_invariances.py",
    "reports/test_closed_forms.py",
    "adapters/test_contract.py",
    "adapters/test_torch_compile.py",
    "wire/",
    "test_wheel.py",
)
SHORT = len(LONG)


def _rank(item: pytest.Item) -> int:
    file = item.path.as_posix()
    return next((rank for rank, part in enumerate(LONG) if f"/tests/{part}" in file), SHORT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs at night; sort by how long a file takes, within a file the order stays."""
    mark_nightly(items)
    items.sort(key=_rank)
