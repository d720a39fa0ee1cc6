"""Under pytest-xdist: the workers load the backends, and report their versions to the controller.

The controller judges nothing: to load a framework there too would only keep the workers waiting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OUTPUT_KEY = "castigate"
FAILURES_KEY = "castigate-failures"
"""The key of the folder of failures, in what the controller sends to each worker."""


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of xdist."""
    return hasattr(config, "workerinput")


def gives_out_work(config: pytest.Config) -> bool:
    """Whether this process is the controller of xdist, whose workers judge."""
    # Without workers to distribute to, --dist alone changes nothing.
    is_shared = config.getoption("dist", "no") != "no" and bool(config.getoption("tx", None))
    return is_shared and not is_worker(config) and not config.getoption("collectonly")


def report_versions(config: pytest.Config, versions: dict[str, str]) -> None:
    """In a worker: send the controller ``versions`` as they are when the worker ends."""
    config.workeroutput[OUTPUT_KEY] = {"versions": versions, "failed": ""}  # type: ignore[attr-defined]


def report_error(config: pytest.Config, error: str) -> None:
    """In a worker, after ``report_versions``: send the controller why a backend is not judged."""
    config.workeroutput[OUTPUT_KEY]["failed"] = error  # type: ignore[attr-defined]


def failures_folder(config: pytest.Config) -> Path | None:
    """In a worker, return the folder of failures that the controller named; elsewhere None."""
    named = getattr(config, "workerinput", {}).get(FAILURES_KEY)
    return Path(named) if named is not None else None


def names_and_versions(versions: dict[str, str]) -> str:
    """Join the names of backends with their versions, as far as these are known."""
    return ", ".join(f"{name} {version}".rstrip() for name, version in versions.items())


class WorkerVersions:
    """A pytest plugin of the controller that collects the versions that workers report.

    It fills them into ``versions``. ``failures`` is the folder of failures.
    """

    def __init__(self, versions: dict[str, str], failures: Path) -> None:
        self.versions = versions
        self.failures = failures

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the folder in which to store failures."""
        node.workerinput[FAILURES_KEY] = str(self.failures)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a worker reported before it ended; one that was killed reported nothing.

        Raises ``pytest.UsageError`` if the worker could not judge a backend.
        """
        output = getattr(node, "workeroutput", {}).get(OUTPUT_KEY)
        if output is None:
            return
        if output["failed"]:
            raise pytest.UsageError(output["failed"])
        self.versions.update(output["versions"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the versions, which were not known yet when the header was printed."""
        if any(self.versions.values()):
            terminalreporter.write_line(f"castigate: backends {names_and_versions(self.versions)}")
