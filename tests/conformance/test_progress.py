"""The progress display of a run, and its interruption."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.running import progress
from conformance.running.plan import Task
from tests.conformance.processes import (
    BOOL,
    FULL,
    PROC,
    ROOT,
    RUNNABLE,
    SECONDS_TO_END,
    backend,
    castigate,
    children,
    run,
    start_castigate,
    tables,
    wait_for_ends,
)

fcntl = pytest.importorskip("fcntl", reason="terminals are those of Unix")
pty = pytest.importorskip("pty", reason="terminals are those of Unix")
termios = pytest.importorskip("termios", reason="terminals are those of Unix")

PHASES = ("writing the tables and finding causes",)
"""Lines that a slow run prints between those about its backends."""
AMOUNT = r"\d+(?:\.\d\d [kMG])?"
NUMBERS = rf"(\d+) of (\d+) tasks?, ({AMOUNT}) inputs, {AMOUNT}/s, ([\d,]+) wrong, (.+)"
LEFT = r"begun|\d+ (s|min|h) left|done in \d+ (s|min|h)"
UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
SLOWED = {"RUNNABLE_PAUSE": "0.0002"}
OFTEN = "import conformance.running.progress as progress; progress.SECONDS_BETWEEN_LINES = 0.1; "
needs_proc = pytest.mark.skipif(
    not list(PROC.glob("self/task/*/children")), reason="needs a list of a process's children"
)


def seen_on_a_terminal(columns: int, *arguments: str, **more: Any) -> tuple[int, str, list[str]]:
    """The exit code, stdout, and the lines that a terminal of this width shows in turn."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    environment = more.pop("env", {}) | {"TERM": "xterm", "COLUMNS": str(columns)}
    process = start_castigate("run", *arguments, stderr=slave, env=environment, **more)
    os.close(slave)
    seen = b""
    while True:
        try:
            news = os.read(master, 1 << 16)
        except OSError:  # Linux reports in this way that the other end is closed
            break
        if not news:
            break
        seen += news
    os.close(master)
    out, _ = process.communicate(timeout=SECONDS_TO_END)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return process.returncode, out, [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def amount(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * UNITS[unit]


@pytest.mark.nightly
def test_without_a_terminal_plain_lines_go_to_stderr(tmp_path: Path) -> None:
    given = (backend("WrongRange"), *BOOL, FULL, "--jobs=2")
    process = start_castigate("run", *given, f"--out={tmp_path / 'run'}", before=OFTEN, env=SLOWED)
    out, err = process.communicate(timeout=SECONDS_TO_END)
    assert process.returncode == 1
    lines = [line for line in err.splitlines() if line not in PHASES]
    assert len(lines) > 3
    found = [re.fullmatch(rf"{RUNNABLE}:WrongRange: {NUMBERS}", line) for line in lines]
    assert None not in found
    numbers = [match.groups() for match in found if match]
    assert all(re.fullmatch(LEFT, left) for *_, left in numbers)
    assert numbers == sorted(numbers, key=lambda row: (int(row[0]), amount(row[2])))
    assert numbers[-1][:-1] == ("17", "17", "4.29 G", f"{0x1100:,}")
    assert numbers[-1][-1].startswith("done in ")
    assert "\x1b" not in out + err
    assert "tasks" not in out
    assert f"run: {1 << 32:,} inputs\n" in out


def test_wrong_answers_of_the_quick_tier_are_shown(tmp_path: Path) -> None:
    given = (backend("WrongRange"), *BOOL, f"--out={tmp_path / 'run'}")
    _, _, err = castigate("run", *given)
    match = re.fullmatch(rf"{RUNNABLE}:WrongRange: {NUMBERS}", err.splitlines()[-1])
    assert match is not None
    assert int(match[4].replace(",", "")) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["Leaves", "Hangs"])
def test_names_are_not_markup(name: str, tmp_path: Path) -> None:
    # The library that prints replaces some words between colons by emoji.
    folder = tmp_path / "[bold]"
    folder.mkdir()
    shutil.copy(ROOT / RUNNABLE, folder)
    word = f"{folder / 'runnable.py'}:{name}"
    given = (f"--backend={word}", "--document=onnx-cast:25", "--source=uint8", "--target=bool")
    _, _, err = castigate("run", *given, f"--out={tmp_path / 'plain'}")
    assert err.startswith(f"{word}: ")
    code, _, seen = seen_on_a_terminal(400, *given, f"--out={tmp_path / 'run'}")
    assert code == 0
    assert seen[-1].startswith(f"{word} ")


def test_a_bar_on_a_terminal_ends_with_all_tasks(tmp_path: Path) -> None:
    given = (backend("WrongRange"), *BOOL, f"--out={tmp_path / 'run'}")
    code, out, seen = seen_on_a_terminal(80, *given)
    assert (code, "tasks" in out) == (1, False)
    assert all(len(line) <= 80 for line in seen)
    last = re.search(rf"Range {NUMBERS}$", seen[-1].rstrip())
    assert last is not None, seen
    assert (last[1], last[5].startswith("done in ")) == (last[2], True)


@pytest.mark.nightly
@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_bar_on_a_terminal_shows_backend_share_speed_and_wrong_answers(
    columns: int, tmp_path: Path
) -> None:
    """Sweeps 2^32 inputs."""
    given = (backend("WrongRange"), *BOOL, FULL, "--jobs=2", f"--out={tmp_path / 'run'}")
    code, out, seen = seen_on_a_terminal(columns, *given, env=SLOWED)
    assert code == 1
    assert "tasks" not in out
    assert all(len(line) <= columns for line in seen)
    assert any("loading " in line for line in seen)
    found = [re.search(rf"\b{NUMBERS}$", line.rstrip()) for line in seen if "task" in line]
    assert None not in found, [line for line in seen if "task" in line]
    assert all(re.fullmatch(LEFT, match[5]) for match in found if match)
    assert len({match[3] for match in found if match}) > 3
    assert found[-1] is not None
    assert found[-1].groups()[:-1] == ("17", "17", "4.29 G", f"{0x1100:,}")
    assert found[-1][5].startswith("done in ")
    assert all("Range" in line.partition(" ")[0] for line in seen if "task" in line)
    if columns == 200:
        assert all(line.startswith(f"{RUNNABLE}:WrongRange ") for line in seen if "task" in line)
        assert any("━" in line for line in seen)


@pytest.mark.nightly
def test_the_death_of_a_worker_is_shown_above_the_bar(tmp_path: Path) -> None:
    given = (backend("DiesInASweep"), *BOOL, FULL, f"--out={tmp_path / 'run'}")
    code, _, seen = seen_on_a_terminal(200, *given)
    assert code == 1
    printed = f"a worker of {RUNNABLE}:DiesInASweep was ended by SIGSEGV; its task is done again"
    assert sum(printed in line for line in seen) == 2


def interrupt(process: subprocess.Popen[str]) -> str:
    """Interrupt the process group; return its output after checking that no process is left."""
    found = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS_TO_END)
    left = wait_for_ends(found)
    assert (process.returncode, out, left) == (130, "", []), err
    assert "Traceback" not in err, err
    return err


