"""Runs and reports into an object store while the writing process is killed.

``python -m tests.conformance.killed_store_run KILLS`` kills at more random moments than the test.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reports.html.replace_report import FRONT_PAGE, INCOMPLETE
from reports.run_store.open_run import open_run
from reports.run_store.storage import Folder, folder_at
from reports.run_store.store import read_record
from specs.errors import CastigateError
from tests.conformance.processes import TABLES, castigate_process, start_castigate
from tests.s3_server import BUCKET, Server, s3_server

RUN = ("run", "--backend=ml_dtypes", "--document=onnx-cast:25", "--source=float16", "--jobs=2")
OUT = f"s3://{BUCKET}/run"
REPORT = f"s3://{BUCKET}/report"


def kill_after(server: Server, changes: int, seconds: float, *arguments: str) -> bool:
    """Kill a command ``seconds`` after ``changes`` writes of objects; return whether it ran."""
    process, before = start_castigate(*arguments), server.changes.count
    while process.poll() is None and server.changes.count - before < changes:
        time.sleep(0.001)
    time.sleep(seconds)
    is_killed = process.poll() is None
    process.kill()
    process.communicate()
    return is_killed


def contents(folder: Folder) -> dict[str, bytes | None]:
    """All files of a folder."""
    return {name: folder.read(name) for name in folder.files()}


def kill_writers(server: Server, kills: int, seed: int, local: Path) -> list[str]:
    """Kill the run and its report ``kills`` times each, check what is left, and describe it."""
    moments, seen = random.Random(seed), []
    code, _, _ = castigate_process(*RUN, f"--out={local / 'run'}")
    assert code == 1
    folder, site = folder_at(OUT), folder_at(REPORT)
    for _ in range(kills):
        resume = ["--resume"] if "run.json" in folder.names() else []
        changes, delay = moments.randrange(8), moments.uniform(0, 0.05)
        is_killed = kill_after(server, changes, delay, *RUN, f"--out={OUT}", *resume)
        assert not [name for name in folder.files() if "unfinished" in name]
        if "run.json" not in folder.names():
            seen.append("nothing yet")
        elif read_record(folder).complete:
            seen.append("complete")
            check_run(local)
            folder.remove_folder("")
        else:
            seen.append(f"{len(folder.names('parts'))} parts")
            assert is_killed
            with pytest.raises(CastigateError, match="holds an unfinished run"):
                open_run(OUT)
    resume = ["--resume"] if "run.json" in folder.names() else []
    code, _, err = castigate_process(*RUN, f"--out={OUT}", *resume)
    assert code == 1, err
    check_run(local)

    code, _, err = castigate_process("report", OUT, f"--out={local / 'report'}")
    assert code == 0, err
    expected = contents(folder_at(str(local / "report")))
    for _ in range(kills):
        changes, delay = moments.randrange(1, 45), moments.uniform(0, 0.01)
        kill_after(server, changes, delay, "report", OUT, f"--out={REPORT}")
        found = contents(site)
        if found.get(FRONT_PAGE) not in (None, INCOMPLETE):
            assert found == expected
            seen.append("a whole report")
        else:
            seen.append(f"{len(found)} files of an incomplete report")
    code, _, err = castigate_process("report", OUT, f"--out={REPORT}")
    assert code == 0, err
    assert contents(site) == expected
    return seen


def check_run(local: Path) -> None:
    """Assert that the run in the store has the same tables as the run on this machine."""
    store, other = open_run(OUT), folder_at(str(local / "run"))
    assert store.record.exit_code == 1
    for table in TABLES:
        assert store.folder.read(table) == other.read(table)


if __name__ == "__main__":
    with s3_server() as server, TemporaryDirectory() as name:
        for line in kill_writers(server, int(sys.argv[1]), random.randrange(1 << 30), Path(name)):
            print(line)
