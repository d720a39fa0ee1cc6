"""A wheel built from the tree carries its data and works outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from oracles.registry import BUILTINS
from reports.suite_digest import suite_digest

ROOT = Path(__file__).parents[1]
PACKAGES = {"specs", "oracles", "reports", "conformance"}
STUBS = "castigate-stubs"
IN_CHECKOUT = "conformance/api/stubs/"
"""Where the checkout has the stubs, which the wheel has beside the packages."""
ENTRY = "castigate.py"
COMMAND = "from conformance.commands.main import main; main()"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's contents in a folder far from the checkout."""
    dist, tree = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package)
    for file in (ENTRY, "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tree)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist)]
    subprocess.run([*build, str(tree)], check=True, capture_output=True)
    (wheel,) = dist.glob("castigate-*.whl")
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_every_extra_that_is_advised_is_spelled_as_the_metadata_has_it(unpacked: Path) -> None:
    # pip of Python 3.11 installs nothing, and exits with 0, if an extra is spelled otherwise.
    [metadata] = unpacked.glob("castigate-*.dist-info/METADATA")
    offered = set(re.findall(r"^Provides-Extra: (\S+)$", metadata.read_text(), re.MULTILINE))
    assert {each.extra for each in BUILTINS.values() if each.extra} <= offered
    used = re.findall(r"castigate\[([\w,-]+)\]", metadata.read_text())
    assert {each for extras in used for each in extras.split(",")} <= offered


def test_every_package_says_that_it_is_typed(unpacked: Path) -> None:
    assert all((unpacked / package / "py.typed").exists() for package in PACKAGES)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python that finds the unpacked wheel first, in a folder without any conftest.py."""
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_holds_the_documents_and_nothing_foreign(unpacked: Path) -> None:
    assert (unpacked / "specs" / "documents" / "onnx_cast.yaml").is_file()
    assert (unpacked / "specs" / "documents" / "onnx-cast.txt.sha256").is_file()
    assert (unpacked / "specs" / "formats.yaml").is_file()
    assert (unpacked / "reports" / "ledger" / "ort.yaml").is_file()
    top = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {*PACKAGES, STUBS, ENTRY}


def test_it_has_every_file_of_the_packages(unpacked: Path) -> None:
    """Those of the checkout that git has, so that no data file is forgotten in pyproject.toml."""
    if not (ROOT / ".git").exists():
        pytest.skip("the files of a distribution are not listed")
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name.removeprefix(IN_CHECKOUT) for name in listed.stdout.splitlines()]
    missing = [name for name in names if not (unpacked / name).is_file()]
    assert missing == []


def test_a_certificate_of_it_names_the_same_sources(unpacked: Path) -> None:
    done = run(unpacked, "-c", "from reports.suite_digest import *; print(suite_digest())")
    assert done.stdout.strip() == suite_digest()
    assert (unpacked / "reports" / "gate" / "policies" / "strict.yaml").is_file()
    assert (unpacked / "reports" / "gate" / "policy.schema.json").is_file()


def test_the_command_works_outside_the_checkout(unpacked: Path) -> None:
    done = run(unpacked, "-c", f"import specs; print(specs.__file__); {COMMAND}", "specs")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(unpacked))
    assert "onnx-cast" in done.stdout


@pytest.mark.parametrize("named", [["--pyargs", "conformance"], ["conformance"]], ids=" ".join)
def test_the_suite_works_outside_the_checkout(named: list[str], unpacked: Path) -> None:
    arguments = ["--backend=reference", "--document=pypto-cast:0.2", "-k", "float16/int8", "-q"]
    done = run(unpacked, "-m", "pytest", *named, "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^reference: \d+ conforms, \d+ open$", done.stdout, re.MULTILINE)


USE = """\
from typing import Any
import numpy as np
from numpy.typing import NDArray
import castigate as cg

def halve(x: NDArray[np.float32]) -> NDArray[Any]:
    return x.astype(np.float16)

result = cg.check(halve, "float32", np.float16, mode={"overflow": "nan"})
text: str = result.verdict
if (smallest := result.smallest) is not None:
    text = smallest.input
array: NDArray[Any] = cg.cast([0.1], "fp32", np.dtype("int8"), bits=True)
"""
MISTAKES = {
    'cg.cast([1], "fp32")': 'Missing positional argument "target"',
    'cg.cast([1], 3, "fp32")': 'Argument 2 to "cast" has incompatible type "int"',
    'cg.check(7, "fp32", "fp16")': 'Argument 1 to "check" has incompatible type "int"',
    'cg.check(halve, "fp32", "fp16", mode="overflow")': 'Argument "mode" to "check"',
    "result.smalest": '"Result" has no attribute "smalest"',
}


def test_a_type_checker_sees_the_interface(unpacked: Path, tmp_path: Path) -> None:
    """mypy reads the unpacked wheel, and the wheel's requirements in the tests' environment."""
    pytest.importorskip("mypy")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = tmp_path / "lib" / version / "site-packages"
    shutil.copytree(unpacked, site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    home = Path(sys.executable).resolve().parent
    (tmp_path / "pyvenv.cfg").write_text(f"home = {home}\n")
    (tmp_path / "use.py").write_text(USE + "".join(f"{call}\n" for call in MISTAKES))
    command = ("-m", "mypy", "--strict", "--no-incremental", "use.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *command, f"--python-executable={tmp_path / 'bin' / 'python'}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [each for each in done.stdout.splitlines() if each.startswith("use.py:")]
    first = USE.count("\n") + 1
    told = zip(range(first, first + len(MISTAKES)), MISTAKES.values(), strict=True)
    for line, (number, says) in zip(lines, told, strict=True):
        assert line.startswith(f"use.py:{number}: error: "), done.stdout + done.stderr
        assert says in line
