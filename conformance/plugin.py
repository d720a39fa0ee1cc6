"""The options and hooks of ``pytest conformance --backend=…``."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.full import FullMeeting
from conformance.meet import Meeting, Settings
from conformance.selection import select
from conformance.suite import Suite
from conformance.tally import Tally
from oracles.registry import Backend, listing, load_backend
from oracles.smoke import smoke
from specs.errors import CastigateError
from specs.load import documents

SUITE = Path(__file__).with_name("suite.py")
BACKENDS = pytest.StashKey[list[Backend]]()


def pytest_addoption(parser: pytest.Parser) -> None:
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


def pytest_configure(config: pytest.Config) -> None:
    """Build the oracles before anything is collected: a wrong name stops the run at once."""
    config.stash[BACKENDS] = []
    config.pluginmanager.register(Tally(), "castigate-tally")
    if config.getoption("help"):
        return
    names = list(dict.fromkeys(config.getoption("--backend")))
    if not names:
        raise pytest.UsageError(f"say whom to judge with --backend=NAME; {listing()}")
    if config.getoption("--seed") < 0 or config.getoption("--max-examples") < 0:
        raise pytest.UsageError("--seed and --max-examples take whole numbers from 0 on")
    try:
        select(config.getoption("--document"))
        config.stash[BACKENDS] = [load_backend(name) for name in names]
    except CastigateError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What was judged by what: enough to repeat the run."""
    backends = ", ".join(f"{made.name} {made.version}" for made in config.stash[BACKENDS])
    digests = ", ".join(f"{name} {made.digest[:12]}" for name, made in documents().items())
    return [
        f"castigate: backends {backends}",
        f"castigate: documents {digests}",
        f"castigate: tier {config.getoption('--tier')}, seed {config.getoption('--seed')}, "
        f"max-examples {config.getoption('--max-examples')}, level {config.getoption('--level')}",
    ]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Suite | None:
    """The suite stands where its module is."""
    config = parent.config
    if file_path != SUITE:
        return None
    asked_for = config.getoption("--document")
    settings = Settings(
        config.getoption("--seed"),
        config.getoption("--max-examples"),
        frozenset(word.partition(":")[0] for word in asked_for),
    )
    cases = select(asked_for)
    meetings: list[Meeting | FullMeeting] = []
    for made in config.stash[BACKENDS]:
        meeting = Meeting(made, smoke(made), settings)
        full = config.getoption("--tier") == "full"
        meetings.append(FullMeeting(meeting, cases) if full else meeting)
    suite: Suite = Suite.from_parent(parent, path=file_path, meetings=meetings, cases=cases)
    return suite
