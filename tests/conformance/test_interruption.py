"""Exit codes of a command that is stopped by Ctrl-C, by SIGTERM, or because memory ran out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specs import VERSION
from tests.conformance.processes import (
    BOOL,
    FULL,
    ONNX,
    PROC,
    ROOT,
    SECONDS_TO_END,
    backend,
    castigate,
    children,
    start_castigate,
    wait_for_ends,
)

IMPORTING = """\
import importlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
def stop(name): os.kill(os.getpid(), signal.{signal})
importlib.import_module = stop
import castigate
castigate.main()
"""
RAISING = "import conformance.commands.main as main; main.build_app = lambda _: {}; "


@pytest.mark.parametrize(
    ("name", "code", "line"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_a_signal_during_imports_is_one_line(name: str, code: int, line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(signal=name)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"castigate: {line}\n")


ENDING = """\
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
def stop(kill=os.kill, process=os.getpid()): kill(process, signal_number)
class Last:
    def __del__(self, stop=stop): stop()
signal_number = signal.{signal}
sys.argv = ["castigate", "--version"]
import castigate
{before}
castigate.main()
"""
AFTER_THE_RESULT = {
    "by the command's last function": (
        "import conformance.commands.main as main; main.stderr_is_open = stop", True
    ),
    "by a thread that Python waits for": (
        "import threading; threading._register_atexit(stop)", True
    ),
    "before anything is torn down": ("atexit.register(stop)", False),
    "when modules are torn down": ("last = Last()", False),
}  # fmt: skip


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("when", AFTER_THE_RESULT)
@pytest.mark.parametrize(
    ("name", "code", "line"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_a_signal_after_the_result_is_one_line_or_nothing(
    name: str, code: int, line: str, when: str
) -> None:
    before, ends = AFTER_THE_RESULT[when]
    done = subprocess.run(
        [sys.executable, "-c", ENDING.format(signal=name, before=before)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    expected = (code, f"castigate: {line}\n") if ends else (0, "")
    assert (done.returncode, done.stderr) == expected
    assert done.stdout == f"castigate {VERSION}\n"


@pytest.mark.skipif(not PROC.is_dir(), reason="there is no /proc to look into")
def test_a_terminated_run_says_how_to_resume(tmp_path: Path) -> None:
    out = tmp_path / "run"
    given = (backend("WrongRange"), *BOOL, FULL, "--jobs=1", f"--out={out}")
    process = start_castigate("run", *given, env={"RUNNABLE_PAUSE": "0.0004"})
    last = time.monotonic() + SECONDS_TO_END
    while not list(out.glob("parts/*.part")) and time.monotonic() < last:
        time.sleep(0.05)
    left = children(process.pid)
    process.send_signal(signal.SIGTERM)
    printed, err = process.communicate(timeout=SECONDS_TO_END)
    assert (process.returncode, printed, wait_for_ends(left)) == (143, "", [])
    assert err.splitlines()[-1] == (
        f"castigate: terminated; castigate run --resume --out {out} continues it"
    )
    assert list(out.glob("parts/*.part"))


@pytest.mark.parametrize(
    ("raised", "line"),
    [
        ("[][0]", "castigate: this is a bug in castigate; report it with the lines above"),
        ("(_ for _ in ()).throw(MemoryError)", "castigate: out of memory; free some"),
    ],
)
def test_whatever_is_raised_does_not_exit_with_1(raised: str, line: str) -> None:
    process = start_castigate("specs", before=RAISING.format(raised))
    out, err = process.communicate(timeout=SECONDS_TO_END)
    assert (process.returncode, out) == (2, "")
    assert err.splitlines()[-1].startswith(line)


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_run_whose_reader_goes_away_does_not_exit_with_1(closed: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    given = ("--backend=reference", ONNX, "--source=int2", "--target=int4")
    process = start_castigate("run", *given, f"--out={tmp_path / 'run'}", **{closed: writing})
    os.close(writing)
    process.communicate(timeout=SECONDS_TO_END)
    assert process.returncode == 141


@pytest.mark.parametrize("command", ["run", "gate", "nightly", "report"])
def test_an_empty_out_is_refused(command: str, tmp_path: Path) -> None:
    options = {
        "run": ["--backend=reference"],
        "gate": ["--backend=reference", "--policy=onnx-required"],
        "nightly": [],
        "report": [str(tmp_path)],
    }[command]
    code, out, err = castigate(command, *options, "--out=")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "folder" in err
