"""``castigate judge`` on bitcasts: the verdicts of a run, and what is wrong about a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling, is_bitcast
from conformance.families.bitcast.tensors import contents
from conformance.families.reference import Reference
from conformance.families.value_spelling import json_text
from oracles.memory_layouts import codes_of
from oracles.reference.reference_oracle import RejectedError
from specs.cases import Case
from specs.formats import Format
from specs.selection import case_named, select
from tests.conformance.families.bitcast.test_judge import judged as run
from tests.conformance.test_judge import judged, verdict

XLA, CINN, TF = "xla-bitcast-convert:2023", "cinn-bitcast-convert:1.0", "tensorflow-bitcast:2023"
HALVES = f"{CINN}/float32/float16/shape:10/example:worked-example"
GRID = f"{XLA}/float32/int8/shape:2x4"
BITCASTS = [case for case in select([]) if is_bitcast(case)]


def words(form: Format, bits: Any) -> dict[str, Any]:
    return {"shape": list(bits.shape), "bits": [form.hexadecimal(code) for code in codes_of(bits)]}


def nested(form: Format, bits: Any) -> Any:
    """The patterns of a tensor as nested lists, or that of a scalar."""
    if not bits.shape:
        return form.hexadecimal(codes_of(bits)[0])
    return [nested(form, part) for part in bits]


def test_the_documents_own_example() -> None:
    ones = ["0x3f800000"] * 10
    halves = {"shape": [10, 2], "bits": ["0x0000", "0x3f80"] * 10}
    outputs: list[Any] = [
        halves,
        halves | {"shape": [20]},
        halves["bits"],
        [["0x3f80", "0x0000"]] * 10,
        {"error": "no kernel"},
    ]
    lines = [{"case": HALVES, "input": ones, "output": output} for output in outputs]
    spelled = {"case": HALVES, "input": [1.0] * 10, "output": [["0x0000", "0x3f80"]] * 10}
    results, tally = judged([lines[0], spelled, *lines[1:]])
    assert [line["verdict"] for line in results] == ["conforms"] * 2 + ["violates"] * 4
    assert results[0] == {
        "case": HALVES,
        "input": ones,
        "output": halves,
        "verdict": "conforms",
        "rule": "narrower",
        "level": "required",
        "clause": "1.1, float32 of shape [10] as float16 is [10, 2]",
        "allowed": halves,
    }
    assert json_text(results[1]["input"]) == f"[{', '.join(['1.0'] * 10)}]"
    assert results[1]["input_pattern"] == {"shape": [10], "bits": ones}
    assert "output_pattern" not in results[1]
    assert (tally.exit_code, tally.verdicts) == (1, {"conforms": 2, "violates": 4})


def answers(case: Case, ruling: BitcastRuling, bits: Any) -> dict[str, Any]:
    """The right answer and wrong ones: a flipped bit, another shape, zeros, an error."""
    storage = np.dtype(ruling.target.storage)
    try:
        right = Reference().bitcast(case, bits)
    except RejectedError:
        right = np.zeros(bits.shape, storage)
    found: dict[str, Any] = {"right": right, "flat": right.reshape(-1), "more": right[None]}
    found["none"] = np.zeros((0,), storage)
    if right.size:
        flipped = np.ascontiguousarray(right).copy()
        flipped.reshape(-1).view(np.uint8)[0] ^= 1
        found["flipped"] = flipped
    return found | {"error": None}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("document", sorted({case.document for case in BITCASTS}))
def test_the_verdict_is_that_of_a_run_on_the_same_answer(document: str) -> None:
    chosen = [case for case in BITCASTS if case.document == document]
    verdicts = set()
    for case in chosen[:: max(1, len(chosen) // 40)]:
        ruling = bitcast_ruling(case)
        if np.prod(ruling.shape) > 100:
            continue
        bits = next(contents(ruling, 0))
        for name, answer in answers(case, ruling, bits).items():

            def gives(case: Case, asked: Any, answer: Any = answer, bits: Any = bits) -> Any:
                if answer is None:
                    raise ValueError("no")
                is_other = (asked.shape, asked.tobytes()) != (bits.shape, bits.tobytes())
                return Reference().bitcast(case, asked) if is_other else answer

            expected = run(case.id, gives).verdict
            # Where an answer is due, a run's verdict for an error is not that for a wrong answer.
            broken = "violates" if ruling.level == "required" else "deviates"
            expected = broken if expected == "error" else expected
            output = {"error": "no"} if answer is None else words(ruling.target, answer)
            given = words(ruling.source, bits)
            [line], _ = judged([{"case": case.id, "input": given, "output": output}])
            assert line["verdict"] == expected, (name, line)
            verdicts.add(expected)
            if answer is not None and (0 not in answer.shape or len(answer.shape) == 1):
                spelled = nested(ruling.source, bits.reshape(-1)), nested(ruling.target, answer)
                assert verdict(case.id, *spelled) == expected, (name, line)
    assert len(verdicts) >= 2


ONE = {"shape": [], "bits": ["0x3f800000"]}
EMPTY: dict[str, Any] = {"shape": [0, 2, 2], "bits": []}
ALLOWED: list[tuple[str, Any, Any, Any]] = [
    (f"{XLA}/int8/float32/shape:scalar", "0x3f", {"error": "no"}, "error"),
    (f"{TF}/bool/int64/shape:3", [True, 0, "0x01"], {"error": "no"}, "anything"),
    (f"{CINN}/bool/int64/shape:3", [True, 0, "0x01"], {"error": "no"}, "error"),
    (f"{CINN}/int64/bool/shape:scalar", [1], [[True] * 8][0], [{"shape": [8]}, {"shape": [64]}]),
    (f"{XLA}/int8/int4/shape:3", [1, 2, 3], [[0, 1]] * 3, {"shape": [3, 2]}),
    (f"{XLA}/float32/int32/shape:scalar", 1.0, 1065353216, ONE),
    (f"{XLA}/float32/int32/shape:scalar", [1.0], "0x3f800000", ONE),
    (f"{TF}/float32/float16/shape:0x2", [], EMPTY, EMPTY),
]  # fmt: skip


@pytest.mark.parametrize(("case", "given", "output", "allowed"), ALLOWED)
def test_allowed_is_a_tensor_a_shape_or_a_word(
    case: str, given: Any, output: Any, allowed: Any
) -> None:
    [line], tally = judged([{"case": case, "input": given, "output": output}])
    assert line["allowed"] == allowed
    assert line["verdict"] == ("open" if allowed == "anything" else "conforms")
    assert tally.exit_code == 0


GOOD = {"case": GRID, "input": ["0x00000000"] * 8, "output": {"shape": [2, 4, 4], "bits": [0] * 32}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"input": ["0x00000000"] * 7}, "`input` has 7 elements, but shape 2x4 holds 8"),
    ({"input": []}, "`input` has 0 elements, but shape 2x4 holds 8"),
    ({"input": "0x00000000"}, "`input` has shape scalar, the case has 2x4"),
    ({"input": [[0] * 2] * 4}, "`input` has shape 4x2, the case has 2x4"),
    ({"input": {"shape": [8], "bits": [0] * 8}}, "`input` has shape 8, the case has 2x4"),
    ({"input": [[0] * 4, [0] * 3]}, "`input` is ragged"),
    ({"input": [0, [0]]}, "`input` is ragged"),
    ({"input": [[0] * 4, 0]}, "`input` is ragged"),
    ({"output": {"text": "0"}}, "`output[0]` of int8 is a number or hex pattern, not a text"),
    ({"input": [None] * 8}, "`input` is [null, null"),
    ({"input": [{"text": "0"}] * 8}, "`input` is [{"),
    ({"input": ["0x0"] * 8}, "`input[0]` 0x0 has 1 digits, a pattern of float32 has 8"),
    ({"input": [0] * 7 + [16777217]}, "`input[7]` `16777217` is not a value of float32; write "),
    ({"output": [0, 256]}, "`output[1]` `256` is outside the range of int8, -128 to 127"),
    ({"output": ["0x100"]}, "`output[0]` 0x100 has 3 digits, a pattern of int8 has 2"),
    ({"output": {"shape": [2], "bits": [0]}}, "`output` has 1 elements, but shape 2 holds 2"),
    ({"output": {"shape": [-1], "bits": [0]}}, "`output` is {"),
    ({"output": {"shape": [1.0], "bits": [0]}}, "`output` is {"),
    ({"output": {"shape": "1", "bits": [0]}}, "`output` is {"),
    ({"output": {"shape": [True], "bits": [0]}}, "`output` is {"),
    ({"output": {"bits": [0]}}, "`output` is {"),
    ({"output": {"shape": [1], "bits": [[0]]}}, "`output` is {"),
    ({"output": {"shape": [1] * 65, "bits": [0]}}, "`output` is {"),
    ({"output": {"shape": [0, 10**12, 10**12], "bits": []}}, "no array has the shape 0x1000"),
    ({"case": f"{XLA}/int4/uint4/shape:3", "input": [1, "0x1f", 1]}, "`input[1]` 0x1f has 2"),
    ({"case": f"{CINN}/float32/float16/shape:9x", "input": []}, "unknown case"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), BAD)
def test_a_bad_line_is_one_error_and_the_rest_is_judged(changes: dict[str, Any], says: str) -> None:
    results, tally = judged([GOOD, GOOD | changes, GOOD])
    assert [line.get("verdict") for line in results] == ["conforms", None, "conforms"]
    assert set(results[1]) == {"error", "line"}
    assert results[1]["line"] == 2
    assert results[1]["error"].startswith("line 2: ")
    assert says in results[1]["error"]
    assert len(results[1]["error"]) < 500
    assert (tally.malformed, tally.exit_code) == (1, 2)


@pytest.mark.parametrize("depth", [64, 65, 66, 100, 150, 198])
def test_deep_nesting_is_a_wrong_shape_or_an_error(depth: int) -> None:
    output: Any = "0x00"
    for _ in range(depth):
        output = [output]
    [line], _ = judged([GOOD | {"output": output}])
    assert line.get("verdict") == ("violates" if depth <= 64 else None)


def test_a_large_tensor_of_the_document_is_judged() -> None:
    case = case_named(f"{CINN}/float32/float32/shape:4x8x8x8/example:required-test")
    ruling = bitcast_ruling(case)
    bits = next(contents(ruling, 0))
    given, output = words(ruling.source, bits)["bits"], nested(ruling.target, bits)
    assert verdict(case.id, given, output) == "conforms"
    output[3][7][7][7] = "0x00000000"
    assert verdict(case.id, given, output) == "violates"
