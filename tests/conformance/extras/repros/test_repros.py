"""Findings as folders: what is split from a script, and that what is left runs alone."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conformance.extras.repros.files import files_of
from oracles.registry import load_backend
from reports.findings.read_findings import read_findings
from tests.adapters.common import run_script
from tests.conformance.processes import castigate
from tests.reports.judged_run import RIGHT, cases_of, judged_run, run_of

CASE = "onnx-cast:25/float8e8m0/uint2"
"""A case that onnxruntime gets wrong."""


def test_a_folder_runs_alone(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    store = run_of(tmp_path / "run", [load_backend("ort")], cases_of(CASE))
    code, out, _ = castigate("export", "findings", str(tmp_path / "run"), f"--out={tmp_path / 'x'}")
    assert (code, out) == (0, f"{tmp_path / 'x'}: 1 finding; each runs by python script.py\n")
    [folder] = (tmp_path / "x").iterdir()
    assert folder.name.startswith("01-ort_")
    names = {file.name for file in folder.iterdir()}
    assert names == {"issue.md", "script.py", "model.onnx", "bits.npy"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    [[finding]] = read_findings(store).values()
    assert done.stdout.splitlines() == run_script(finding.simplest.script)
    assert f"# Cast {CASE.split('/')[1]}" in (folder / "issue.md").read_text()


def test_without_findings_the_code_is_3(tmp_path: Path) -> None:
    judged_run(tmp_path / "run", {"right": RIGHT.cast}, cases_of("onnx-cast:25/bool/uint8"))
    code, out, _ = castigate("export", "findings", str(tmp_path / "run"), f"--out={tmp_path / 'x'}")
    assert (code, out) == (3, f"{tmp_path / 'x'}: 0 findings; each runs by python script.py\n")


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    judged_run(tmp_path / "run", {"right": RIGHT.cast}, cases_of("onnx-cast:25/bool/uint8"))
    code, _, err = castigate("export", "findings", str(tmp_path / "run"), f"--out={tmp_path}")
    assert (code, err) == (2, f"castigate: {tmp_path} is not empty; give a new folder as --out\n")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x = np.array([0x1, 0xff], np.uint8)", np.array([1, 255], np.uint8)),
        ("x = np.array([\n    0x1,\n], np.int16)", np.array([1], np.int16)),
        ("x = np.full(3, 0x7, np.uint64)", np.full(3, 7, np.uint64)),
        ("x = np.array([0x1], np.uint32).reshape((1, 1))", np.array([[1]], np.uint32)),
        ("x = np.array([1, 2], np.uint64).view('V16')", np.array([1, 2], np.uint64).view("V16")),
    ],
)
def test_literal_arrays_become_files(statement: str, expected: np.ndarray) -> None:
    files = files_of(f"import numpy as np\n{statement}\nprint(x)\n")
    assert files["script.py"] == b'import numpy as np\nx = np.load("x.npy")\nprint(x)\n'
    found = np.load(io.BytesIO(files["x.npy"]))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "script",
    [
        "x = np.array(['text'], object)\n",
        "x = np.load('other.npy')\n",
        "x = open('file', 'w')\n",
        "x = np.array(open('file', 'w'))\n",
        "x = np.array.__class__(1)\n",
        "x, y = np.array([1]), 2\n",
        "x = parse(\n",
    ],
)
def test_all_else_stays_in_the_script_and_is_not_executed(script: str) -> None:
    assert files_of(script) == {"script.py": script.encode()}
