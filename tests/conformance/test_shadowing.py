"""Castigate installed beside a project that has packages of the same names as castigate's."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from specs import VERSION

ROOT = Path(__file__).parents[2]
PACKAGES = ("specs", "oracles", "reports", "conformance")
ENTRY = "castigate"
CASE = "onnx-cast:25/float16/float32"
SUITE = ["--pyargs", "conformance", "--backend=reference"]
FEW = ["--document=pypto-cast:0.2", "-k", "pypto-cast:0.2/int8/int16", "-q"]
USAGE = 4
CONSOLE_SCRIPT = """\
#!{python}
import sys
from {module} import {function}
if __name__ == "__main__":
    sys.exit({function}())
"""
IMPORTS_ITS_OWN = """\
import conformance, oracles, reports, specs

def test_the_projects_own_packages_are_imported():
    assert [each.OWNER for each in (conformance, oracles, reports, specs)] == ["project"] * 4
"""
ADAPTER = """\
import numpy as np

class Widening:
    name, version = "widening", "1"

    def cast(self, case, bits):
        return bits.view(np.float16).astype(np.float32).view(np.uint32)
"""


class Environment:
    """A virtual environment in which castigate is installed as pyproject.toml says.

    Its packages are links into the checkout; all else comes from the environment of these tests.
    """

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "python").symlink_to(sys.executable)
        home = Path(sys.executable).resolve().parent
        (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = folder / "lib" / version / "site-packages"
        site.mkdir(parents=True)
        for name in (*PACKAGES, f"{ENTRY}.py"):
            (site / name).symlink_to(ROOT / name)
        (site / "shared.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        info = site / f"castigate-{VERSION}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: castigate\nVersion: {VERSION}\n"
        )
        plugin = project["entry-points"]["pytest11"]["castigate"]
        (info / "entry_points.txt").write_text(f"[pytest11]\ncastigate = {plugin}\n")
        (info / "RECORD").write_text(
            "".join(f"{name}/__init__.py,,\n" for name in PACKAGES) + f"{ENTRY}.py,,\n"
        )
        module, _, function = project["scripts"]["castigate"].partition(":")
        self._add_script("castigate", module, function)
        self._add_script("pytest", "pytest", "main")

    def _add_script(self, name: str, module: str, function: str) -> None:
        script = self.bin / name
        python = self.bin / "python"
        script.write_text(CONSOLE_SCRIPT.format(python=python, module=module, function=function))
        script.chmod(0o755)

    def run(self, project: Path, *command: str, path: str = "") -> tuple[int, str, str]:
        """Run a command in a project's folder; return the exit code, stdout and stderr."""
        variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=project,
            env=variables | ({"PYTHONPATH": path} if path else {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"))


def project_with(folder: Path, *packages: str) -> Path:
    """A project with packages of its own."""
    for package in packages:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text('OWNER = "project"\n')
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package of each name, a test that imports them, and an adapter."""
    (tmp_path / "test_own.py").write_text(IMPORTS_ITS_OWN)
    (tmp_path / "adapter.py").write_text(ADAPTER)
    return project_with(tmp_path, *PACKAGES)


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("pytest_command", [("pytest",), ("python", "-m", "pytest")])
@pytest.mark.parametrize("conftest", [None, "import conformance, oracles, reports, specs"])
def test_a_projects_own_tests_import_its_own_packages(
    pytest_command: tuple[str, ...], conftest: str | None, environment: Environment, project: Path
) -> None:
    if conftest is not None:
        (project / "conftest.py").write_text(conftest)
    code, out, err = environment.run(project, *pytest_command, "-q", "-W", "error")
    assert (code, err) == (0, ""), out
    assert "1 passed" in out


def test_a_projects_own_suite_named_conformance_runs(
    environment: Environment, project: Path
) -> None:
    (project / "test_own.py").rename(project / "conformance" / "test_own.py")
    code, out, _ = environment.run(project, "python", "-m", "pytest", "--pyargs", "conformance")
    assert (code, "1 passed" in out) == (0, True), out
    # If the project defines an option --backend, its tests get that option.
    (project / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--backend')"
    )
    code, out, _ = environment.run(project, "python", "-m", "pytest", *SUITE)
    assert (code, "1 passed" in out) == (0, True), out


def test_the_command_works_in_a_project_with_the_same_names(
    environment: Environment, project: Path
) -> None:
    code, out, err = environment.run(project, "castigate", "specs", "onnx-cast:25")
    assert (code, err, CASE in out) == (0, "", True)


def test_backends_and_workers_start_in_a_project_with_the_same_names(
    environment: Environment, project: Path
) -> None:
    """Each is a process of its own, which must find castigate's packages as its parent does."""
    limits = ["--document=onnx-cast:25", "--source=float16", "--target=float32"]
    code, out, err = environment.run(
        project, "castigate", "run", "--backend=adapter.py:Widening", *limits, "--out=found"
    )
    assert (code, "conforms" in out) == (0, True), err
    assert "65,536 inputs" in out


@pytest.mark.parametrize("package", PACKAGES)
def test_a_hidden_package_is_one_line_of_the_command(
    package: str, environment: Environment, tmp_path: Path
) -> None:
    project = project_with(tmp_path, package)
    code, out, err = environment.run(project, "castigate", "specs", path=".")
    assert (code, out) == (2, "")
    assert err == (
        f"castigate: `{project / package}` hides castigate's own package `{package}`; rename it, "
        f"or keep `{project}` out of Python's search path (PYTHONPATH, `python -m`, conftest.py)\n"
    )


@pytest.mark.parametrize("package", ["specs", "conformance"])
def test_a_hidden_package_is_one_line_of_the_suite(
    package: str, environment: Environment, tmp_path: Path
) -> None:
    project = project_with(tmp_path, package)
    code, out, err = environment.run(project, "python", "-m", "pytest", *SUITE, *FEW)
    assert (code, out) == (USAGE, "")
    [line] = filter(None, err.splitlines())
    assert f"castigate: `{project / package}` hides castigate's own package `{package}`" in line


def test_a_package_that_conftest_imports_is_named_too(
    environment: Environment, tmp_path: Path
) -> None:
    project = project_with(tmp_path, "specs")
    (project / "conftest.py").write_text("import specs")
    code, _, err = environment.run(project, "pytest", *SUITE, *FEW, ".")
    assert (code, f"`{project / 'specs'}` hides" in err) == (USAGE, True)


def test_a_module_hides_a_package_too(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "reports.py").touch()
    code, _, err = environment.run(tmp_path, "castigate", "specs", path=str(tmp_path))
    assert (code, f"`{tmp_path / 'reports.py'}` hides" in err) == (2, True)


def test_a_folder_without_modules_hides_nothing(environment: Environment, tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
    assert environment.run(tmp_path, "castigate", "specs", path=".")[0] == 0
    code, out, _ = environment.run(tmp_path, "python", "-m", "pytest", *SUITE, *FEW)
    assert (code, "passed" in out) == (0, True), out
