"""Marks the tests that run at night, and lets long ones begin first, so that no process waits.

Hypothesis draws the same examples in every run of CI and of the README's command, so that a
correct change cannot fail by chance. The profile `night` (`tox -e search`) draws others each time,
many more of them, and keeps those that fail; what it finds becomes an `@example` of its test.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

FEW, MANY = 30, 1000
"""The examples of a property in CI, and in a night."""

# The time that an example takes depends on the machine's load, so there is no deadline.
settings.register_profile(
    "castigate", settings(), max_examples=FEW, deadline=None, derandomize=True, database=None
)
settings.register_profile(
    "night",
    settings(),
    deadline=None,
    derandomize=False,
    print_blob=True,
    max_examples=MANY,
    database=DirectoryBasedExampleDatabase(os.environ.get("EXAMPLES", ".hypothesis/examples")),
)
settings.load_profile("castigate")

LONG = (
    "test_docs.py",
    "conformance/extras/cluster/",
    "conformance/extras/codec/",
    "conformance/extras/vectors/",
    "conformance/test_gate_cheats.py",
    "conformance/test_gate_command.py",
    "conformance/test_ledger.py",
    "conformance/test_nightly.py",
    "conformance/test_crashes.py",
    "conformance/test_suite.py",
    "conformance/test_house_rules.py",
    "conformance/families/cast/test_invariances.py",
    "html/test_browser.py",
    "lab/proof/",
    "lab/test_mutants.py",
    "adapters/test_contract.py",
    "wire/",
)
SHORT = len(LONG)


@pytest.fixture(autouse=True, scope="session")
def _no_hypothesis_in_other_pytests() -> Iterator[None]:
    """Spare the pytests that tests start the import of Hypothesis, a quarter of their start."""
    with patch.dict(os.environ, PYTEST_ADDOPTS="-p no:hypothesispytest"):
        yield


def _rank(item: pytest.Item) -> int:
    file = item.path.as_posix()
    return next((rank for rank, part in enumerate(LONG) if f"/tests/{part}" in file), SHORT)


def _mark_nightly(items: list[pytest.Item]) -> None:
    """Mark as ``nightly`` what ``ci_runs_one_of(N)`` leaves to the night.

    Of the tests that share one such mark, in their order, CI runs the first and each Nth after it:
    the parameters of a function, all tests of a class or, with ``pytestmark``, of a module.
    """
    counts: Counter[int] = Counter()
    for item in items:
        mark = item.get_closest_marker("ci_runs_one_of")
        if mark is not None:
            [every] = mark.args
            if counts[id(mark)] % every:
                item.add_marker(pytest.mark.nightly)
            counts[id(mark)] += 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run at night; move long files to the front, keeping a file's order."""
    _mark_nightly(items)
    items.sort(key=_rank)
