"""``castigate specs diff`` says which rulings change, smallest input first, and whom it breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specs.loader import DOCUMENTS, documents
from tests.conformance.processes import castigate, castigate_process

CLAMPS = """\
document: own-cast
title: A cast that clamps
operation: cast
seed: none
scope: own-dtypes

versions:
  1: {from: [float32, int16, string], to: [int8], rules: [clamps, texts]}
  2: {extends: 1}

rules:
  clamps:
    clause: "section 1"
    level: required
    when: {from: numeric}
    then:
      {nan: unspecified, inf: max, -inf: lowest, overflow: max, -overflow: lowest,
       otherwise: toward-zero}
  texts:
    clause: "section 2"
    level: required
    when: {from: string}
    then: {whole-literal-in-range: toward-zero, otherwise: unspecified}

tensors:
  every-shape: {clause: "element by element", level: required, when: {}, then: same-shape}
"""
WRAPS = (
    "import numpy as np\n"
    "class Wraps:\n"
    "    name, version = 'wraps', '1'\n"
    "    def cast(self, case, bits):\n"
    "        return (bits & 255).astype(np.uint8)\n"
)


def edited(folder: Path, old: str, new: str) -> tuple[str, str]:
    """Write the document, and the document with one word changed; return both paths."""
    assert CLAMPS.count(old) == 1
    (folder / "old.yaml").write_text(CLAMPS)
    (folder / "new.yaml").write_text(CLAMPS.replace(old, new))
    return str(folder / "old.yaml"), str(folder / "new.yaml")


def lines(*words: str) -> tuple[int, list[str]]:
    code, out, err = castigate("specs", "diff", *words)
    assert err == ""
    return code, out.splitlines()


def records(*words: str) -> tuple[int, list[dict[str, Any]]]:
    code, found = lines(*words, "--json")
    return code, [json.loads(line) for line in found]


def test_one_word_of_a_rule_changes_these_inputs(tmp_path: Path) -> None:
    old, new = edited(tmp_path, " overflow: max", " overflow: wrap")
    code, found = lines(f"{old}:2", f"{new}:2")
    assert code == 1
    text = " ".join(line.strip() for line in found)  # Long paths break lines.
    assert text.startswith(f"{old}:2 →")
    assert "new.yaml:2: 2 of 3 cases change" in text
    assert "clamps: 2 cases, int16 and float32 to int8" in text
    assert "other     0x0080 (128) of int16 to int8: 0x7f (127) → 0x80 (-128)" in text
    # 127 of the integers from 128 to 32767 end in the byte of 127.
    assert "32,513 inputs: a part of x ≥ 128; so in 2 cases" in text


def test_versions_of_both_files_are_compared_by_their_names(tmp_path: Path) -> None:
    old, new = edited(tmp_path, "nan: unspecified", "nan: zero")
    code, [head, change] = records(old, new)
    assert code == 1
    assert [each["old"] for each in head["editions"]] == ["own-cast:1", "own-cast:2"]
    assert (head["cases"], head["changed"]) == (6, 2)
    assert (change["direction"], change["old"]["level"]) == ("stricter", "unspecified")
    [one, _] = change["cases"]
    assert (one["where"], one["inputs"]) == ("NaN", 2 * (2**23 - 1))
    assert (one["was"], one["now"], one["simplest"]) == (["anything"], ["0x00"], "0x7f800001")


def test_texts_are_compared_on_listed_ones(tmp_path: Path) -> None:
    old, new = edited(tmp_path, "otherwise: unspecified", "otherwise: zero")
    code, [_, change] = records(f"{old}:1", f"{new}:1")
    [case] = change["cases"]
    assert code == 1
    assert change["direction"] == "stricter"
    assert (case["simplest"], case["now"]) == ({"text": ""}, ["0x00"])
    assert 0 < case["inputs"] < case["of"]


def test_an_edition_beside_itself_is_no_change(tmp_path: Path) -> None:
    old, _ = edited(tmp_path, "A cast that clamps", "Another title")
    code, found = lines(old, old)
    assert code == 0
    text = " ".join(line.strip() for line in found)  # Long paths break lines.
    assert text.endswith("old.yaml: none of 6 cases changes")
    assert lines("onnx-cast:25", "onnx-cast:25")[0] == 0


def test_a_new_clause_is_no_change_of_a_ruling(tmp_path: Path) -> None:
    old, new = edited(tmp_path, "section 1", "section 4")
    code, found = lines(old, new)
    assert code == 0
    assert found[-1] == "  same      4 cases by other rules or clauses"


def test_shape_rules_that_differ_are_named(tmp_path: Path) -> None:
    old, new = edited(tmp_path, "same-shape", "unspecified")
    code, found = lines(old, new)
    assert (code, found[-1]) == (1, "  besides   shape rule `every-shape`")


def test_shape_rules_of_some_versions_differ_between_versions() -> None:
    code, found = lines("cinn-cast:tvm", "cinn-cast:torch-xla")
    assert code == 1
    assert found[0] == "cinn-cast:tvm → cinn-cast:torch-xla: none of 169 cases changes"
    assert found[1].startswith("  besides   shape rule `")


def test_a_file_is_compared_with_the_shipped_document_of_its_name(tmp_path: Path) -> None:
    text = (DOCUMENTS / "onnx_cast.yaml").read_text("utf-8")
    start, end = text.split("  integer-to-float8:\n", 1)
    path = tmp_path / "onnx.yaml"
    path.write_text(f"{start}  integer-to-float8:\n{end.replace('lowest', 'zero', 1)}")
    code, [head, change] = records("onnx-cast:25", str(path))
    assert code == 1
    assert head["editions"] == [{"old": "onnx-cast:25", "new": "onnx-cast:25"}]
    assert change["old"]["rule"] == change["new"]["rule"] == "integer-to-float8"
    broken = [each for each in change["backends"] if each["effect"] == "breaks"]
    assert {each["backend"] for each in broken if each["claimed"]} == {"onnx", "ort"}
    assert "torch" in {each["backend"] for each in broken if not each["claimed"]}
    assert documents()["onnx-cast"].source.path.parent == DOCUMENTS


def test_pairs_that_a_version_lists_anew_stand_by_their_rules() -> None:
    code, found = lines("onnx-cast:24", "onnx-cast:25")
    assert code == 1
    assert found[0] == "onnx-cast:24 → onnx-cast:25: 110 of 1,179 cases change"
    assert found[1].startswith("  listed    92 pairs: float32, float16 and 20 more to int2 and")
    assert any(
        line.startswith("  not-listed → float-to-narrow-integer: 20 cases") for line in found
    )


def test_a_mode_that_only_one_edition_has_is_new() -> None:
    code, found = lines("wasm-convert:2.0", "wasm-convert:3.0")
    assert code == 1
    assert found == [
        "wasm-convert:2.0 → wasm-convert:3.0: none of 56 cases changes",
        "  new       2 cases, such as wasm-convert:3.0/float32/float64/profile:deterministic",
    ]


def test_quantizations_are_compared_by_their_rules() -> None:
    code, found = lines("onnx-quantize-linear:21", "onnx-quantize-linear:23")
    assert code == 1
    assert "  gone      quotient, required: quotient: exact, inexact" in found
    assert found[-1] == "documents of `quantize` are compared by their rules, not input by input"
    assert lines("onnx-quantize-linear:23", "onnx-quantize-linear:23")[0] == 0


def test_an_installed_backend_is_asked(tmp_path: Path) -> None:
    old, new = edited(tmp_path, " overflow: max", " overflow: wrap")
    (tmp_path / "stack.py").write_text(WRAPS)
    asked = f"--backend={tmp_path / 'stack.py'}:Wraps"
    code, out, err = castigate_process("specs", "diff", f"{old}:1", f"{new}:1", asked, "--json")
    assert (code, err) == (1, "")
    [_, change] = map(json.loads, out.splitlines())
    [effect] = [each for each in change["backends"] if each["old"].startswith("own-cast:1/int16")]
    assert (effect["effect"], effect["inputs"], effect["all"]) == ("mends", 32513, True)
    assert (effect["simplest"], effect["answer"]) == ("0x0080", "0x80")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["onnx-cast:24"], "`castigate specs diff` takes two editions; write castigate specs diff"),
        (["onnx-cast", "onnx-cast"], "`onnx-cast` names no version; write castigate specs diff"),
        (["onnx-cast:25", "torch-view:2"], "`onnx-cast:25` is about `cast` and `torch-view:2`"),
        (["none.yaml", "onnx-cast:25"], "document none.yaml: there is no such file"),
        (["onnx-cast:24", "onnx-cast:25", "--backend=nope"], "unknown backend `nope`"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], says: str) -> None:
    code, out, err = castigate("specs", "diff", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {says}")
    assert err.count("\n") == 1


def test_backends_are_for_a_comparison_only() -> None:
    code, out, err = castigate("specs", "onnx-cast:25", "--backend=ort")
    assert (code, out) == (2, "")
    assert "castigate specs diff" in err
