"""Past versions of a framework: what their environments are pinned to, and what stops a history."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from conformance.running import history

ROOT = Path(__file__).parents[2]


def told(*versions: str, checkout: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.running.history", "ort", "onnxruntime", *versions]
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
    assert all({"--backend=ort", f"--out={tmp_path}"} < {*command} for command in commands)


def wheel(folder: Path, name: str, version: str, wants: Sequence[str] = (), said: str = "") -> None:
    """A package of one module, which says something."""
    told = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Provides-Extra: ort"]
    lines += [f"Requires-Dist: {each}" for each in wants]
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as made:
        made.writestr(f"{name}.py", f"SAID = {said!r}\n")
        made.writestr(f"{told}/METADATA", "\n".join([*lines, ""]))
        made.writestr(f"{told}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr(f"{told}/RECORD", "")


BUILDING = """\
[build-system]
requires = []
build-backend = "building"
backend-path = ["."]
"""
BUILT = """\
import shutil
from pathlib import Path

def build_wheel(folder, *_):
    return Path(shutil.copy("castigate-1-py3-none-any.whl", folder)).name
"""


def checkout(folder: Path, said: str) -> None:
    """A checkout that wants a framework and more, and is built from what is in it."""
    folder.mkdir(exist_ok=True)
    wants = ("helper", 'frame; extra == "ort"', 'frame_tools; extra == "ort"')
    wheel(folder, "castigate", "1", wants, said)
    (folder / "pyproject.toml").write_text(BUILDING)
    (folder / "building.py").write_text(BUILT)
    (folder / "constraints.txt").write_text("frame==2\nframe_tools==1\nhelper==1\n")


def outcome(python: Path, code: str) -> str:
    command = [str(python), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


VERSIONS = """\
from importlib.metadata import version
print(*[version(name) for name in ("frame", "frame_tools", "helper")])
"""
SAID = "import castigate; print(castigate.SAID)"


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    """A history of a framework whose packages come from a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in ("frame", "frame_tools", "helper"):
        for version in ("1", "2", "3"):
            wheel(wheels, name, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    checkout(tmp_path / "checkout", "first")
    given = {"castigate": tmp_path / "checkout", "out": tmp_path / "out"}
    return argparse.Namespace(backend="ort", package="frame", **given)


def test_an_environment_has_one_version_and_the_checkout_as_it_is(
    wanted: argparse.Namespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = history._environment(wanted, "1")
    assert python == wanted.out / "environments" / "1" / "bin" / "python"
    assert (outcome(python, VERSIONS), outcome(python, SAID)) == ("1 1 1", "first")
    # Nothing but the checkout is installed again.
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    checkout(wanted.castigate, "second")
    assert history._environment(wanted, "1") == python
    assert (outcome(python, VERSIONS), outcome(python, SAID)) == ("1 1 1", "second")
    (wanted.castigate / "building.py").write_text("")
    with pytest.raises(subprocess.CalledProcessError):
        history._environment(wanted, "1")


def test_an_environment_that_was_never_finished_is_made_from_nothing(
    wanted: argparse.Namespace,
) -> None:
    home = wanted.out / "environments" / "1"
    home.mkdir(parents=True)
    (home / "left").touch()
    python = history._environment(wanted, "1")
    assert sorted(path.name for path in home.glob("[lm]*")) == ["lib", "lib64", history.MADE]
    assert outcome(python, VERSIONS) == "1 1 1"
