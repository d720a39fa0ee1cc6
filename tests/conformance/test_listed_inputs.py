"""``inputs --json`` lists what ``judge`` reads; ``judge --complete`` names inputs left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.ruling import bitcast_ruling, is_bitcast
from conformance.families.reference import Reference
from conformance.families.value_spelling import tensor_words
from oracles.memory_layouts import elements
from specs.formats import format_named
from specs.selection import case_named
from tests.conformance.processes import castigate

HALF = "onnx-cast:25/float16/float32"
INT2 = "onnx-cast:25/int2/int8"
TEXTS = "onnx-cast:25/string/bool"
EXAMPLE = "onnx-cast:25/int32/bool/example:integer-36-to-bool"
BITCAST = "xla-bitcast-convert:2023/float32/int8/shape:2x4"
SCALAR = "xla-bitcast-convert:2023/int8/int8/shape:scalar"


def listed(*cases: str) -> list[dict[str, Any]]:
    code, out, err = castigate("inputs", "--json", *cases)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def answered(line: dict[str, Any]) -> dict[str, Any]:
    """A line with the reference's output."""
    case, given = case_named(line["case"]), line["input"]
    source, target = format_named(case.source), format_named(case.target)
    if is_bitcast(case):
        codes = [int(word, 16) for word in given["bits"]]
        bits = elements(source, codes).reshape(bitcast_ruling(case).shape)
        return line | {"output": tensor_words(target, Reference().bitcast(case, bits))}
    if source.kind == "text":
        bits = np.array([given["text"]], object)
    else:
        bits = np.array([int(given, 16)], source.storage)
    return line | {"output": target.hexadecimal(int(Reference().cast(case, bits)[0]))}


def judge(folder: Path, lines: list[dict[str, Any]], *options: str) -> tuple[int, list[Any], str]:
    file = folder / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code, out, err = castigate("judge", "--json", *options, str(file))
    return code, [json.loads(line) for line in out.splitlines()], err


CASES = (INT2, TEXTS, EXAMPLE, BITCAST, SCALAR, "onnx-cast:25/bool/float16")


def test_what_inputs_lists_is_judged_once_an_output_is_added(tmp_path: Path) -> None:
    lines = [answered(line) for line in listed(*CASES)]
    assert list(dict.fromkeys(line["case"] for line in lines)) == list(CASES)
    code, judged, err = judge(tmp_path, lines, "--complete")
    assert (code, err) == (0, "")
    assert {line["verdict"] for line in judged} <= {"conforms", "open"}
    assert [line["input"] for line in judged] == [line["input"] for line in lines]


@pytest.mark.parametrize("case", CASES)
def test_a_missing_line_is_named_and_all_others_are_judged(case: str, tmp_path: Path) -> None:
    lines = [answered(line) for line in listed(case)]
    dropped = lines.pop(0)
    rest = [answered(line) for line in listed(INT2 if case != INT2 else SCALAR)]
    code, judged, err = judge(tmp_path, lines + rest, "--complete")
    assert len(judged) == len(lines + rest)
    if not lines:  # no line of the case is left, so the command cannot know that it was asked
        assert (code, err) == (0, "")
        return
    assert code == 2
    shown = json.dumps(dropped["input"], ensure_ascii=False)[:100]
    assert f"1 input of 1 case without a line, first {case} {shown};" in err
    assert judge(tmp_path, lines + rest)[0] == 0


def test_a_shape_that_no_document_lists_has_no_missing_lines(tmp_path: Path) -> None:
    given = {"shape": [5], "bits": ["0x01", "0xff", "0x02", "0x03", "0x04"]}
    line = {"case": "onnx-bitcast:26/int8/uint8/shape:5", "input": given, "output": given}
    code, [judged], err = judge(tmp_path, [line], "--complete")
    assert (code, judged["verdict"], err) == (0, "conforms", "")


def test_several_missing_lines_are_counted_even_beside_wrong_answers(tmp_path: Path) -> None:
    lines = [answered(line) for line in listed(INT2, "onnx-cast:25/uint2/int8")]
    kept = [lines[0] | {"output": "0x7f"}, lines[5]]
    code, judged, err = judge(tmp_path, kept, "--complete")
    assert (code, [line["verdict"] for line in judged]) == (2, ["violates", "conforms"])
    assert f'6 inputs of 2 cases without a line, first {INT2} "0x1";' in err


def test_an_input_counts_however_it_is_spelled(tmp_path: Path) -> None:
    outputs = [line["output"] for line in map(answered, listed(INT2))]
    spellings = ["0", "0X1", -2, "-1"]
    lines = [
        {"case": INT2, "input": given, "output": output}
        for given, output in zip(spellings, outputs, strict=True)
    ]
    assert judge(tmp_path, lines, "--complete")[0] == 0


def test_a_malformed_line_answers_nothing(tmp_path: Path) -> None:
    lines = [answered(line) for line in listed(INT2)]
    lines[2] |= {"output": "0x7ff"}
    code, _, err = judge(tmp_path, lines, "--complete")
    assert code == 2
    assert f'1 input of 1 case without a line, first {INT2} "0x2";' in err


def test_inputs_without_json_send_a_bitcast_to_json() -> None:
    code, out, err = castigate("inputs", INT2, BITCAST)
    assert (code, out) == (2, "")
    assert f"the inputs of {BITCAST} are tensors; add --json to list them" in err
