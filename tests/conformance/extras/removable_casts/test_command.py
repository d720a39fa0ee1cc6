"""``castigate chains``: chains are looked up in the tables, whose pages are in the docs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.conformance.processes import ROOT, castigate


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