def wait_for(process: subprocess.Popen[str], moment: Any) -> None:
    last = time.monotonic() + SECONDS_TO_END
    while not moment() and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    assert process.poll() is None


@pytest.mark.nightly
@needs_proc
def test_an_interrupted_run_says_how_to_resume(tmp_path: Path) -> None:
    given = (backend("WrongRange"), *BOOL, FULL, "--jobs=2")
    out = tmp_path / "a run"
    process = start_castigate("run", *given, f"--out={out}", env=SLOWED, start_new_session=True)
    wait_for(process, lambda: len(list(out.glob("parts/*.part"))) > 2)
    *_, output = interrupt(process).splitlines()
    assert output.startswith("castigate: interrupted; ")
    assert not list(out.glob("*.parquet"))
    [command] = re.findall(r"castigate (run .*) continues it", output)
    assert castigate(*shlex.split(command))[0] == 1
    assert run(tmp_path / "other", *given) == 1
    assert tables(out) == tables(tmp_path / "other")


@pytest.mark.ci_runs_one_of(6)
@needs_proc
@pytest.mark.parametrize("seed", range(6))
def test_an_interrupt_at_any_moment_is_one_line(seed: int, tmp_path: Path) -> None:
    given = (backend("Right"), *BOOL, FULL, "--jobs=2", f"--out={tmp_path / 'run'}")
    process = start_castigate("run", *given, env=SLOWED, start_new_session=True)
    wait_for(process, lambda: children(process.pid))
    time.sleep(random.Random(seed).uniform(0, 2))
    lines = interrupt(process).splitlines()
    assert lines[-1].startswith("castigate: interrupted")
    assert all(re.match(rf"{RUNNABLE}:Right: ", line) for line in lines[:-1])
    if not (tmp_path / "run").exists():
        assert "--resume" not in lines[-1]


@pytest.mark.parametrize(
    ("spent", "done", "expected"),
    [
        (1.0, 5, "begun"), (100.0, 0, "begun"), (10.0, 5, "10 s left"), (600.0, 5, "10 min left"),
        (36_000.0, 5, "10 h left"), (36_000.0, 10, "done in 10 h"),
    ],
)  # fmt: skip
def test_the_time_left_is_told_once_it_can_be_estimated(
    spent: float, done: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [Task(str(number), ()) for number in range(10)]
    monkeypatch.setattr(progress, "monotonic", lambda: 0.0)
    shown = progress.BackendProgress("ort", tasks)
    for task in tasks[:done]:
        shown.finish_task(task)
    monkeypatch.setattr(progress, "monotonic", lambda: spent)
    assert str(shown).endswith(f", {expected}")
