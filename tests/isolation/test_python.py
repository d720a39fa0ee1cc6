"""``--python NAME=PATH``: a backend lives in another Python, or one line says why it cannot."""

from __future__ import annotations

import shutil
import site
import venv
from pathlib import Path

import numpy as np
import pytest

from conformance.running.selection import case_named
from oracles.isolation.launch_config import homes
from oracles.isolation.loading import close, load_isolated
from oracles.isolation.remote_errors import Crashed
from specs.errors import CastigateError
from specs.release import VERSION
from tests.conformance.processes import castigate

ROOT = Path(__file__).parents[2]
NAME = f"{Path(__file__).with_name('data') / 'planted.py'}:Where"
CASE = "onnx-cast:25/int8/int4"
OTHER = "0.0.0"


@pytest.fixture(autouse=True)
def _nothing_is_found_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


def python(folder: Path, *places: Path | str) -> Path:
    """The Python of a new environment in which packages are found in these places."""
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "places.pth").write_text("".join(f"{place}\n" for place in places))
    return folder / "bin" / "python"


def refused(where: Path | str) -> str:
    """What is said of a Python in which the backend cannot live."""
    with pytest.raises(CastigateError) as caught:
        load_isolated(NAME, homes([NAME], [f"{NAME}={where}"])[NAME])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_backend_lives_in_the_python_that_is_named(tmp_path: Path) -> None:
    where = python(tmp_path / "env", ROOT, *site.getsitepackages())
    found = homes([NAME, "ort"], [f"{NAME}={where}"])
    assert found["ort"].python is None
    backend = load_isolated(NAME, found[NAME])
    try:
        assert backend.version == str(tmp_path / "env")
        with pytest.raises(Crashed) as caught:
            backend.oracle.cast(case_named(CASE), np.array([1, 0x95], np.uint8))
        assert caught.value.inputs is not None
        assert caught.value.inputs.tolist() == [0x95]
        answers = backend.oracle.cast(case_named(CASE), np.array([0x21], np.uint8))
        assert answers.tolist() == [1]
    finally:
        close(backend)


def test_a_python_without_castigate_is_told_how_to_get_it(tmp_path: Path) -> None:
    where = python(tmp_path / "env")
    said = refused(where)
    assert said.startswith(f"backend `{NAME}`: {where} ended by itself with code 1 (")
    assert "ModuleNotFoundError" in said
    assert said.endswith(f"install this version there: {where} -m pip install castigate=={VERSION}")


def test_a_python_with_another_version_is_refused(tmp_path: Path) -> None:
    for floor in ("specs", "oracles"):
        shutil.copytree(ROOT / floor, tmp_path / "other" / floor)
    release = tmp_path / "other" / "specs" / "release.py"
    text = release.read_text()
    assert VERSION in text
    release.write_text(text.replace(VERSION, OTHER))
    where = python(tmp_path / "env", tmp_path / "other", *site.getsitepackages())
    assert refused(where) == (
        f"backend `{NAME}`: {where} has castigate {OTHER}, this is {VERSION};"
        f" install this version there: {where} -m pip install castigate=={VERSION}"
    )


@pytest.mark.parametrize("name", ["true", "false", "cat"])
def test_a_program_that_is_no_python_is_refused(name: str) -> None:
    where = shutil.which(name)
    assert where is not None
    said = refused(where)
    assert said.startswith(f"backend `{NAME}`: {where} ended by itself with code ")
    assert f"{where} -m pip install castigate=={VERSION}" in said


def test_a_path_that_is_no_program_is_refused(tmp_path: Path) -> None:
    text, folder, broken = tmp_path / "text", tmp_path / "folder", tmp_path / "broken"
    text.write_text("python")
    folder.mkdir()
    broken.write_text("#!/no/such/python\n")
    broken.chmod(0o755)
    advice = "; give the path of a Python"
    for where, wrong in (
        (tmp_path / "none", f"{tmp_path / 'none'} does not exist{advice}"),
        (text, f"{text} is no program that can be run{advice}"),
        (folder, f"{folder} is no program that can be run{advice}"),
    ):
        assert refused(where) == f"--python `{NAME}={where}`: {wrong}"
    assert refused(broken) == f"backend `{NAME}`: {broken}: No such file or directory"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["ort"], "--python `ort`: write NAME=PATH, the backend's name first"),
        (["=/bin/sh"], "--python `=/bin/sh`: write NAME=PATH, the backend's name first"),
        (["ort="], "--python `ort=`: write NAME=PATH, the backend's name first"),
        (["ort=/bin/sh", "ort=/bin/sh"], "--python is given twice for `ort`; give one of them"),
        (
            ["jax=/bin/sh"],
            "--python `jax=/bin/sh`: no backend `jax` is asked; it is for ort:folded",
        ),
    ],
)
def test_bad_usage_is_one_line(given: list[str], message: str) -> None:
    with pytest.raises(CastigateError) as caught:
        homes(["ort:folded"], given)
    assert str(caught.value) == message


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    where = python(tmp_path / "env")
    given = (f"--backend={NAME}", f"--python={NAME}={where}", f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"castigate: backend `{NAME}`: {where} ended by itself with code 1 (")
