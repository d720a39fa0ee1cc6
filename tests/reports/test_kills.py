"""A run that is killed at any moment loses only what was not finished."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reports.run_store.open_run import open_run
from reports.run_store.storage import is_unfinished
from reports.run_store.store import create, resume
from tests.reports.common import record, same
from tests.reports.dying import TASKS, found, rows

ROOT = Path(__file__).parents[2]
DYING = [sys.executable, "-m", "tests.reports.dying"]
STEPS = 10
"""Before and after: four renames and the removal of the parts."""


def test_a_killed_writer_leaves_only_whole_parts(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    create(out, record())
    before: set[str] = set()
    for attempt in range(20):
        writer = subprocess.Popen([*DYING, "parts", out], cwd=ROOT, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        with writer:
            assert writer.stdout.readline() == b"begun\n"
            time.sleep(random.Random(attempt).uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
        damaged: list[str] = []
        store = resume(out, record())
        finished = store.finished(damaged.append)
        assert damaged == []
        assert before <= finished
        assert finished == {str(number) for number in range(len(finished))}
        for name in finished - before | {"0"}:
            assert same(tuple(store.read(name)), tuple(found(name)))
        assert not [path for path in tmp_path.rglob("*") if is_unfinished(path.name)]
        before = finished


def undisturbed(folder: Path) -> dict[str, bytes]:
    store = create(str(folder), record())
    for task in TASKS:
        store.write(task, found(task))
    store.finish(rows(store), lambda: 1)
    return tables(folder)


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_a_kill_between_any_two_steps_of_the_end_is_resumed(step: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    store = create(str(folder), record())
    for task in TASKS:
        store.write(task, found(task))
    died = subprocess.run([*DYING, "finish", str(folder), str(step)], cwd=ROOT, check=False)
    assert died.returncode == (9 if step < STEPS else 0)
    store = resume(str(folder), record())
    assert store.record.complete == (step >= 7)
    if not store.record.complete:
        assert store.finished() == set(TASKS)
        store = store.finish(rows(store), lambda: 1)
    assert store.record.exit_code == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "answers.parquet",
        "cases.parquet",
        "divergences.parquet",
        "run.json",
    ]
    assert tables(folder) == undisturbed(tmp_path / "other")
    assert open_run(str(folder)).record == store.record
