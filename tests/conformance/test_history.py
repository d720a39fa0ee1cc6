"""Runs of past versions of a framework: pinned environments, and what stops them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest
import typer.testing

from conformance.surveys import history
from conformance.surveys.history import History

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]


def run_history(*versions: str, checkout: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.surveys.history", "ort", "onnxruntime", *versions]
    folders = [f"--castigate={checkout}", f"--out={out}"]
    return subprocess.run([*command, *folders], capture_output=True, text=True, check=False)


def test_everything_but_the_framework_is_pinned_as_in_the_checkout() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    left_out = set(pins) - set(History("ort", "onnxruntime", ROOT, ROOT).other_pins())
    assert {pin.partition("==")[0] for pin in left_out} == {"onnxruntime"}


def test_a_failed_installation_is_one_line_below_that_of_pip(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").touch()
    done = run_history("1.0", checkout=tmp_path, out=tmp_path / "out")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("castigate: no environment of onnxruntime 1.0: Command ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "environments" / "1.0" / history.COMPLETE).exists()


def test_a_folder_that_is_no_checkout_is_one_line(tmp_path: Path) -> None:
    done = run_history("1.0", checkout=tmp_path, out=tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("castigate: no environment of onnxruntime 1.0: [Errno 2] No such")


@pytest.mark.parametrize(("codes", "runs"), [((1, 0), 2), ((2, 0), 1)])
def test_only_a_usage_error_ends_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...], runs: int
) -> None:
    commands: list[list[str]] = []
    left = list(codes)

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, left.pop(0))

    monkeypatch.setattr(History, "environment", lambda _, version: Path(f"python{version}"))
    monkeypatch.setattr(subprocess, "run", run)
    folders = [f"--castigate={ROOT}", f"--out={tmp_path}"]
    arguments = ["ort", "onnxruntime", "1.1", "1.2", *folders]
    code = typer.testing.CliRunner().invoke(history.app, arguments).exit_code
    assert (len(commands), code) == (runs, 0 if runs == 2 else 2)
    pythons = [f"--python=ort=python1.{number + 1}" for number in range(runs)]
    assert [command[5] for command in commands] == pythons
    assert all({"--backend=ort", f"--out={tmp_path}"} < {*command} for command in commands)


def write_wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), text: str = ""
) -> None:
    """Write a wheel of one module, which holds a text."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Provides-Extra: ort"]
    lines += [f"Requires-Dist: {each}" for each in requires]
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"TEXT = {text!r}\n")
        archive.writestr(f"{info}/METADATA", "\n".join([*lines, ""]))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


PYPROJECT = """\
[build-system]
requires = []
build-backend = "building"
backend-path = ["."]
"""
BUILD_BACKEND = """\
import shutil
from pathlib import Path

def build_wheel(folder, *_):
    return Path(shutil.copy("castigate-1-py3-none-any.whl", folder)).name
"""


def write_checkout(folder: Path, text: str) -> None:
    """Write a checkout that requires a framework and more; its wheel lies in it."""
    folder.mkdir(exist_ok=True)
    requires = ("helper", 'frame; extra == "ort"', 'frame_tools; extra == "ort"')
    write_wheel(folder, "castigate", "1", requires, text)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "building.py").write_text(BUILD_BACKEND)
    (folder / "constraints.txt").write_text("frame==2\nframe_tools==1\nhelper==1\n")


def output_of(python: Path, code: str) -> str:
    command = [str(python), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


VERSIONS = """\
from importlib.metadata import version
print(*[version(name) for name in ("frame", "frame_tools", "helper")])
"""
TEXT = "import castigate; print(castigate.TEXT)"


@pytest.fixture
def frame_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """The history of a framework whose wheels come from a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in ("frame", "frame_tools", "helper"):
        for version in ("1", "2", "3"):
            write_wheel(wheels, name, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    write_checkout(tmp_path / "checkout", "first")
    return History("ort", "frame", tmp_path / "checkout", tmp_path / "out")


def test_an_environment_has_one_version_and_the_checkout_as_it_is(
    frame_history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = frame_history.environment("1")
    assert python == frame_history.out / "environments" / "1" / "bin" / "python"
    assert (output_of(python, VERSIONS), output_of(python, TEXT)) == ("1 1 1", "first")
    # Nothing but the checkout is installed again.
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    write_checkout(frame_history.checkout, "second")
    assert frame_history.environment("1") == python
    assert (output_of(python, VERSIONS), output_of(python, TEXT)) == ("1 1 1", "second")
    (frame_history.checkout / "building.py").write_text("")
    with pytest.raises(subprocess.CalledProcessError):
        frame_history.environment("1")


def test_an_incomplete_environment_is_created_anew(
    frame_history: History,
) -> None:
    home = frame_history.out / "environments" / "1"
    home.mkdir(parents=True)
    (home / "left").touch()
    python = frame_history.environment("1")
    assert sorted(path.name for path in home.glob("[lm]*")) == ["lib", "lib64", history.COMPLETE]
    assert output_of(python, VERSIONS) == "1 1 1"
