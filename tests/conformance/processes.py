"""Runs ``castigate`` here or as a process, reads its runs, and finds processes still alive."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from conformance.commands.main import main

ROOT = Path(__file__).parents[2]
MAIN = "from conformance.commands.main import main; main()"
RUNNABLE = "tests/conformance/data/runnable.py"
ONNX = "--document=onnx-cast:25"
BOOL = (ONNX, "--source=uint32", "--target=bool")
HALF = (ONNX, "--source=float32", "--target=float16")
INT4 = (ONNX, "--source=int4")
FULL = "--tier=full"
SECONDS_TO_END = 1200
"""A process that runs longer than this hangs; a loaded machine makes minutes of seconds."""
TABLES = ["answers.parquet", "cases.parquet", "divergences.parquet", "pairs.parquet"]
CAUSES = ["causes.json", "problems.parquet"]
"""The files beside the tables: the causes, and the problems as data."""
PROGRESS = re.compile(r"loading |.*\d tasks, .*(begun|left)$")
PROC = Path("/proc")
NO_WORKERS = (b"oracles.backend.server", b"multiprocessing.resource_tracker")


def backend(name: str) -> str:
    return f"--backend={RUNNABLE}:{name}"


def start_castigate(*arguments: str, before: str = "", **more: Any) -> subprocess.Popen[str]:
    """Start ``castigate``; the code ``before`` is executed first in its process."""
    environment = os.environ | more.pop("env", {})
    command = [sys.executable, "-c", before + MAIN, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A shell that runs the tests in the background makes them ignore interrupts.
    accept_interrupts = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, cwd=ROOT, text=True, env=environment, preexec_fn=accept_interrupts, **pipes | more
    )


def castigate_process(*arguments: str, **more: Any) -> tuple[int, str, str]:
    """Run ``castigate``; return exit code, stdout and stderr without progress and tracebacks."""
    process = start_castigate(*arguments, **more)
    try:
        out, err = process.communicate(timeout=SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in out + err, err
    return process.returncode, out, without_progress(err)


def without_progress(err: str) -> str:
    """Remove the progress lines, whose number depends on the machine's load."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not PROGRESS.match(line))


def castigate(
    *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> tuple[int, str, str]:
    """Run ``castigate`` inside this process, which costs half; an exception reaches the test.

    Its workers and backends are processes all the same.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(ROOT),
        patch.dict(os.environ, env or {}),
        patch.object(sys, "argv", ["castigate", *arguments]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        main()
    return int(left.value.code or 0), out.getvalue(), without_progress(err.getvalue())


def run(folder: Path, *arguments: str, **more: Any) -> int:
    """Run ``castigate run`` into a folder, inside this process; return the exit code."""
    code, _, err = castigate("run", *arguments, f"--out={folder}", **more)
    assert "castigate: " not in err
    return code


def resume_option(folder: Path) -> list[str]:
    """The option that continues a run; none if the run was killed before it had a record."""
    return ["--resume"] if (folder / "run.json").exists() else []


def tables(folder: Path) -> dict[str, bytes]:
    """The bytes of all tables of a run, and of the causes beside them."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.json"}
    assert {*TABLES, *CAUSES} <= {*found}
    return {name: found[name] for name in (*TABLES, *CAUSES)}


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return rows


def verdicts(folder: Path) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in rows(folder, "cases")}


def record(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "run.json").read_bytes())
    return content


def contents(folder: Path) -> dict[str, bytes | None]:
    """The files of a folder with their bytes, and its subfolders."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    found: list[int] = []
    for thread in (PROC / str(pid) / "task").glob("*/children"):
        try:
            found += map(int, thread.read_text().split())
        except OSError:
            continue
    return found


def workers(pid: int) -> list[int]:
    """The processes of castigate that a process has started: fork servers, and their workers."""
    found: list[int] = []
    for child in children(pid):
        with suppress(OSError):
            command = (PROC / str(child) / "cmdline").read_bytes()
            if not any(other in command for other in NO_WORKERS):
                found += [child, *workers(child)]
    return found


def is_alive(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_ends(pids: list[int]) -> list[int]:
    """Wait until processes have ended; return those that have not in time."""
    last = time.monotonic() + SECONDS_TO_END
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < last:
        time.sleep(0.05)
    return left
