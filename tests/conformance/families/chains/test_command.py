"""Chains at the command line: explained, and asked of a backend in a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conformance.processes import castigate

ONE = ("--document=onnx-cast:25", "--source=float32", "--target=int8")
LOST = "chains/onnx-cast:25/float32/bfloat16/int8"


def test_a_chain_is_explained_step_by_step() -> None:
    asked = ("explain", "onnx-cast/float32/int32/bool", "-0.2", "3e9", "--backend=reference")
    code, out, _ = castigate(*asked, "--json")
    one, other = map(json.loads, out.splitlines())
    assert code == 0
    assert one["chain"] == "onnx-cast:25/float32/int32/bool"
    assert (one["allowed"], one["direct"]) == (["0x0"], ["0x1"])
    assert [each["allowed"] for each in one["steps"]] == [["0x00000000"], ["0x0"]]
    assert one["answers"] == {"reference": {"steps": "0x0"}}
    # The first step is open, so there is no second one to show.
    assert (other["allowed"], len(other["steps"])) == (["anything"], 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["float32/int32/bool"], "`float32/int32/bool` needs inputs of float32"),
        (["onnx-cast/float32/int32/bool"], "needs inputs of float32"),
        (["onnx-cast/float32/int32/bool", "x"], "`x`"),
        (["onnx-cast/float32/string/bool", "1"], "no cast from float32 to string for a chain"),
    ],
)
def test_a_chain_that_cannot_be_explained_is_refused(words: list[str], said: str) -> None:
    code, out, err = castigate("explain", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def run_of_reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """The folder of a run with chains, its exit code and what it printed."""
    folder = tmp_path_factory.mktemp("reference") / "run"
    code, out, _ = castigate("run", "--backend=reference", *ONE, "--chains", f"--out={folder}")
    return folder, code, out


@pytest.fixture(scope="module")
def run_of_ort(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("chains") / "run"
    _, out, _ = castigate("run", "--backend=ort", *ONE, "--chains", f"--out={folder}")
    return folder, out


def test_a_run_asks_chains_and_names_what_the_optimizer_did(run_of_ort: tuple[Path, str]) -> None:
    folder, out = run_of_ort
    rows = {each["check"]: each for each in pq.read_table(folder / "pairs.parquet").to_pylist()}
    assert rows[LOST]["verdict"] == "deviates"
    assert "on level:all, " in rows[LOST]["message"]
    assert rows["chains/onnx-cast:25/float32/int8/int8"]["verdict"] == "conforms"
    assert "chains/onnx-cast:25/float32/float64/int8" not in rows  # It loses nothing.
    assert "leaves out the cast to a float in the middle of a chain" in out
    assert json.loads((folder / "run.json").read_text())["chains"] == {"ort": ["onnx-cast:25"]}


def test_the_script_of_a_chain_shows_the_answer_alone(run_of_ort: tuple[Path, str]) -> None:
    folder, _ = run_of_ort
    _, issue, _ = castigate("findings", str(folder), "--issue", "ort/drops-float-on-the-way")
    assert "| float32 | int8 | float32 → bfloat16 → int8 |" in issue
    script = issue.split("```python\n")[1].split("```")[0]
    assert len(script.strip().splitlines()) <= 15
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    given, _, answer = done.stdout.strip().partition(" -> ")
    assert f"{int(given, 16):#010x}" in issue
    assert f"gives {int(answer, 16):#04x}" in issue


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        (["--chains"], "XFAIL"),  # the ledger lists the failure
        (["--chains", "--no-ledger"], "FAILED"),
        ([], ""),
    ],
)
def test_pytest_asks_chains_as_items_of_their_own(
    options: list[str], outcome: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    suite = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "conformance"]
    asked = ["--backend=ort", "--document=onnx-cast:25", "-k", "float32/bfloat16/int8", "-v"]
    command = [*suite, *asked, *options]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert (f"{LOST} {outcome}" in out) == bool(outcome)
    assert ("onnx-cast:25/float32/bfloat16/int8" in out) == bool(outcome)
    assert (f"1 {outcome.lower()}" in out) == bool(outcome)


def test_a_run_without_chains_records_none(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    castigate("run", "--backend=reference", *ONE, f"--out={folder}")
    assert "chains" not in json.loads((folder / "run.json").read_text())


def test_the_reference_conforms_in_company(run_of_reference: tuple[Path, int, str]) -> None:
    folder, code, out = run_of_reference
    assert code == 0, out
    rows = pq.read_table(folder / "pairs.parquet").to_pylist()
    found = {each["verdict"] for each in rows if each["check"].startswith("chains/")}
    assert found == {"conforms"}


def test_a_backend_without_chains_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = ("run", "--backend=ml_dtypes", *ONE, "--chains", f"--out={folder}")
    code, _, err = castigate(*command)
    assert code == 2
    assert "no backend makes chains of casts here (ml_dtypes)" in err
    assert not (folder / "run.json").exists()


def test_the_report_shows_chains_and_tells_the_same_message_once(
    run_of_ort: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = run_of_ort
    code, _, err = castigate("report", str(folder), f"--out={tmp_path / 'report'}")
    assert code == 0, err
    page = (tmp_path / "report" / "layouts.html").read_text(encoding="utf-8")
    assert "casts in company, by onnx-cast:25" in page
    assert "float32 → bfloat16 → int8" in page
    finding = tmp_path / "report" / "finding-ort-drops-float-on-the-way.html"
    assert "<td>float32 → bfloat16 → int8</td>" in finding.read_text(encoding="utf-8")
    rows = pq.read_table(folder / "pairs.parquet").to_pylist()
    refused = [each for each in rows if each["verdict"] == "error"]
    assert len(refused) > 1
    assert f"(and {len(refused) - 1} more like this)" in page


def test_shards_with_chains_join_to_the_whole_run(
    run_of_reference: tuple[Path, int, str], tmp_path: Path
) -> None:
    asked = ("run", "--backend=reference", *ONE, "--chains")
    shards = [tmp_path / "first", tmp_path / "second"]
    for number, shard in enumerate(shards, 1):
        castigate(*asked, f"--shard={number}/2", f"--out={shard}")
    code, _, err = castigate("merge", *map(str, shards), f"--out={tmp_path / 'joined'}")
    assert code == 0, err
    for name in ("cases.parquet", "pairs.parquet", "problems.parquet"):
        joined, whole = (tmp_path / "joined" / name, run_of_reference[0] / name)
        assert joined.read_bytes() == whole.read_bytes(), name
