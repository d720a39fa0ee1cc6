"""``--python NAME=PATH`` runs a backend in another Python, or one line of error says why not."""

from __future__ import annotations

import shutil
import site
import venv
from pathlib import Path

import numpy as np
import pytest

from oracles.backend.loading import close, launch_configs, load_isolated
from oracles.backend.remote_errors import ProcessDied
from specs import VERSION
from specs.errors import CastigateError
from specs.selection import case_named
from tests.conformance.processes import castigate

ROOT = Path(__file__).parents[2]
NAME = f"{Path(__file__).with_name('data') / 'planted.py'}:Where"
CASE = "onnx-cast:25/int8/int4"
OTHER = "0.0.0"


@pytest.fixture(autouse=True)
def _without_pythonpath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


def python(folder: Path, *packages: Path | str) -> Path:
    """Create a virtual environment that finds packages in these folders; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site_packages] = folder.glob("lib/python*/site-packages")
    (site_packages / "packages.pth").write_text("".join(f"{path}\n" for path in packages))
    return folder / "bin" / "python"


def load_error(where: Path | str) -> str:
    """Return the error for a Python in which the backend cannot be loaded."""
    with pytest.raises(CastigateError) as caught:
        load_isolated(NAME, launch_configs([NAME], [f"{NAME}={where}"])[NAME])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_backend_runs_in_the_python_that_is_named(tmp_path: Path) -> None:
    where = python(tmp_path / "env", ROOT, *site.getsitepackages())
    found = launch_configs([NAME, "ort"], [f"{NAME}={where}"])
    assert found["ort"].python is None
    backend = load_isolated(NAME, found[NAME])
    try:
        assert backend.version == str(tmp_path / "env")
        with pytest.raises(ProcessDied) as caught:
            backend.oracle.cast(case_named(CASE), np.array([1, 0x95], np.uint8))
        assert caught.value.inputs is not None
        assert caught.value.inputs.tolist() == [0x95]
        answers = backend.oracle.cast(case_named(CASE), np.array([0x21], np.uint8))
        assert answers.tolist() == [1]
    finally:
        close(backend)


def test_the_error_for_a_python_without_castigate_says_how_to_install_it(tmp_path: Path) -> None:
    where = python(tmp_path / "env")
    message = load_error(where)
    assert message.startswith(f"backend `{NAME}`: {where} ended by itself with code 1 (")
    assert "ModuleNotFoundError" in message
    assert message.endswith(
        f"install this version there: {where} -m pip install castigate=={VERSION}"
    )


def test_a_python_with_another_version_is_refused(tmp_path: Path) -> None:
    for layer in ("specs", "oracles"):
        shutil.copytree(ROOT / layer, tmp_path / "other" / layer)
    release = tmp_path / "other" / "specs" / "__init__.py"
    text = release.read_text()
    assert VERSION in text
    release.write_text(text.replace(VERSION, OTHER))
    where = python(tmp_path / "env", tmp_path / "other", *site.getsitepackages())
    assert load_error(where) == (
        f"backend `{NAME}`: {where} has castigate {OTHER}, this is {VERSION};"
        f" install this version there: {where} -m pip install castigate=={VERSION}"
    )


@pytest.mark.parametrize("name", ["true", "false", "cat"])
def test_a_program_that_is_no_python_is_refused(name: str) -> None:
    where = shutil.which(name)
    assert where is not None
    message = load_error(where)
    assert message.startswith(f"backend `{NAME}`: {where} ended by itself with code ")
    assert f"{where} -m pip install castigate=={VERSION}" in message


def test_a_path_that_is_not_executable_is_refused(tmp_path: Path) -> None:
    text, folder, broken = tmp_path / "text", tmp_path / "folder", tmp_path / "broken"
    text.write_text("python")
    folder.mkdir()
    broken.write_text("#!/no/such/python\n")
    broken.chmod(0o755)
    advice = "; give the path of a Python"
    for where, problem in (
        (tmp_path / "none", f"{tmp_path / 'none'} does not exist{advice}"),
        (text, f"{text} is not an executable file{advice}"),
        (folder, f"{folder} is not an executable file{advice}"),
    ):
        assert load_error(where) == f"--python `{NAME}={where}`: {problem}"
    assert load_error(broken) == f"backend `{NAME}`: {broken}: No such file or directory"


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_unusable_options_are_one_line(options: list[str], message: str) -> None:
    with pytest.raises(CastigateError) as caught:
        launch_configs(["ort:folded"], options)
    assert str(caught.value) == message


@pytest.mark.nightly
def test_castigate_run_prints_the_error_in_one_line(tmp_path: Path) -> None:
    where = python(tmp_path / "env")
    options = (f"--backend={NAME}", f"--python={NAME}={where}", f"--out={tmp_path / 'run'}")
    code, out, err = castigate("run", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"castigate: backend `{NAME}`: {where} ended by itself with code 1 (")
