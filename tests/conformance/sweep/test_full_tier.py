"""``pytest --tier=full`` finds the same in one process as ``castigate run`` does in many."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conformance.processes import BOOL, FULL, ONNX, ROOT, backend, castigate, rows, run

PLACED = Path(__file__).parents[1] / "data" / "placed.py"
UINT32 = "onnx-cast:25/uint32/"


def suite(*arguments: str) -> tuple[int, str]:
    """Run the suite; return its exit code and its output, which must not have an internal error."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "conformance"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    return done.returncode, output


def recorded(file: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a suite's items, by case."""
    found = {}
    for item in ElementTree.parse(file).iter("testcase"):
        [value] = [each.get("value", "") for each in item.iter("property")]
        kept = eval(value, {"__builtins__": {}})
        del kept["item"]
        if not kept.pop("check"):
            found[kept["case"]] = kept
    return found


def kept(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the same records from a stored run."""
    return {
        row["case"]: {
            **{name: row[name] for name in ("case", "backend", "document", "version", "verdict")},
            **{name: row[name] for name in ("inputs", "open", "wrong", "message")},
            "broken": [
                [rule["rule"], rule["clause"], rule["level"], rule["wrong"]]
                for rule in row["broken"]
            ],
        }
        for row in rows(folder, "cases")
    }


def table(output: str) -> list[list[str]]:
    """The row of the only backend in the table of verdicts, split at blanks."""
    return [line.split() for line in output.splitlines() if re.match(r"\S+ +onnx-cast:25 ", line)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("ManyRuns", ""),
        ("TooLong", "bool"),
        ("Raises", "bool"),
        ("Declines", "bool"),
    ],
)
def test_both_ways_find_the_same(name: str, target: str, tmp_path: Path) -> None:
    file, out = tmp_path / "junit.xml", tmp_path / "run"
    arguments = (backend(name), ONNX, FULL)
    asked = ["-k", UINT32 + target, f"--junit-xml={file}", "-o", "junit_family=xunit1"]
    code, output = suite(*arguments, *asked)
    only = ["--source=uint32", *([f"--target={target}"] if target else [])]
    run_code, printed, _ = castigate("run", *arguments, *only, f"--out={out}")
    assert code == {0: 0, 1: 1, 3: 5}[run_code]
    assert recorded(file) == kept(out)
    assert table(output) == table(printed)
    assert len(recorded(file)) == (1 if target else len(kept(out)))


@pytest.mark.nightly
def test_a_failure_shows_all_that_the_sweep_has_found(tmp_path: Path) -> None:
    code, output = suite(backend("WrongRange"), ONNX, FULL, "-k", f"{UINT32}bool")
    assert code == 1
    assert f"{0x1100} of {1 << 32} inputs: 0x7fffff00 to 0x80000fff" in output
    assert "tier full" in output
    assert run(tmp_path / "run", backend("WrongRange"), *BOOL, FULL) == 1
    [row] = rows(tmp_path / "run", "cases")
    assert row["reproduction"] in output


def test_the_quick_tier_finds_a_part_of_it() -> None:
    code, output = suite(backend("WrongRange"), ONNX, "-k", f"{UINT32}bool")
    assert code == 1
    assert f" of {1 << 32} inputs" not in output


@pytest.mark.nightly
def test_where_shapes_are_costly_the_full_tier_asks_all_of_them() -> None:
    arguments = (f"--backend={PLACED}:WrongInRankFive", ONNX, "-k", "onnx-cast:25/int4/int2")
    assert suite(*arguments)[0] == 0
    code, output = suite(*arguments, FULL)
    assert (code, "shape (1, 1, 2, 1, 2): an element answers otherwise" in output) == (1, True)
