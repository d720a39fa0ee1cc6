"""Forked workers end as spawned ones do; workers are spawned where a fork is not safe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from conformance.running.fork_server import ForkServer, fork_server
from conformance.running.supervisor import spawn
from oracles.registry import BUILTINS
from specs.errors import CastigateError
from tests.conformance.processes import ROOT, is_alive, wait_for_ends

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")
THREADS = Path("/proc/self/task")
MOST_LOST = 10


def report(link: Connection, module: str) -> None:
    """Run as a worker: send a report of this process, then exit with the code received."""
    link.send((os.getpid(), os.getppid(), module in sys.modules, len(list(THREADS.iterdir()))))
    os._exit(link.recv())


def report_of(server: ForkServer, module: str) -> tuple[int, int, bool, int]:
    """Start a worker; return its pid, its parent's, whether it has a module, its thread count."""
    process, link = server.start(report, module)
    found: tuple[int, int, bool, int] = link.recv()
    process.kill()
    process.join()
    return found


@pytest.fixture
def server() -> Iterator[ForkServer]:
    # Spawned: a test's own process may have threads.
    server = ForkServer(spawn, spawn)
    yield server
    server.close()


def test_a_process_that_is_killed_before_it_begins_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, ends = SpawnProcess.start, iter([True, True, False])

    def start_or_lose(process: SpawnProcess) -> None:
        # Python 3.14's Popen raises this if the process ended before it read its order.
        if next(ends, True):
            raise BrokenPipeError
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", start_or_lose)
    process, link = spawn(report, "")
    assert link.recv()[1] == os.getpid()
    link.send(3)
    process.join()
    assert process.exitcode == 3
    with pytest.raises(CastigateError, match="10 processes in turn were ended before they began"):
        spawn(report, "")


def test_workers_are_children_of_the_server_and_have_exit_codes(server: ForkServer) -> None:
    first, to_first = server.start(report, "")
    second, to_second = server.start(report, "")
    assert to_first.recv()[1] == to_second.recv()[1] != os.getpid()
    to_second.send(7)
    second.join()
    first.kill()
    first.join()
    assert (first.exitcode, second.exitcode) == (-signal.SIGKILL, 7)
    first.kill()


def test_a_second_server_has_imported_a_package_and_the_first_has_not(server: ForkServer) -> None:
    second = ForkServer(server.start, server.start, "this")
    (_, _, is_here, _), (_, _, is_there, threads) = (
        report_of(each, "this") for each in (server, second)
    )
    assert (is_here, is_there, threads) == (False, True, 1)
    second.close()


def test_workers_end_with_their_server(server: ForkServer) -> None:
    second = ForkServer(server.start, server.start)
    process, link = second.start(report, "")
    pid, parent, *_ = link.recv()
    second.close()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert wait_for_ends([pid, parent]) == []


def test_without_a_server_its_own_parent_starts_the_workers(server: ForkServer) -> None:
    second = ForkServer(server.start, server.start)
    _, parent, *_ = report_of(second, "")
    os.kill(parent, signal.SIGKILL)
    assert wait_for_ends([parent]) == []
    for _ in range(MOST_LOST):
        process, link = second.start(report, "")
        try:
            its_parent = link.recv()[1]
            break
        except EOFError:
            # The link of a killed server may still take an order; a pool replaces such a worker.
            process.join()
            assert process.exitcode == -signal.SIGKILL
    assert its_parent not in (parent, os.getpid())
    link.send(0)
    process.join()
    assert process.exitcode == 0


def test_a_package_that_starts_threads_is_not_shared(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with_path = ForkServer(spawn, spawn)
    second = ForkServer(with_path.start, with_path.start, "threaded")
    # An order may be in the pipe already when the server ends.
    with suppress(EOFError, OSError):
        second.start(report, "threaded")[1].recv()
    assert not report_of(second, "threaded")[2]
    with_path.close()


@pytest.mark.parametrize("reason", ["thread", "framework"])
def test_a_process_that_may_not_be_forked_has_no_server(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    if reason == "thread":
        threading.Thread(target=ended.wait).start()
    else:
        monkeypatch.setitem(sys.modules, "torch", os)
    with fork_server() as server:
        assert server is None
    ended.set()


def test_a_process_that_has_imported_the_command_only_has_a_server() -> None:
    program = (
        "import conformance.commands.run\n"
        "from conformance.running.fork_server import fork_server\n"
        "with fork_server() as server:\n"
        "    print(server is not None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    "package", [each.package for each in BUILTINS.values() if each.forks_after_import]
)
def test_an_import_starts_no_thread(package: Any, server: ForkServer) -> None:
    pytest.importorskip(package)
    second = ForkServer(server.start, server.start, package)
    assert report_of(second, package)[2]
    second.close()


def test_the_end_of_a_server_ends_all(server: ForkServer) -> None:
    links = [server.start(report, "")[1] for _ in range(3)]
    pids = [link.recv()[0] for link in links]
    assert all(map(is_alive, pids))
    server.close()
    assert wait_for_ends(pids) == []
