"""``castigate judge`` of quantization and blocks: lines whose tensors have names."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families import lines_of, recorded_tensors
from conformance.families.named_tensors import (
    formats_given,
    formats_returned,
    judge_tensors,
    tensors_given,
    tensors_in_words,
)
from conformance.families.reference import Reference
from conformance.families.value_spelling import NamedTensors, json_text
from conformance.recorded_lines import (
    LONGEST_LINE,
    LineTally,
    UnansweredInputs,
    judge_stream,
)
from specs.errors import CastigateError
from specs.selection import case_named
from tests.conformance.processes import castigate
from tests.conformance.test_judge import judged

Line = dict[str, Any]
CODES = "onnx-quantize-linear:25/float16/int8/scale:float16/form:tensor"
FLOAT8 = "onnx-quantize-linear:25/float32/float8e4m3fn/scale:float32/form:tensor/saturate:1"
ALONG_AXIS = "onnx-quantize-linear:25/float32/uint8/scale:float32/form:axis"
IN_BLOCKS = "onnx-dequantize-linear:25/int4/float32/scale:float32/form:block/block:16"
KEPT = "webnn-quantize-linear:draft/float32/int8/scale:float32/form:axis"
DYNAMIC = "onnx-dynamic-quantize-linear:11/float32/uint8"
MX = "mx-blocks:1/float32/float4e2m1/rule:floor/block:32"
NVFP4 = "nvfp4-blocks:1/float16/float4e2m1/rule:round-up/global:given/block:16"
DECODED = "mx-blocks-decode:1/float6e2m3/bfloat16/block:32"
CASES = (CODES, FLOAT8, ALONG_AXIS, IN_BLOCKS, KEPT, DYNAMIC, MX, NVFP4, DECODED)
ORACLE = Reference()
EXAMPLES = 20


def answered(name: str, given: Any) -> dict[str, np.ndarray]:
    """The reference's answer to the input of a line."""
    case = case_named(name)
    tensors = tensors_given(case, NamedTensors.model_validate(given))
    return dict(ORACLE.quantize(case, tensors))


def line(name: str, given: Any, answer: Mapping[str, np.ndarray]) -> Line:
    formats = formats_returned(case_named(name))
    return {"case": name, "input": given, "output": tensors_in_words(formats, answer)}


def verdict(name: str, given: Any, output: Any) -> Line:
    [found], _ = judged([{"case": name, "input": given, "output": output}])
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_references_answers_to_all_inputs_conform(name: str) -> None:
    lines = [
        line(name, given, answered(name, given))
        for given in lines_of(case_named(name)).listed(0, EXAMPLES)
    ]
    texts = [json.dumps(each) for each in lines]
    assert len(texts) > 3 or name in (ALONG_AXIS, IN_BLOCKS, KEPT)
    assert max(map(len, texts)) < LONGEST_LINE
    tally = LineTally(unanswered=UnansweredInputs())
    found = [*judge_stream(io.StringIO("\n".join(texts)), tally)]
    assert {each["verdict"] for each in found} <= {"conforms", "open"}
    assert "conforms" in tally.verdicts
    assert (tally.lines, tally.exit_code) == (len(lines), 0)
    assert tally.unanswered is not None
    tally.unanswered.check()


@pytest.mark.parametrize("name", CASES)
def test_a_code_with_its_lowest_bit_flipped_is_found(name: str) -> None:
    [given, *_] = lines_of(case_named(name)).listed(0, EXAMPLES)
    answer = answered(name, given)
    right = verdict(name, given, line(name, given, answer)["output"])
    allowed = [
        {each} if isinstance(each, str) else set(each) for each in right["allowed"]["y"]["bits"]
    ]
    form = formats_returned(case_named(name))["y"]
    flipped = answer["y"].copy()
    codes = flipped.reshape(-1)
    at = next(
        at
        for at, words in enumerate(allowed)
        if not words & {"anything", "any-nan", form.hexadecimal(int(codes[at]) ^ 1)}
    )
    codes[at] ^= 1
    found = verdict(name, given, line(name, given, answer | {"y": flipped})["output"])
    assert found["verdict"] in ("violates", "deviates")
    assert found["wrong"] == 1
    element = found["element"]
    assert element["result"] == "y"
    assert np.ravel_multi_index(element["index"], flipped.shape) == at
    assert element["output"] == form.hexadecimal(int(codes[at]))
    assert element["output"] not in element["allowed"]


