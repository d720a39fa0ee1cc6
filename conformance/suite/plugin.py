"""The options and hooks of ``pytest conformance --backend=…``."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import pytest

from conformance.judging.meeting import Settings
from conformance.judging.questions import meetings_of
from conformance.running.selection import select
from conformance.suite.items import Suite
from conformance.suite.ledger_check import LEDGERS, Ledgers
from conformance.suite.ledger_update import LedgerUpdate
from conformance.suite.parallel_judging import Errand, Helping, helpers_of
from conformance.suite.tally import Tally
from conformance.suite.xdist_workers import Workers, gives_out_work, is_worker, named, tell
from oracles.isolation.launch_config import SECONDS, homes
from oracles.isolation.loading import close, load_isolated
from oracles.registry import Backend, listing
from specs.errors import CastigateError
from specs.loader import documents

SUITE = Path(__file__).with_name("items.py")
TIMEOUT_PLUGIN = "timeout"
"""pytest-timeout has the option too."""
BACKENDS = pytest.StashKey[list[Backend]]()
VERSIONS = pytest.StashKey[dict[str, str]]()
"""The version of each backend, as far as this process knows them yet."""
BETWEEN_COLLECTIONS = (50_000, 20, 100)
"""Thousands of items and reports live to a run's end: to look for garbage among them as often as
Python does by itself cost up to three seconds in each process."""
FORGET_NOTES = pytest.StashKey["finalize[..., pytest.Config]"]()
"""Removes the folder in which Hypothesis keeps what it would otherwise leave in the current one."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """The suite's own options."""
    group = parser.getgroup("castigate", "conformance of dtype casts")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="who answers: name, name:variant, package.module:Class, path/file.py:Class",
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
        help="the Python that a backend lives in (repeatable)",
    )
    group.addoption("--no-ledger", action="store_true", help="excuse no divergence, known or not")
    group.addoption(
        "--update-ledger",
        action="store_true",
        help="write down what fails now as known, and strike out what no longer does",
    )
    if not pluginmanager.hasplugin(TIMEOUT_PLUGIN):
        group.addoption(
            "--timeout",
            type=float,
            default=SECONDS,
            metavar="SECONDS",
            help=f"what one answer of a backend may take (default: {SECONDS:g})",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Build the oracles before anything is collected: a wrong name stops the run at once.

    A process that gives out the work leaves that to its workers, and hears of it from them.
    """
    config.add_cleanup(partial(gc.set_threshold, *gc.get_threshold()))
    gc.set_threshold(*BETWEEN_COLLECTIONS)
    config.stash[BACKENDS] = []
    notes = mkdtemp(prefix="castigate-")
    # A worker may be told to end before it has come to its clean-up; this is done at exit too.
    config.stash[FORGET_NOTES] = finalize(config, rmtree, notes, ignore_errors=True)
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", notes)
    config.pluginmanager.register(Tally(), "castigate-tally")
    if config.getoption("help"):
        return
    config.stash[VERSIONS] = versions = dict.fromkeys(config.getoption("--backend"), "")
    if not versions:
        raise pytest.UsageError(f"say whom to judge with --backend=NAME; {listing()}")
    if config.getoption("--seed") < 0 or config.getoption("--max-examples") < 0:
        raise pytest.UsageError("--seed and --max-examples take whole numbers from 0 on")
    failed = ""
    try:
        _prepare(config, versions)
    except CastigateError as error:
        pytest_unconfigure(config)
        if not is_worker(config):
            raise pytest.UsageError(str(error)) from None
        failed = str(error)
    if is_worker(config):
        tell(config, versions, failed)


def _prepare(config: pytest.Config, versions: dict[str, str]) -> None:
    """Load the backends and their ledgers, and note the backends' versions."""
    names = list(versions)
    asked_for = config.getoption("--document")
    select(asked_for)
    helpers = helpers_of(config)
    processes = _workers() * (1 + helpers)
    where = homes(names, config.getoption("--python"), _seconds(config), processes)
    if helpers:
        updates = bool(config.getoption("--update-ledger"))
        errand = Errand(where, _settings(config), tuple(asked_for), keeps_answers=updates)
        helping = Helping(errand, helpers)
        config.pluginmanager.register(helping, "castigate-helping")
    if gives_out_work(config):
        config.pluginmanager.register(Workers(versions), "castigate-workers")
    else:
        for name, home in where.items():
            config.stash[BACKENDS].append(made := load_isolated(name, home))
            versions[name] = made.version
    config.stash[LEDGERS] = ledgers = Ledgers(config, names)
    update = LedgerUpdate(config, ledgers, versions)
    config.pluginmanager.register(update, "castigate-ledger-update")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes of the backends."""
    while made := config.stash.get(BACKENDS, []):
        close(made.pop())
    if FORGET_NOTES in config.stash:
        config.stash[FORGET_NOTES]()


def _seconds(config: pytest.Config) -> float:
    """What the user said of the time; another plugin's option of that name may have no value."""
    return float(config.getoption("--timeout") or SECONDS)


def _settings(config: pytest.Config) -> Settings:
    """What the user chose for all backends."""
    return Settings(
        config.getoption("--seed"),
        config.getoption("--max-examples"),
        frozenset(word.partition(":")[0] for word in config.getoption("--document")),
        config.getoption("--tier"),
    )


def _workers() -> int:
    """How many processes pytest has."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What was judged by what: enough to repeat the run."""
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in documents().digests.items())
    return [
        f"castigate: backends {named(config.stash[VERSIONS])}",
        f"castigate: documents {digests}",
        f"castigate: tier {config.getoption('--tier')}, seed {config.getoption('--seed')}, "
        f"max-examples {config.getoption('--max-examples')}, level {config.getoption('--level')}",
    ]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Suite | None:
    """The suite stands where its module is."""
    config = parent.config
    backends = config.stash[BACKENDS]
    if file_path != SUITE or not backends:
        return None
    settings, cases = _settings(config), select(config.getoption("--document"))
    meetings = meetings_of(backends, settings, cases)
    suite: Suite = Suite.from_parent(parent, path=file_path, meetings=meetings, cases=cases)
    return suite
