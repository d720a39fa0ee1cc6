"""The pytest plugin: the options and hooks of ``pytest --pyargs conformance --backend=NAME``."""

from __future__ import annotations

import atexit
import gc
import os
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import pytest

from conformance.judging.backend_judge import Settings
from conformance.judging.questions import judges_of
from conformance.running.selection import select
from conformance.suite.durations import Durations, Stopwatch, measured
from conformance.suite.failures import Failures
from conformance.suite.findings_summary import FindingsSummary
from conformance.suite.items import FAILURES, SUMMARY, Suite
from conformance.suite.ledger_check import LEDGERS, Ledgers
from conformance.suite.ledger_update import LedgerUpdate
from conformance.suite.parallel_judging import HelperConfig, ParallelJudging, count_helpers
from conformance.suite.tally import Tally
from conformance.suite.xdist_workers import (
    WorkerVersions,
    failures_folder,
    gives_out_work,
    is_worker,
    names_and_versions,
    report_to_controller,
)
from oracles.isolation.launch_config import DEFAULT_TIMEOUT, launch_configs
from oracles.isolation.loading import close, load_isolated
from oracles.isolation.resource_limits import collect_garbage_rarely
from oracles.registry import Backend, available_backends
from specs.errors import CastigateError
from specs.loader import documents

