"""The pytest plugin: the options and hooks of ``pytest --pyargs conformance --backend=NAME``."""

from __future__ import annotations

import atexit
import gc
import math
import os
from collections.abc import Generator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from conformance.judging.asking import Settings
from conformance.pytest_plugin.durations import Durations, Spent, Stopwatch
from conformance.pytest_plugin.failures import FailureFolder
from conformance.pytest_plugin.findings_summary import FindingsSummary
from conformance.pytest_plugin.items import (
    FAILURES,
    JUDGING,
    SUMMARY,
    JudgedItem,
    Suite,
    ending_the_run,
)
from conformance.pytest_plugin.judging import PooledJudging, documents_asked_for
from conformance.pytest_plugin.ledger_check import (
    LEDGERS,
    Ledgers,
    differs_from_ledger,
    selecting_options,
)
from conformance.pytest_plugin.ledger_update import LedgerUpdate
from conformance.pytest_plugin.progress import SuiteProgress, VerdictSummary
from conformance.pytest_plugin.xdist_workers import (
    WorkerVersions,
    failures_folder,
    gives_out_work,
    is_worker,
    names_and_versions,
    report_error,
    report_versions,
)
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs
from oracles.backend.resource_limits import collect_garbage_rarely
from oracles.registry import available_backends
from reports.run_store.record import MOST_EXAMPLES
from specs.errors import CastigateError
from specs.house_rules import rules_texts
from specs.loader import document_named, documents, own_documents
from specs.selection import select

SUITE = Path(__file__).with_name("items.py")
"""The file that pytest collects for the suite."""
TIMEOUT_PLUGIN = "timeout"
"""pytest-timeout, which defines the option --timeout too."""
MAX_JOBS = 4
"""More workers would wait for pytest, which needs a third of a millisecond to report an item."""
MOST: Mapping[str, float] = {
    "--seed": math.inf,
    "--max-examples": MOST_EXAMPLES,
    "--durations-castigate": math.inf,
}
"""The options that are whole numbers, and the most that each may be."""
MOST_FAILURES = 3
"""Failures that are shown in full at the end of a run."""
REPORTED = "fE"
"""The outcomes that pytest lists at its end by default: failures and errors."""
MOST_DIGESTS, DIGITS = 3, 12
"""How many documents have their own digest in the header of a run, and how many digits of it."""
VERSIONS = pytest.StashKey[dict[str, str]]()
"""The version of each backend; empty until this process knows it."""
OWN_FOLDER = pytest.StashKey["TemporaryDirectory[str]"]()
"""A folder of this process. It is removed when Python ends, too, because xdist may stop a worker
before ``pytest_unconfigure``."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Define the suite's options."""
    group = parser.getgroup("castigate", "conformance of dtype casts")
    group.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="a backend to test: name, name:variant, package.module:Class, path/file.py:Class,"
        " exec:COMMAND",
    )
    group.addoption(
        "--document",
        action="append",
        default=[],
        metavar="NAME[:VERSION]",
        help="judge only this document (repeatable): the versions that a backend claims count, "
        "all if it claims none, and a version that is named",
    )
    group.addoption(
        "--rules",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="judge by these house rules what documents leave open (repeatable)",
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
    group.addoption("--chains", action="store_true", help="ask casts in company too: chains of two")
    group.addoption(
        "--seed", type=int, default=0, help="seed of random inputs, tensors and turns (default: 0)"
    )
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
        "--ledger",
        choices=("nearest", "exact"),
        default="nearest",
        help="for a version that a ledger was not made with: use the entries of the nearest "
        "version (default), or none",
    )
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

    Raises ``pytest.UsageError`` for wrong options. Under xdist the workers load the backends, and
    report versions and errors to the controller.
    """
    config.add_cleanup(partial(gc.set_threshold, *gc.get_threshold()))
    config.add_cleanup(gc.unfreeze)
    # When Python ends, it searches for garbage again.
    atexit.register(gc.freeze)
    collect_garbage_rarely()
    config.stash[OWN_FOLDER] = TemporaryDirectory(prefix="castigate-", ignore_cleanup_errors=True)
    config.pluginmanager.register(VerdictSummary(), "castigate-tally")
    if config.get_verbosity() < 1 and not is_worker(config):
        config.pluginmanager.register(SuiteProgress(config), "castigate-progress")
    if config.getoption("help"):
        return
    config.stash[VERSIONS] = versions = dict.fromkeys(config.getoption("--backend"), "")
    if not versions:
        raise pytest.UsageError(f"no backend is named; add --backend=NAME; {available_backends()}")
    for name, most in MOST.items():
        if not 0 <= (given := config.getoption(name) or 0) <= most:
            end = f"to {most:,}" if most < math.inf else "on"
            raise pytest.UsageError(f"{name} is {given}; give a whole number from 0 {end}")
    if config.getoption("--durations-castigate") is not None and gives_out_work(config):
        raise pytest.UsageError(
            "--durations-castigate measures no workers of xdist; leave out -n, pytest has its own"
        )
    _check_junit_file(config)
    if is_worker(config):
        report_versions(config, versions)
    try:
        _prepare(config, versions)
    except CastigateError as error:
        pytest_unconfigure(config)
        if not is_worker(config):
            raise pytest.UsageError(str(error)) from None
        report_error(config, str(error))


def _check_junit_file(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` if the file for `--junitxml` cannot be written.

    pytest itself tries to write it only at its end. The file's folder is created. Devices and FIFOs
    are not opened, because that may wait for a reader.
    """
    if is_worker(config) or not (named := config.getoption("--junitxml")):
        return
    path = Path(named).absolute()
    is_new = not path.exists()
    if not is_new and not path.is_file():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise pytest.UsageError(
            f"--junitxml: {named} cannot be written: {error.strerror}; give another path"
        ) from None


