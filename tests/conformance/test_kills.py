"""A run whose workers or parent are killed at any moment comes to the same bytes in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conformance.processes import (
    BOOL,
    FULL,
    ONNX,
    PROC,
    SECONDS_TO_END,
    backend,
    castigate,
    resume_option,
    run,
    start_castigate,
    tables,
    wait_for_ends,
    workers,
)

KILLS = int(os.environ.get("KILLS", "12"))
"""`tox -e kills` sets 50."""
SLOWED = {"RUNNABLE_PAUSE": "0.0004"}
"""Makes a sweep take seconds, with the same answers."""
GIVEN = (backend("WrongRange"), *BOOL, FULL, "--jobs=2")
needs_proc = pytest.mark.skipif(
    not list(PROC.glob("self/task/*/children")), reason="needs a list of a process's children"
)


class Killer:
    """Kills workers and parents at moments that a seed determines."""

    def __init__(self, seed: int, kills: int) -> None:
        self.chance = random.Random(seed)
        self.left = kills
        self.killed: Counter[str] = Counter()

    def disturb(self, process: subprocess.Popen[str]) -> bool:
        """Kill until the parent is dead or no kill is left; return whether it was killed."""
        lives = self.chance.randrange(4)
        while self.left:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.chance.uniform(0.1, 1.6 if lives else 4.0))
                return False
            found = workers(process.pid)
            if lives and not found:
                continue  # There is no worker yet, as on a busy machine.
            self.left -= 1
            if lives:
                lives -= 1
                self.killed["worker"] += 1
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(found), signal.SIGKILL)
            else:
                self.killed["parent"] += 1
                process.kill()
                assert wait_for_ends(found) == []
                return True
        return False

    def whole_run(self, folder: Path) -> None:
        """Disturb a run, and continue it until it is complete."""
        while True:
            arguments = ("run", *GIVEN, f"--out={folder}", *resume_option(folder))
            process = start_castigate(*arguments, env=SLOWED)
            was_killed = self.disturb(process)
            _, err = process.communicate(timeout=SECONDS_TO_END)
            # A worker that is still starting when its parent dies prints a traceback of Python.
            assert was_killed or "Traceback" not in err, err
            if not was_killed:
                assert process.returncode == 1, err
                return
            assert process.returncode == -signal.SIGKILL


@pytest.mark.nightly
@needs_proc
def test_kills_at_random_moments_change_no_byte(tmp_path: Path) -> None:
    assert run(tmp_path / "undisturbed", *GIVEN) == 1
    undisturbed = tables(tmp_path / "undisturbed")
    killer, runs = Killer(7, KILLS), 0
    while killer.left:
        folder = tmp_path / str(runs)
        killer.whole_run(folder)
        assert tables(folder) == undisturbed
        assert sorted(path.name for path in folder.iterdir()) == [
            "answers.parquet",
            "cases.parquet",
            "causes.json",
            "divergences.parquet",
            "pairs.parquet",
            "problems.parquet",
            "run.json",
        ]
        runs += 1
    assert killer.killed.total() == KILLS
    assert min(killer.killed.values()) > KILLS // 5


@pytest.mark.ci_runs_one_of(3)
@needs_proc
@pytest.mark.parametrize("name", ["Hangs", "HangsAndHoldsTheLock", "HangsLoading"])
def test_no_worker_outlives_its_parent(name: str, tmp_path: Path) -> None:
    arguments = ("run", backend(name), ONNX, "--source=int4", "--target=int2")
    process = start_castigate(*arguments, f"--out={tmp_path / 'run'}")
    last = time.monotonic() + SECONDS_TO_END
    while not (found := workers(process.pid)) and time.monotonic() < last:
        time.sleep(0.05)
    # Usually the worker hangs by now; if it is elsewhere, it must end as well.
    time.sleep(3)
    found = workers(process.pid)
    assert found
    process.kill()
    process.wait()
    left = wait_for_ends(found)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert left == []


@needs_proc
def test_a_worker_that_is_killed_while_loading_is_replaced(tmp_path: Path) -> None:
    process = start_castigate("run", backend("Right"), *BOOL, f"--out={tmp_path / 'run'}")
    killed: set[int] = set()
    while process.poll() is None and len(killed) < 5:
        for pid in set(workers(process.pid)) - killed:
            killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    out, err = process.communicate(timeout=SECONDS_TO_END)
    assert process.returncode == 0, err
    assert len(killed) >= 5
    assert "4,294" not in out


@pytest.mark.nightly
def test_resume_takes_all_options_from_the_run(tmp_path: Path) -> None:
    process = start_castigate(
        "run", *GIVEN, f"--out={tmp_path / 'run'}", env={"RUNNABLE_PAUSE": "0.002"}
    )
    parts = tmp_path / "run" / "parts"
    while process.poll() is None and not list(parts.glob("*.part")):
        time.sleep(0.05)
    process.kill()
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in parts.glob("*.part")}
    assert kept
    # No other option is needed, and finished tasks are not done again.
    code, _, err = castigate("run", f"--out={tmp_path / 'run'}", "--resume")
    assert code == 1
    assert f" of {17 - len(kept)} tasks" in err
