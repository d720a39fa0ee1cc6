"""A run that is killed at any moment loses only unfinished tasks."""

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
from tests.reports.killed_writers import TASKS, all_rows, judgements_of

ROOT = Path(__file__).parents[2]
KILLED_WRITER = [sys.executable, "-m", "tests.reports.killed_writers"]
STEPS = 14
"""Before and after each of five renames and the removal of the parts."""


@pytest.mark.nightly
def test_a_killed_writer_leaves_only_whole_parts(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    create(out, record())
    finished_before: set[str] = set()
    for attempt in range(20):
        writer = subprocess.Popen([*KILLED_WRITER, "parts", out], cwd=ROOT, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        with writer:
            assert writer.stdout.readline() == b"begun\n"
            time.sleep(random.Random(attempt).uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
        damaged: list[str] = []
        store = resume(out, record())
        finished = store.finished(damaged.append)
        assert damaged == []
        assert finished_before <= finished
        assert finished == {str(number) for number in range(len(finished))}
        for name in finished - finished_before | {"0"}:
            assert same(tuple(store.read(name)), tuple(judgements_of(name)))
        assert not [path for path in tmp_path.rglob("*") if is_unfinished(path.name)]
        finished_before = finished


def tables_without_kill(folder: Path) -> dict[str, bytes]:
    store = create(str(folder), record())
    for task in TASKS:
        store.write(task, judgements_of(task))
    store.finish(all_rows(store), lambda: 1)
    return table_bytes(folder)


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("step", range(STEPS + 1))
def test_a_run_killed_between_any_two_steps_of_finishing_can_be_resumed(
    step: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    store = create(str(folder), record())
    for task in TASKS:
        store.write(task, judgements_of(task))
    died = subprocess.run([*KILLED_WRITER, "finish", str(folder), str(step)], cwd=ROOT, check=False)
    assert died.returncode == (9 if step < STEPS else 0)
    store = resume(str(folder), record())
    assert store.record.complete == (step >= 11)
    if not store.record.complete:
        assert store.finished() == set(TASKS)
        store = store.finish(all_rows(store), lambda: 1)
    assert store.record.exit_code == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "answers.parquet",
        "cases.parquet",
        "divergences.parquet",
        "pairs.parquet",
        "problems.parquet",
        "run.json",
    ]
    assert table_bytes(folder) == tables_without_kill(tmp_path / "other")
    assert open_run(str(folder)).record == store.record