@pytest.mark.parametrize("name", CASES)
def test_a_line_that_is_missing_is_named(name: str) -> None:
    given, *more = lines_of(case_named(name)).listed(0, EXAMPLES)
    unanswered = UnansweredInputs()
    text = json.dumps(line(name, given, answered(name, given)))
    [_] = judge_stream(io.StringIO(text), LineTally(unanswered=unanswered))
    if not more:
        return unanswered.check()
    with pytest.raises(CastigateError, match=rf"{len(more)} inputs? of 1 case without a line"):
        unanswered.check()
    return None


def test_values_may_be_spelled_as_numbers() -> None:
    given = {"x": [0.25, 1], "scale": 0.1, "zero": 3}
    found = verdict(CODES, given, {"y": [6, 13]})
    assert json.loads(json_text(found["input"])) == given
    assert found["input_pattern"]["scale"] == {"shape": [], "bits": ["0x2e66"]}
    assert found["output_pattern"] == {"y": {"shape": [2], "bits": ["0x06", "0x0d"]}}
    assert (found["verdict"], found["rule"], found["wrong"]) == ("deviates", "round-quotient", 1)
    assert found["allowed"] == {"y": {"shape": [2], "bits": ["0x05", "0x0d"]}}
    assert found["element"] == {
        "result": "y",
        "index": [0],
        "x": "0x3400",
        "scale": "0x2e66",
        "zero": "0x03",
        "output": "0x06",
        "allowed": ["0x05"],
    }
    assert verdict(CODES, given, {"y": [5, 13]})["verdict"] == "conforms"


def test_each_element_has_the_scale_of_its_place() -> None:
    given = {"x": [[1.0, 1.0], [2.0, 2.0]], "scale": [1.0, 0.5], "zero": [0, 1]}
    assert verdict(ALONG_AXIS, given, {"y": [[1, 3], [2, 5]]})["verdict"] == "conforms"
    assert verdict(ALONG_AXIS, given, {"y": [1, 3, 2, 5]})["verdict"] == "conforms"
    assert verdict(ALONG_AXIS, given, {"y": [[1, 1], [3, 5]]})["wrong"] == 2


def test_several_codes_may_be_allowed_and_a_nan_may_be_any() -> None:
    case = case_named(FLOAT8)
    assert formats_given(case)["zero"].name == "float8e4m3fn"
    given = {"x": ["-0", "nan", 3.0], "scale": 1.0}
    found = verdict(FLOAT8, given, {"y": ["0x00", "0xff", "0x44"]})
    assert found["verdict"] == "conforms"
    zeros, *others = found["allowed"]["y"]["bits"]
    assert (set(zeros), others) == ({"0x00", "0x80"}, ["any-nan", "0x44"])


def test_elements_about_which_nothing_is_said_are_open() -> None:
    given = {"x": ["nan"], "scale": 1.0}
    found = verdict(CODES, given, {"y": [77]})
    assert (found["verdict"], found["level"]) == ("open", "unspecified")
    assert found["allowed"] == {"y": {"shape": [1], "bits": ["anything"]}}
    assert verdict(CODES, given, {"error": "no NaN"})["verdict"] == "open"
    mixed = verdict(CODES, {"x": ["nan", 1], "scale": 1.0}, {"y": [77, 2]})
    assert (mixed["verdict"], mixed["wrong"], mixed["element"]["index"]) == ("violates", 1, [1])


def test_an_error_where_answers_are_due_is_wrong() -> None:
    found = verdict(CODES, {"x": [1, "nan", 2], "scale": 1.0}, {"error": "no"})
    assert (found["verdict"], found["wrong"]) == ("violates", 2)
    assert "output" not in found["element"]


def test_another_shape_breaks_the_rule_about_shapes() -> None:
    found = verdict(CODES, {"x": [[1, 2]], "scale": 1.0}, {"y": {"shape": [2, 1], "bits": [1, 2]}})
    assert (found["verdict"], found["rule"]) == ("violates", "shape-kept")
    assert found["allowed"] == {"y": {"shape": [1, 2]}}


