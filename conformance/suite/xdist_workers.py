"""Under pytest-xdist: workers load the backends, and tell the process that gives out the work.

That process judges nothing: to load a framework there as well would only keep the workers waiting.
"""

from __future__ import annotations

from typing import Any

import pytest

OUTPUT = "castigate"


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is given its work by another."""
    return hasattr(config, "workerinput")


def gives_out_work(config: pytest.Config) -> bool:
    """Whether other processes judge, and this one gathers what they say."""
    # Without anybody to give it to, --dist alone changes nothing.
    is_shared = config.getoption("dist", "no") != "no" and bool(config.getoption("tx", None))
    return is_shared and not is_worker(config) and not config.getoption("collectonly")


def tell(config: pytest.Config, versions: dict[str, str], failed: str) -> None:
    """Leave word for the process that gives out the work: which versions, or what went wrong."""
    config.workeroutput[OUTPUT] = {"versions": versions, "failed": failed}  # type: ignore[attr-defined]


def named(versions: dict[str, str]) -> str:
    """Backends and their versions, as far as they are known."""
    return ", ".join(f"{name} {version}".rstrip() for name, version in versions.items())


class Workers:
    """A pytest plugin that hears which versions the workers judge, and what went wrong there."""

    def __init__(self, versions: dict[str, str]) -> None:
        self.versions = versions

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended; one that was killed has left no word."""
        told = getattr(node, "workeroutput", {}).get(OUTPUT)
        if told is None:
            return
        if told["failed"]:
            raise pytest.UsageError(told["failed"])
        self.versions.update(told["versions"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the head of the run could not know."""
        if any(self.versions.values()):
            terminalreporter.write_line(f"castigate: backends {named(self.versions)}")
