"""``castigate judge``: a right answer passes, any other fails, open inputs never do."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conformance.families.cast.quick_inputs import inputs_of, one_of_each
from conformance.families.reference import Reference
from conformance.recorded_lines import LineTally, judge_stream
from oracles.reference.expect_by_exact import allow
from oracles.reference.reference_oracle import RejectedError
from reports.grading.divergences import datum_of
from specs.cases import Case
from specs.formats import Format, format_named
from specs.operations import is_cast
from specs.ruling import ruling
from specs.selection import case_named, select
from tests.search import examples

Line = dict[str, Any]
ORACLE = Reference()
CASES = select([])
PER_CASE = 48
NARROW = ("int4", "uint4", "int2", "uint2")


def judged(lines: Iterable[Line]) -> tuple[list[Line], LineTally]:
    tally = LineTally()
    stream = io.StringIO("".join(json.dumps(line) + "\n" for line in lines))
    return list(judge_stream(stream, tally)), tally


def verdict(case: str, given: Any, answer: Any) -> str:
    [line], _ = judged([{"case": case, "input": given, "output": answer}])
    return str(line.get("verdict", line))


def written(form: Format, datum: int | str) -> Any:
    return {"text": datum} if isinstance(datum, str) else form.hexadecimal(datum)


def recorded_by_the_reference(case: Case) -> list[Line]:
    """The reference's answers to all inputs of a small source, or to some of a large one."""
    rules = ruling(case)
    if rules.worked or rules.source.kind == "text":
        inputs = inputs_of(case, rules, 0, 0)
    elif rules.is_rejection or not rules.source.is_numeric:
        inputs = one_of_each(rules.source)
    elif rules.source.bits <= 8:
        inputs = np.arange(1 << rules.source.bits, dtype=rules.source.storage)
    else:
        chance = np.random.default_rng(len(case.id))
        inputs = np.frombuffer(
            chance.bytes(PER_CASE * rules.source.bits // 8), rules.source.storage
        )
    try:
        answers = [written(rules.target, datum_of(one)) for one in ORACLE.cast(case, inputs)]
    except RejectedError as error:
        answers = [{"error": str(error)}] * inputs.size
    return [
        {"case": case.id, "input": written(rules.source, datum_of(one)), "output": answer}
        for one, answer in zip(inputs, answers, strict=True)
    ]


@pytest.mark.parametrize(("document", "stride"), [("onnx-cast", 31), ("pypto-cast", 3)])
def test_the_references_own_answers_break_nothing(document: str, stride: int) -> None:
    cases = select([document])[::stride]
    lines = [line for case in cases for line in recorded_by_the_reference(case)]
    results, tally = judged(lines)
    assert len(cases) > 100
    assert [line for line in results if line.get("verdict") not in ("conforms", "open")] == []
    assert set(tally.verdicts) == {"conforms", "open"}
    assert (tally.lines, tally.malformed, tally.exit_code) == (len(lines), 0, 0)


def is_flippable(case: Case) -> bool:
    if not is_cast(case):
        return False
    rules = ruling(case)
    return (
        rules.source.is_numeric
        and rules.target.is_numeric
        and not rules.worked
        and not rules.is_rejection
        and not rules.is_open
        and not rules.refuses_some
        # Two roundings of a fraction to these are right; they have their own test below.
        and not (rules.source.kind == "float" and case.target in NARROW)
    )


FLIPPABLE = [case for case in CASES[::7] if is_flippable(case)]


@examples(300)
@given(st.sampled_from(FLIPPABLE), st.data())
def test_an_answer_with_one_bit_flipped_fails(case: Case, data: st.DataObject) -> None:
    source, target = format_named(case.source), format_named(case.target)
    code = data.draw(st.integers(0, source.mask), "input")
    bit = data.draw(st.integers(0, target.bits - 1), "bit")
    right = int(ORACLE.cast(case, np.array([code], source.storage))[0])
    wrong = right ^ 1 << bit
    # A document may leave the choice between two roundings.
    assume(wrong not in allow(ruling(case), code).codes)
    nans = [code for codes in target.nan_codes for code in (codes.start, codes.stop - 1)]
    if nans and any(right in codes for codes in target.nan_codes):
        assume(not any(wrong in codes for codes in target.nan_codes))
    spelled = source.hexadecimal(code)
    before = verdict(case.id, spelled, target.hexadecimal(right))
    after = verdict(case.id, spelled, target.hexadecimal(wrong))
    assert before in ("conforms", "open")
    assert after == "open" if before == "open" else after in ("violates", "deviates")


def test_of_a_fraction_to_int4_exactly_the_two_roundings_pass() -> None:
    case = "onnx-cast:25/float16/int4"
    for spelled, right in {
        "0x4300": {3, 4},
        "0x4100": {2},
        "0xb900": {0, 0xF},
        "0x4500": {5},
    }.items():
        passing = {n for n in range(16) if verdict(case, spelled, f"0x{n:x}") == "conforms"}
        assert passing == right, spelled


OPEN = [
    ("onnx-cast:25/float32/int8", "0x7fc00000"),
    ("onnx-cast:25/float32/int8", "0x43000000"),
    ("onnx-cast:25/float32/float8e8m0/saturate:1/round_mode:up", "0xbf800000"),
    ("pypto-cast:seed/float32/int8", "0x3f800000"),
    ("pypto-cast:0.2/float32/float16/mode:CAST_FLOOR", "0x7fc00000"),
]


@pytest.mark.parametrize(("case", "spelled"), OPEN)
def test_an_open_input_takes_any_answer(case: str, spelled: str) -> None:
    target = format_named(case_named(case).target)
    for answer in (0, 1, target.mask, target.sign_bit):
        assert verdict(case, spelled, target.hexadecimal(answer)) == "open"
    assert verdict(case, spelled, {"error": "refused"}) == "open"


TEXT = "onnx-cast:25/string/"
KNOWN: list[tuple[str, Any, Any, str]] = [
    (TEXT + "float32", {"text": "1.5"}, "0x3fc00000", "conforms"),
    (TEXT + "float32", {"text": "1.5"}, "0x3fc00001", "violates"),
    (TEXT + "float32", {"text": "0.1"}, "0x3dcccccd", "conforms"),
    (TEXT + "float32", {"text": "0.1"}, "0x3dcccccc", "deviates"),
    (TEXT + "float32", {"text": "-INF"}, "0x7f800000", "violates"),
    (TEXT + "float32", {"text": "nan"}, "0xffffffff", "conforms"),
    (TEXT + "float32", {"text": "Hello"}, "0x3fc00001", "open"),
    (TEXT + "int8", {"text": "-8"}, "0xf8", "conforms"),
    (TEXT + "int8", {"text": "100.5"}, {"error": "no integer"}, "open"),
    (TEXT + "string", {"text": "é ∞"}, {"text": "é ∞"}, "conforms"),
    (TEXT + "string", {"text": "a"}, {"text": "a "}, "violates"),
    ("onnx-cast:25/int8/string", "0xf8", {"text": "-8"}, "conforms"),
    ("onnx-cast:25/int8/string", "0xf8", {"text": "-7"}, "violates"),
    ("onnx-cast:25/float32/string", "0x3fc00000", {"text": "2"}, "deviates"),
    ("onnx-cast:25/float32/string", "0x3fc00000", {"text": "1.4"}, "violates"),
    ("onnx-cast:25/float32/string", "0x3f800000", {"text": "123456"}, "violates"),
    ("onnx-cast:25/float32/string", "0x3fc00000", {"text": "1.5e0"}, "violates"),
    ("onnx-cast:25/float32/complex64", "0x3f800000", {"error": "no such type"}, "conforms"),
    ("onnx-cast:25/float32/complex64", "0x3f800000", "0x000000003f800000", "violates"),
    ("onnx-cast:6/string/float32", {"text": "1"}, "0x3f800000", "violates"),
    ("onnx-cast:25/float32/float16", "0x3f800000", {"error": "boom"}, "violates"),
    ("onnx-cast:6/float32/float16", "0x3f800001", {"error": "boom"}, "deviates"),
    ("onnx-cast:25/float32/float16", "0x3f800000", "0x0000", "violates"),
    ("onnx-cast:25/int32/float32", "0x00000005", "0x7fc00000", "violates"),
    ("onnx-cast:25/float32/float8e4m3fn/saturate:1", "0x3f800000", "0x7f", "violates"),
    ("onnx-cast:25/float32/float4e2m1", "0x3f800000", "0x0", "violates"),
    ("onnx-cast:25/bool/float16", "0x1", "0x0000", "violates"),
    ("pypto-cast:seed/float32/float16/mode:CAST_RINT", "0x3f800000", "0x0000", "violates"),
    ("cinn-cast:1.0/int32/float32", "0x00000005", "0x00000000", "violates"),
    ("cinn-cast:tvm/int32/float32", "0x00000005", "0x00000000", "violates"),
    ("onnx-cast:25/float32/float16", "0x80000000", "0x0000", "deviates"),
    ("onnx-cast:25/float32/float16", "0x80000000", "0x3c00", "violates"),
    ("onnx-cast:25/float32/float8e4m3fn/saturate:0", "0x7f800000", "0xff", "deviates"),
    ("onnx-cast:25/float32/float8e4m3fn/saturate:0", "0x7f800000", "0x00", "violates"),
    ("onnx-cast:25/int32/int8", "0x00000100", {"error": "boom"}, "violates"),
    ("onnx-cast:25/int32/bool/example:integer-36-to-bool", "0x00000024", "0x1", "conforms"),
    ("onnx-cast:25/int32/bool/example:integer-36-to-bool", "0x00000024", "0x0", "deviates"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "spelled", "answer", "expected"), KNOWN)
def test_texts_errors_and_examples(case: str, spelled: Any, answer: Any, expected: str) -> None:
    assert verdict(case, spelled, answer) == expected


def test_a_text_that_is_also_a_word_of_ours_is_listed_as_a_text() -> None:
    line = {"case": TEXT + "string", "input": {"text": "error"}, "output": {"text": "error"}}
    assert judged([line])[0][0]["allowed"] == [{"text": "error"}]
