"""Past versions of a framework: what their environments are pinned to, and what stops a history."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import history

ROOT = Path(__file__).parents[2]


def told(*versions: str, checkout: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.history", "ort", "onnxruntime", *versions]
    folders = [f"--castigate={checkout}", f"--out={out}"]
    return subprocess.run([*command, *folders], capture_output=True, text=True, check=False)


def test_all_but_the_framework_is_pinned_as_the_checkout_pins_it() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    wanted = argparse.Namespace(castigate=ROOT, package="onnxruntime")
    left_out = set(pins) - set(history._other_pins(wanted))
    assert {pin.partition("==")[0] for pin in left_out} == {"onnxruntime"}


def test_what_cannot_be_installed_is_one_line_after_pips_own(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").touch()
    done = told("1.0", checkout=tmp_path, out=tmp_path / "out")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("castigate: no environment of onnxruntime 1.0: Command ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "environments" / "1.0" / history.MADE).exists()


def test_a_checkout_that_is_none_is_one_line(tmp_path: Path) -> None:
    done = told("1.0", checkout=tmp_path, out=tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("castigate: no environment of onnxruntime 1.0: [Errno 2] No such")


@pytest.mark.parametrize(("codes", "asked"), [((1, 0), 2), ((2, 0), 1)])
def test_only_a_run_that_failed_ends_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...], asked: int
) -> None:
    commands: list[list[str]] = []
    left = list(codes)

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, left.pop(0))

    monkeypatch.setattr(history, "_environment", lambda _, version: Path(f"python{version}"))
    monkeypatch.setattr(subprocess, "run", run)
    folders = [f"--castigate={ROOT}", f"--out={tmp_path}"]
    code = history.main(["ort", "onnxruntime", "1.1", "1.2", *folders])
    assert (len(commands), code) == (asked, 0 if asked == 2 else 2)
    pythons = [f"--python=ort=python1.{number + 1}" for number in range(asked)]
    assert [command[5] for command in commands] == pythons
