"""`castigate explain` of a block: its scale, its codes with their values, rules and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.processes import castigate

MX = "mx-blocks:1/float32/float4e2m1/rule:floor/block:32"
INTEGERS = "mx-blocks:1/float32/int8/rule:floor/block:32"
NVFP4 = "nvfp4-blocks:1/float32/float4e2m1/rule:nearest-even/global:given/block:16"


def explained(*arguments: str) -> Any:
    code, out, err = castigate("explain", "--json", *arguments)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_block_has_one_scale_and_a_code_for_each_number() -> None:
    found = explained(MX, "28", "-6", "1", "--backend=reference")
    # 28 lies from 2^4, and the largest power of two of E2M1 is 2^2: the scale is 2^2.
    assert found["scale"]["allowed"] == ["0x81"]
    assert found["scale"]["rule"] == "floor"
    assert [each["allowed"] for each in found["elements"]] == [["0x7"], ["0xb"], ["0x0"]]
    assert [each["values"] for each in found["elements"]] == [[24.0], [-6.0], [0.0]]
    assert [each["question"] for each in found["elements"]] == [
        "element-above-largest", "element", "element",
    ]  # fmt: skip
    assert found["answers"]["reference"] == {
        "scale": "0x81",
        "codes": ["0x7", "0xb", "0x0"],
        "values": [24.0, -6.0, 0.0],
    }


def test_a_free_code_has_two_values() -> None:
    lowest, other = explained(INTEGERS, "-1.999", "1.5")["elements"]
    assert (lowest["allowed"], lowest["values"]) == (["0x80", "0x81"], [-2.0, -1.984375])
    assert (other["allowed"], other["values"]) == (["0x60"], [1.5])


def test_a_global_scale_divides_first() -> None:
    found = explained(NVFP4, "6", "3", "--scale", "0.5")
    assert found["scale"]["allowed"] == ["0x40"]  # 6 / 6 / 0.5 = 2
    assert [each["values"] for each in found["elements"]] == [[6.0], [3.0]]


def test_what_is_open_is_anything() -> None:
    found = explained(MX, "nan", "1")
    assert found["scale"]["allowed"] == ["anything"]
    assert [each["allowed"] for each in found["elements"]] == [["anything"]] * 2


def test_lines_show_the_rule_and_each_number() -> None:
    code, out, err = castigate("explain", MX, "-6", "--backend", "reference", "--backend", "numpy")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"{MX}: scale 1; values -6"
    assert lines[1] == "  rule      floor, required"
    assert lines[3].split() == ["scale", "allowed", "0x7f", "(1)"]
    assert lines[5].split()[:3] == ["scale", "numpy", "unsupported:"]
    assert lines[-1].split()[:7] == ["0xc0c00000", "(-6)", "0xf", "=", "-6", "0xf", "="]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([MX], "has 32 numbers, and 0 are given"),
        ([MX, *["1"] * 33], "has 32 numbers, and 33 are given"),
        ([MX, "1", "--scale", "2"], "has no global scale; leave out --scale"),
        ([MX, "1", "--zero", "2"], "blocks have no zero point"),
        ([NVFP4, "1"], "needs a global scale; give it by --scale SCALE"),
        ([NVFP4, "1", "--scale", "0"], "the global scale is 0.0; "),
        ([NVFP4, "1", "--scale", "-2"], "the global scale is -2.0; "),
        ([NVFP4, "1", "--scale", "nan"], "the global scale is nan; "),
        ([NVFP4, "1", "--scale", "inf"], "the global scale is inf; "),
        (["mx-blocks-decode:1/float4e2m1/float32/block:32", "1"], "has the way back"),
        ([MX, "one"], "is not a value of float32"),
    ],
)
def test_a_question_that_no_block_answers_is_refused(arguments: list[str], message: str) -> None:
    code, out, err = castigate("explain", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "question",
    [("onnx-cast/float32/int8", "3"), ("onnx-bitcast:26/float32/int32/shape:2x3",)],
)
@pytest.mark.parametrize("option", ["--scale=1", "--zero=1"])
def test_what_has_no_scale_takes_none(question: tuple[str, ...], option: str) -> None:
    code, out, err = castigate("explain", *question, option)
    assert (code, out) == (2, "")
    assert err == (
        "castigate: --scale and --zero are for documents of quantization; leave them out, or ask as"
        " castigate explain quantize 0.25 by 0.1 as float32\n"
    )