pytest_plugins = ("conformance.suite.run_loop",)
"""Registered with this plugin, so that the loop of an xdist worker still comes first."""
SUITE = Path(__file__).with_name("items.py")
"""The file that pytest collects for the suite."""
TIMEOUT_PLUGIN = "timeout"
"""pytest-timeout, which defines the option --timeout too."""
HELPING = "castigate-helping"
"""The plugin that shares the items with helpers, where there are some."""
BACKENDS = pytest.StashKey[list[Backend]]()
VERSIONS = pytest.StashKey[dict[str, str]]()
"""The version of each backend; empty until this process knows it."""
STOPWATCH = pytest.StashKey[Stopwatch]()
"""Measures the judging, where --durations-castigate wants it."""
OWN_FOLDER = pytest.StashKey[Path]()
"""A temporary folder of this process."""
REMOVE_OWN_FOLDER = pytest.StashKey["finalize[..., pytest.Config]"]()
"""Removes it at the end; Hypothesis stores files there too, instead of in the current folder."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Define the suite's options."""
    group = parser.getgroup("castigate", "conformance of dtype casts")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="a backend to test: name, name:variant, package.module:Class, path/file.py:Class",
    )
    group.addoption(
        "--document",
        action="append",
        default=[],
        metavar="NAME[:VERSION]",
        help="judge only this document (repeatable); a document asked for counts as claimed",
    )
    group.addoption(
        "--level",
        choices=("required", "recommended"),
        default="recommended",
        help="the weakest level whose breach fails (default: recommended)",
    )
    group.addoption(
        "--tier",
        choices=("quick", "full"),
        default="quick",
        help="full: every input of 32-bit sources, breakpoints and 2^30 more of 64-bit ones",
    )
    group.addoption("--seed", type=int, default=0, help="seed of the random inputs (default: 0)")
    group.addoption(
        "--max-examples",
        type=int,
        default=1000,
        metavar="N",
        help="random inputs per pair with a source wider than 16 bits (default: 1000)",
    )
    group.addoption(
        "--python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="the Python in which a backend is installed (repeatable)",
    )
    group.addoption("--no-ledger", action="store_true", help="fail known divergences too")
    group.addoption(
        "--update-ledger",
        action="store_true",
        help="list what fails now as known, and remove what no longer fails",
    )
    group.addoption(
        "--durations-castigate",
        type=int,
        metavar="N",
        help="show where the time went, and the N dtype pairs that took longest",
    )
    if not pluginmanager.hasplugin(TIMEOUT_PLUGIN):
        group.addoption(
            "--timeout",
            type=float,
            default=DEFAULT_TIMEOUT,
            metavar="SECONDS",
            help=f"time limit of one answer of a backend (default: {DEFAULT_TIMEOUT:g})",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Load the backends before anything is collected, so that a wrong name stops the run at once.

    A controller of xdist leaves that to its workers, which report versions and errors to it.
    """
    config.add_cleanup(partial(gc.set_threshold, *gc.get_threshold()))
    config.add_cleanup(gc.unfreeze)
    # When Python ends, it searches for garbage again.
    atexit.register(gc.freeze)
    collect_garbage_rarely()
    config.stash[BACKENDS] = []
    config.stash[OWN_FOLDER] = Path(folder := mkdtemp(prefix="castigate-"))
    # A finalizer, because xdist may stop a worker before pytest_unconfigure; it runs at exit too.
    config.stash[REMOVE_OWN_FOLDER] = finalize(config, rmtree, folder, ignore_errors=True)
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", folder)
    config.pluginmanager.register(Tally(), "castigate-tally")
    if config.getoption("help"):
        return
    config.stash[VERSIONS] = versions = dict.fromkeys(config.getoption("--backend"), "")
    if not versions:
        raise pytest.UsageError(f"no backend is named; add --backend=NAME; {available_backends()}")
    for name in ("--seed", "--max-examples", "--durations-castigate"):
        if (config.getoption(name) or 0) < 0:
            raise pytest.UsageError(f"{name} is negative; give a whole number from 0 on")
    if config.getoption("--durations-castigate") is not None and gives_out_work(config):
        raise pytest.UsageError(
            "--durations-castigate measures no workers of xdist; leave out -n, pytest has helpers"
        )
    message = ""
    try:
        _prepare(config, versions)
    except CastigateError as error:
        pytest_unconfigure(config)
        if not is_worker(config):
            raise pytest.UsageError(str(error)) from None
        message = str(error)
    if is_worker(config):
        report_to_controller(config, versions, message)


def _prepare(config: pytest.Config, versions: dict[str, str]) -> None:
    """Load the backends and their ledgers, fill in the versions, and register the plugins."""
    names = list(versions)
    documents_only = config.getoption("--document")
    cases = select(documents_only)  # raises if a document is unknown
    config.stash[FAILURES] = failures = Failures(_failures_folder(config))
    helpers = count_helpers(config)
    stopwatch = _stopwatch(config, helpers)
    processes = _count_pytest_processes() * (1 + helpers)
    configs = launch_configs(names, config.getoption("--python"), _timeout(config), processes)
    descriptions: dict[str, Any] = {}
    if helpers:
        helper = HelperConfig(
            configs, _settings(config), tuple(documents_only), failures, stopwatch is not None
        )
        judging = ParallelJudging(helper, helpers, stopwatch)
        config.pluginmanager.register(judging, HELPING)
        descriptions = judging.start_early(config, cases, len(names))
    if gives_out_work(config):
        workers = WorkerVersions(versions, failures.folder)
        config.pluginmanager.register(workers, "castigate-workers")
    else:
        for name, launch_config in configs.items():
            backend = load_isolated(name, launch_config, description=descriptions.get(name))
            config.stash[BACKENDS].append(backend)
            versions[name] = backend.version
    config.stash[LEDGERS] = ledgers = Ledgers(config, names)
    summary = FindingsSummary(failures, versions, ledgers)
    if not is_worker(config):
        config.stash[SUMMARY] = summary
        config.pluginmanager.register(summary, "castigate-findings")
    update = LedgerUpdate(config, ledgers, versions, summary)
    config.pluginmanager.register(update, "castigate-ledger-update")


def _stopwatch(config: pytest.Config, helpers: int) -> Stopwatch | None:
    """Register the plugin that shows where the time went, and return its stopwatch."""
    slowest = config.getoption("--durations-castigate")
    if slowest is None:
        return None
    config.stash[STOPWATCH] = stopwatch = Stopwatch()
    durations = Durations(stopwatch, slowest, helpers)
    config.pluginmanager.register(durations, "castigate-durations")
    return stopwatch


def _failures_folder(config: pytest.Config) -> Path:
    """The folder in which this process stores failures: a worker's is its controller's."""
    return failures_folder(config) or config.stash[OWN_FOLDER]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes of the backends."""
    # pytest collects garbage five times at its end; what a whole run keeps need not be searched.
    gc.freeze()
    while backends := config.stash.get(BACKENDS, []):
        close(backends.pop())
    if REMOVE_OWN_FOLDER in config.stash:
        config.stash[REMOVE_OWN_FOLDER]()


def _timeout(config: pytest.Config) -> float:
    """The time limit of an answer; the option of pytest-timeout may have no value."""
    return float(config.getoption("--timeout") or DEFAULT_TIMEOUT)


def _settings(config: pytest.Config) -> Settings:
    """The settings that apply to all backends."""
    return Settings(
        config.getoption("--seed"),
        config.getoption("--max-examples"),
        frozenset(word.partition(":")[0] for word in config.getoption("--document")),
        config.getoption("--tier"),
        # Only under --runxfail such a case fails, and is shown with a script.
        hides_unclaimed=not config.getoption("runxfail"),
    )


def _count_pytest_processes() -> int:
    """The number of processes that judge: xdist's workers, or pytest itself."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Show the backends, documents and options: enough to repeat the run."""
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in documents().digests.items())
    return [
        f"castigate: backends {names_and_versions(config.stash[VERSIONS])}",
        f"castigate: documents {digests}",
        f"castigate: tier {config.getoption('--tier')}, seed {config.getoption('--seed')}, "
        f"max-examples {config.getoption('--max-examples')}, level {config.getoption('--level')}",
    ]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Suite | None:
    """Collect the suite at the file of its items."""
    config = parent.config
    backends = config.stash[BACKENDS]
    if file_path != SUITE or not backends:
        return None
    settings, cases = _settings(config), select(config.getoption("--document"))
    judges, stopwatch = judges_of(backends, settings, cases), config.stash.get(STOPWATCH, None)
    asked = [
        (backend, list(questions())) for backend, questions in measured(stopwatch, judges, cases)
    ]
    if (judging := config.pluginmanager.get_plugin(HELPING)) is not None:
        judging.begin_early(asked)
    suite: Suite = Suite.from_parent(parent, path=file_path, asked=asked)
    return suite
