"""Chains at the command line: looked up, asked of a backend, and read from tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from tests.conformance.processes import ROOT, castigate

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


def test_chains_are_looked_up_one_by_one() -> None:
    code, out, _ = castigate(
        "chains", "onnx-cast/float8e5m2/float16/float8e5m2", "onnx-cast/float16/bool/float16"
    )
    assert code == 0
    assert "may always be left out" in out
    assert "\n  rules that rewrite it: onnxruntime-cast-chains, onnxruntime-cascaded-casts\n" in out
    assert "may not be left out: the document requires another result" in out


@pytest.mark.parametrize(
    "words",
    [
        ("fp32", "bf16", "int8"),
        ("fp32", "to", "bf16", "to", "s8"),
        ("fp32 -> bf16 -> int8",),
        ("fp32/bf16/int8",),
        ("onnx-cast", "float32", "bfloat16", "int8"),
    ],
)
def test_a_chain_is_spelled_as_in_explain(words: tuple[str, ...]) -> None:
    code, out, err = castigate("chains", *words)
    assert (code, out) == castigate("chains", "onnx-cast:25/float32/bfloat16/int8")[:2]
    assert (code, "onnx-cast" in words) == (0, err == "")
    assert "cinn-cast:1.0" in err or not err


def test_an_input_belongs_to_explain() -> None:
    code, out, err = castigate("chains", "fp32", "bf16", "int8", "106.75")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "castigate explain fp32 bf16 int8 106.75 answers it" in err


def test_a_longer_chain_is_answered_by_each_two_casts_that_meet(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    name = "onnx-cast/float32/float16/bfloat16/int8"
    code, out, _ = castigate("chains", name, f"--json={file}")
    pairs = ["onnx-cast:25/float32/float16/bfloat16", "onnx-cast:25/float16/bfloat16/int8"]
    assert (code, out) == (0, castigate("chains", *pairs)[1])
    content = json.loads(file.read_text("utf-8"))
    assert [each["chain"] for each in content["chains"]] == pairs
    jsonschema.validate(content, json.loads(castigate("chains", "schema")[1]))


def test_a_chain_says_of_which_input_less_is_required_without_the_cast() -> None:
    name = "onnx-cast:25/float8e5m2/float8e4m3fn/saturate:1/float4e2m1"
    code, out, _ = castigate("chains", name)
    assert code == 0
    assert "may always be left out, and less is then required of some inputs" in out
    assert "\n  the chain requires its answer to 0x01 (" in out
    assert "\n  onnx-cast:25/float8e5m2/float4e2m1 only recommends it\n" in out


@pytest.mark.parametrize(
    ("name", "page"), [("onnx-cast:25", "removable_casts.md"), ("rewrites", "rewrites.md")]
)
def test_the_pages_are_what_the_tables_say(name: str, page: str, tmp_path: Path) -> None:
    written = tmp_path / page
    code, _, err = castigate("chains", name, f"--page={written}")
    assert code == 0, err
    assert written.read_text("utf-8") == (ROOT / "docs" / "atlas" / page).read_text("utf-8"), (
        f"run castigate chains {name} --page docs/atlas/{page}"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("onnx-cast:1", "no table of the chains of onnx-cast:1 is shipped (there are: "),
        ("plain-cast:saturates/float32/bfloat16/int8", "castigate explain compares a chain"),
        ("model.onnx", "`model.onnx` is a model, and chains are casts; name those that meet"),
        ("float32/int8", "`float32/int8` is no chain of casts; name one document, or three"),
        ("onnx-cast:25/float32/string/bool", "no cast from float32 to string for a chain"),
    ],
)
def test_what_no_table_has_is_refused(name: str, said: str) -> None:
    code, out, err = castigate("chains", name)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_json_is_what_its_schema_says(tmp_path: Path) -> None:
    file = tmp_path / "chains.json"
    code, _, err = castigate("chains", "onnx-cast:25", f"--json={file}")
    assert code == 0, err
    _, out, _ = castigate("chains", "schema")
    content = json.loads(file.read_text("utf-8"))
    content["chains"] = content["chains"][::20]
    assert any("weakening" in each for each in content["chains"])
    jsonschema.validate(content, json.loads(out))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"edition": "onnx-cast:25"}, json.loads(out))


def test_a_document_of_calls_or_of_anothers_casts_has_no_chains() -> None:
    for name in ("torch-tensor-to", "onnx-cast-like"):
        code, _, err = castigate("chains", name)
        words = f"{name} has no chains: it is not about casts, or repeats another document"
        assert (code, words in err) == (2, True)


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