def test_codes_of_blocks_are_judged_by_the_scale_that_came() -> None:
    given = {"x": [28.0, -6.0, 1.0]}
    assert verdict(MX, given, {"scale": ["0x81"], "y": [6, -6, 0]})["wrong"] == 1
    found = verdict(MX, given, {"scale": ["0x82"], "y": [4, -1, 0]})
    assert (found["verdict"], found["rule"], found["wrong"]) == ("violates", "floor", 1)
    assert found["element"] == {
        "result": "scale",
        "index": [0],
        "largest": "0x41e00000",
        "output": "0x82",
        "allowed": ["0x81"],
    }


@pytest.mark.parametrize("name", [MX, DECODED])
def test_blocks_without_rows_are_judged(name: str) -> None:
    x, scale = ({"shape": shape, "bits": []} for shape in ([0, 40], [0, 2]))
    given, output = ({"x": x, "scale": scale}, {"y": x})
    if name == MX:
        given, output = {"x": x}, {"scale": scale, "y": x}
    assert verdict(name, given, output)["verdict"] in ("conforms", "open")


def test_a_dynamic_quantization_is_judged_in_three_parts() -> None:
    given = {"x": [0.0, 255.0]}
    right: Line = {"scale": 1.0, "zero": 0, "y": [0, 255]}
    assert verdict(DYNAMIC, given, right)["verdict"] == "conforms"
    wrong = verdict(DYNAMIC, given, right | {"zero": 1, "y": [1, 255]})
    assert (wrong["wrong"], wrong["element"]["result"]) == (1, "zero")
    wrong = verdict(DYNAMIC, given, right | {"scale": 2.0, "y": [0, 128]})
    assert (wrong["wrong"], wrong["element"]["result"]) == (1, "scale")
    assert verdict(DYNAMIC, given, right | {"y": [0, 254]})["element"]["index"] == [1]


BAD: list[tuple[str, Any, Any, str]] = [
    (CODES, 1.0, {"y": [1]}, '`input` of onnx-quantize-linear names tensors; write {"x": …'),
    (CODES, {"x": [1]}, {"y": [1]}, "`input` has no tensor `scale`"),
    (KEPT, {"x": [[1.0]], "scale": 1.0}, {"y": [[1]]}, "`input` has no tensor `zero`"),
    (CODES, {"x": [1], "scale": 1.0, "y": 1}, {"y": [1]}, "a tensor `y`, which onnx-quantize"),
    (CODES, {"x": [1], "scale": 1.0}, {"z": [1]}, "`output` is {"),
    (CODES, {"x": [1], "scale": [1.0, 2.0]}, {"y": [1]}, "`input.scale` has shape 2; beside this"),
    (CODES, {"x": [1], "scale": 1.0}, {"y": [300]}, "`output.y[0]` `300` is outside the range"),
    (ALONG_AXIS, {"x": [1.0], "scale": 1.0}, {"y": [1]}, "the form `axis` needs an axis 1"),
    (IN_BLOCKS, {"x": [[1]], "scale": 1.0}, {"y": [[1.0]]}, "`input.scale` has shape scalar"),
    (DYNAMIC, {"x": []}, {"y": [], "scale": 0.0, "zero": 0}, "`x` has no elements, so that no sca"),
    (MX, {"x": 1.0}, {"scale": 1, "y": 1}, "`input.x` has no dimension"),
    (MX, {"x": [1.0]}, {"y": [1]}, "`output` has no tensor `scale`"),
    (MX, {"x": [1.0]}, {"scale": [1], "y": [1, 2]}, "`output.y` has shape 2"),
    (NVFP4, {"x": [1.0]}, {"scale": [1], "y": [1]}, "`input` has no tensor `global`"),
    ("onnx-cast:25/float32/float16", {"x": 1.0}, "0x3c00", "names tensors, as of a quantization"),
]


@pytest.mark.parametrize(("name", "given", "output", "message"), BAD)
def test_a_malformed_line_says_what_is_wrong(
    name: str, given: Any, output: Any, message: str
) -> None:
    assert message in verdict(name, given, output)["error"]


