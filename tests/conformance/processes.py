"""``castigate`` as real processes, what their runs hold, and who is still alive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
MAIN = "from conformance.commands.main import main; main()"
RUNNABLE = "tests/conformance/data/runnable.py"
ONNX = "--document=onnx-cast:25"
BOOL = (ONNX, "--source=uint32", "--target=bool")
HALF = (ONNX, "--source=float32", "--target=float16")
INT4 = (ONNX, "--source=int4")
FULL = "--tier=full"
SECONDS_TO_END = 120
PROC = Path("/proc")


def backend(name: str) -> str:
    return f"--backend={RUNNABLE}:{name}"


def begun(*arguments: str, before: str = "", **more: Any) -> subprocess.Popen[str]:
    """A ``castigate`` that goes on, after some code of our own."""
    environment = os.environ | more.pop("env", {})
    command = [sys.executable, "-c", before + MAIN, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Whoever runs the tests in the background of a shell has them ignore interrupts.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, cwd=ROOT, text=True, env=environment, preexec_fn=listen, **pipes | more
    )


def castigate(*arguments: str, **more: Any) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a ``castigate`` that has ended; never a traceback."""
    process = begun(*arguments, **more)
    try:
        out, err = process.communicate(timeout=10 * SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in out + err, err
    return process.returncode, out, err


def run(folder: Path, *arguments: str, **more: Any) -> int:
    """The exit code of ``castigate run`` into a folder."""
    code, _, err = castigate("run", *arguments, f"--out={folder}", **more)
    assert "castigate: " not in err
    return code


def tables(folder: Path) -> dict[str, bytes]:
    """The bytes of both tables."""
    found = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    assert sorted(found) == ["answers.parquet", "cases.parquet", "divergences.parquet"]
    return found


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return rows


def verdicts(folder: Path) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in rows(folder, "cases")}


def record(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "run.json").read_bytes())
    return content


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that a folder holds."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for thread in (PROC / str(pid) / "task").glob("*/children"):
        try:
            found += map(int, thread.read_text().split())
        except OSError:
            continue
    return found


def is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end_of(pids: list[int]) -> list[int]:
    """Wait for processes to end; those that have not."""
    last = time.monotonic() + SECONDS_TO_END
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < last:
        time.sleep(0.05)
    return left