def _prepare(config: pytest.Config, versions: dict[str, str]) -> None:
    """Load the backends and their ledgers, fill in the versions, and register the plugins.

    A controller of xdist loads only ledgers. Raises CastigateError for an unknown document, a
    backend that cannot be loaded and options that cannot be used, and as ``Ledgers`` does.
    """
    names = list(versions)
    cases = select(documents_asked_for(config))  # raises if a document is unknown
    config.stash[LEDGERS] = ledgers = Ledgers(config, names)
    folder = failures_folder(config) or Path(config.stash[OWN_FOLDER].name)
    config.stash[FAILURES] = failures = FailureFolder(folder)
    if gives_out_work(config):
        workers = WorkerVersions(versions, failures.folder)
        config.pluginmanager.register(workers, "castigate-workers")
    else:
        jobs = 1 if is_worker(config) else min(os.cpu_count() or 1, MAX_JOBS)
        processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) * jobs
        configs = launch_configs(names, config.getoption("--python"), _timeout(config), processes)
        judging = PooledJudging(
            configs,
            _settings(config),
            cases,
            jobs,
            _stopwatch(config, jobs),
            has_chains=config.getoption("--chains"),
        )
        config.stash[JUDGING] = judging
        # With an option that leaves items out, only pytest's collection shows which ones are run.
        selects = selecting_options(config) or config.getoption("stepwise", None)
        if not selects and not is_worker(config):
            judging.begin()
        for backend in judging.backends:
            versions[backend.name] = backend.version
    summary = FindingsSummary(failures, versions, ledgers)
    if not is_worker(config):
        config.stash[SUMMARY] = summary
        config.pluginmanager.register(summary, "castigate-findings")
    update = LedgerUpdate(config, ledgers, versions, summary)
    config.pluginmanager.register(update, "castigate-ledger-update")


def _stopwatch(config: pytest.Config, jobs: int) -> Stopwatch | None:
    slowest = config.getoption("--durations-castigate")
    if slowest is None:
        return None
    stopwatch = Stopwatch(Spent)
    durations = Durations(stopwatch, slowest, jobs)
    config.pluginmanager.register(durations, "castigate-durations")
    return stopwatch


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the backends' processes, and remove the temporary folder of this process."""
    # pytest collects garbage five times at its end; what a whole run keeps need not be searched.
    gc.freeze()
    if JUDGING in config.stash:
        config.stash[JUDGING].close()
    if OWN_FOLDER in config.stash:
        config.stash[OWN_FOLDER].cleanup()