@pytest.mark.parametrize("name", CASES)
def test_parts_are_judged_like_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong codes lie in late parts."""
    case = case_named(name)
    given = [*lines_of(case).listed(0, EXAMPLES)][-1]
    tensors = tensors_given(case, NamedTensors.model_validate(given))
    if name in (CODES, FLOAT8):
        tensors = tensors | {"x": np.resize(tensors["x"], (12, 40))}
    answer = dict(ORACLE.quantize(case, tensors))
    spoilt = answer["y"].copy().reshape(-1)
    spoilt[spoilt.size // 2 :] ^= 1
    answer["y"] = spoilt.reshape(answer["y"].shape)
    whole = judge_tensors(case, tensors, answer, has_allowed=False)
    monkeypatch.setattr(recorded_tensors, "MOST_AT_ONCE", 16)
    parts = recorded_tensors.judge_arrays(case, tensors, answer)
    assert parts["wrong"] > 0
    counts = ("verdict", "elements", "wrong", "open")
    assert [parts[each] for each in counts] == [whole[each] for each in counts]
    assert parts["element"] == whole["element"]


def test_arrays_of_a_file_are_judged(tmp_path: Path) -> None:
    x = np.array([[0.25, 1.0], [2.0, -3.0]], np.float16)
    y = np.array([[5, 13], [23, -27]], np.int8)
    file = tmp_path / "recorded.npz"
    np.savez(file, x=x, scale=np.float16(0.1), zero=np.int8(3), y=y)
    asked = ["judge", str(file), "--case", CODES]
    code, out, err = castigate(*asked)
    assert code == 0
    assert json.loads(out) | {"rule": "", "clause": "", "level": ""} == {
        "case": CODES,
        "verdict": "conforms",
        "rule": "",
        "clause": "",
        "level": "",
        "elements": 4,
        "wrong": 0,
        "open": 0,
    }
    assert err == "4 elements: conforms\n"
    y[1, 0] = 24
    np.savez(file, x=x, scale=np.float16(0.1), zero=np.int8(3), y=y)
    code, out, err = castigate(*asked)
    assert code == 1
    assert json.loads(out)["element"]["index"] == [1, 0]
    assert err == (
        "4 elements: violates\nwrong: 1 element; y[1, 0] of x 0x4000 (2), scale 0x2e66"
        " (0.0999755859375), zero 0x03 (3) is 0x18 (24), not 0x17 (23)\n"
    )
    assert castigate(*asked, "--json") == (1, out, "")


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ({"x": 1.0}, [], "holds arrays; name their case: castigate judge"),
        ({"x": 1.0}, ["--case", CODES], "there is no array `scale`; the arrays of"),
        ({"x": 1.0, "q": 1}, ["--case", CODES], "`q` is no array of"),
        ({"x": 1.0}, ["--case", "onnx-cast:25/float32/int8"], "is no quantization"),
        ({"x": 1.0}, ["--case", CODES, "--complete"], "are for JSON lines"),
        ({"x": np.array(["a"])}, ["--case", CODES], "x: numpy makes no numbers of this"),
        (None, ["--case", CODES], "is no .npz of arrays"),
    ],
)
def test_a_file_of_arrays_that_does_not_fit_is_one_line(
    tmp_path: Path, content: dict[str, Any] | None, options: list[str], says: str
) -> None:
    file = tmp_path / "recorded.npz"
    if content is None:
        file.write_bytes(b"PK\x03\x04 is no archive")
    else:
        np.savez(file, **content)
    code, out, err = castigate("judge", str(file), *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("castigate: ")
    assert says in err


def test_the_command_writes_tensors_only_if_asked(tmp_path: Path) -> None:
    given = {"x": [0.25, 1], "scale": 0.1, "zero": 3}
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"case": CODES, "input": given, "output": {"y": [6, 13]}}))
    code, brief, err = castigate("judge", str(file))
    assert not {"input", "output", "allowed", "input_pattern"} & json.loads(brief).keys()
    assert "wrong: 1 element; line 1: y[0] of x 0x3400 (0.25)" in err
    same, whole, also = castigate("judge", str(file), "--tensors")
    assert (same, also) == (code, err)
    assert json.loads(whole)["allowed"] == {"y": {"shape": [2], "bits": ["0x05", "0x0d"]}}


def test_a_line_that_is_too_long_says_how_to_record_large_tensors() -> None:
    tally = LineTally()
    [found] = judge_stream(io.StringIO(" " * (LONGEST_LINE + 1)), tally)
    assert "longer than 1,048,576 characters" in found["error"]
    assert "castigate judge FILE.npz --case CASE" in found["error"]
