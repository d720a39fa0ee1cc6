"""A pytest plugin that runs the suite's items, without what pytest does around each test.

An item has no set-up, no output and no marks; what pytest does for them takes as long as its cast.
"""

from __future__ import annotations

from typing import TypeGuard

import pytest

from conformance.suite.items import JudgedItem

STEPS = (
    "pytest_runtest_logstart",
    "pytest_runtest_makereport",
    "pytest_report_teststatus",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
)
"""The hooks in which plugins can follow each step of an item."""
NEED_ONE_REPORT = frozenset(
    (
        *(f"_pytest.{name}" for name in ("cacheprovider", "logging", "main", "runner", "skipping")),
        *(f"_pytest.{name}" for name in ("subtests", "terminal", "tmpdir", "unittest")),
        "_hypothesis_pytestplugin",
        *(f"conformance.suite.{name}" for name in ("ledger_update", "tally")),
    )
)
"""Modules whose hooks need only the report of an item's call."""


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the suite's items one after another.

    Where other items are among them, or a plugin of somebody else acts around each, pytest does.
    """
    config = session.config
    own = [item for item in session.items if _needs_no_phases(item)]
    around = [
        module
        for module in _modules_of(config, "pytest_runtest_protocol")
        if not module.startswith(("_pytest.", __name__))
    ]
    is_asked_otherwise = session.testsfailed or config.getoption("collectonly") or around
    if is_asked_otherwise or len(own) < len(session.items):
        return None
    is_watched = _is_watched(config)
    for number, item in enumerate(own):
        if is_watched:
            item.run()
        else:
            item.run_unwatched(is_first=number == 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run an item of the suite without the phases of a test."""
    if not _needs_no_phases(item):
        return None
    item.run()
    return True


def _needs_no_phases(item: pytest.Item) -> TypeGuard[JudgedItem]:
    """Whether an item is of the suite, and is neither marked by somebody nor to be debugged."""
    return (
        isinstance(item, JudgedItem)
        and not item.own_markers
        and not item.config.getoption("usepdb")
    )


def _is_watched(config: pytest.Config) -> bool:
    """Whether items are shown one by one, or a plugin wants more of them than one report."""
    modules = {module for step in STEPS for module in _modules_of(config, step)}
    return config.get_verbosity() > 0 or not modules <= NEED_ONE_REPORT


def _modules_of(config: pytest.Config, hook: str) -> set[str]:
    """The modules of all plugins that implement a hook."""
    return {each.function.__module__ for each in getattr(config.hook, hook).get_hookimpls()}