def _timeout(config: pytest.Config) -> float:
    """Return the time limit of an answer; the default if that of pytest-timeout is missing or 0."""
    given = config.getoption("--timeout")
    is_ours = not config.pluginmanager.hasplugin(TIMEOUT_PLUGIN)
    return float(given if is_ours else given or DEFAULT_TIMEOUT)


def _settings(config: pytest.Config) -> Settings:
    return Settings(
        config.getoption("--seed"),
        config.getoption("--max-examples"),
        frozenset(documents_asked_for(config)),
        config.getoption("--tier"),
        # Only under --runxfail such a case fails, and is shown with a script.
        hides_unclaimed=not config.getoption("runxfail"),
        keeps_all_answers=False,
        has_turns=not config.getoption("--update-ledger"),
        documents=tuple(own_documents(documents_asked_for(config)).values()),
        rules=rules_texts(documents_asked_for(config)),
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return lines with backends, digests of documents, tier, seed, max-examples and level."""
    return [
        f"castigate: backends {names_and_versions(config.stash[VERSIONS])}",
        f"castigate: documents {_digests(config)}",
        f"castigate: tier {config.getoption('--tier')}, seed {config.getoption('--seed')}, "
        f"max-examples {config.getoption('--max-examples')}, level {config.getoption('--level')}",
    ]


def _digests(config: pytest.Config) -> str:
    """Return the digest of each document that is asked; of many only their number and a digest."""
    asked = {each.partition(":")[0] for each in documents_asked_for(config)} or documents().digests
    digests = {name: document_named(name).digest for name in sorted(asked)}
    if len(digests) <= MOST_DIGESTS:
        return ", ".join(f"{name} {digest[:DIGITS]}" for name, digest in digests.items())
    whole = sha256("".join(digests.values()).encode()).hexdigest()
    return f"{len(digests)}, all together {whole[:DIGITS]}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Suite | None:
    """Return the suite for the file of its items; None for another file, or without backends."""
    if file_path != SUITE or JUDGING not in parent.config.stash:
        return None
    backends = parent.config.stash[JUDGING].backends
    suite: Suite = Suite.from_parent(parent, path=file_path, backends=backends)
    return suite


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Have the pool judge the selected items, but not with --collect-only; then run the items."""
    items = [item for item in session.items if isinstance(item, JudgedItem)]
    if items and not session.config.getoption("collectonly"):
        names = ((item.backend.name, item.name) for item in items)
        with ending_the_run(session.config):
            session.config.stash[JUDGING].begin(names, on_demand=is_worker(session.config))
    return (yield)


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run an item of the suite without a test's phases, and return True.

    Returns None, which leaves the item to pytest, for other tests, for an item with marks, and for
    any item under --pdb.
    """
    if not isinstance(item, JudgedItem) or item.own_markers or item.config.getoption("usepdb"):
        return None
    item.run()
    return True


def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> pytest.TestReport | None:
    """Report an item of the suite that did not fail; None leaves all others to pytest."""
    return item.report_of(call) if isinstance(item, JudgedItem) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, object, object]:
    """Show a few failures in full, and what the pools of workers reported.

    A broken cast fails in hundreds of cases of the same cause, which the findings report once, and
    what differs from a ledger is on its screen. So the others are hidden from pytest while it
    writes its sections; ``-v`` and ``-r`` show all.
    """
    stats = terminalreporter.stats
    failed = stats.get("failed", [])
    shown = [each for each in failed if not differs_from_ledger(each)][:MOST_FAILURES]
    hidden = len(failed) - len(shown)
    wants_all = config.get_verbosity() > 0 or config.getoption("reportchars") != REPORTED
    if hides := hidden > 0 and not wants_all:
        stats["failed"] = shown
    result = yield
    if hides:
        stats["failed"] = failed
        terminalreporter.write_line(f"{hidden:,} more failures; -v shows all, and -k CASE one")
    if JUDGING in config.stash:
        for message in config.stash[JUDGING].messages:
            terminalreporter.write_line(f"castigate: {message}")
    return result
