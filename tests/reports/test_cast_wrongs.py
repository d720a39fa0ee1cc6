"""Rows of wrong casts: each has a sentence of its own, and inputs that tell it from the others."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.families.cast.quick_inputs import quick_inputs
from reports.findings.cast_wrongs import (
    TRIED_LAST,
    WRONGS,
    every_wrong,
    wrongs_of,
    wrongs_tried_last,
)
from reports.findings.codec_wrongs import digits_read
from reports.findings.rule_wrongs import taken_for
from reports.findings.text_wrongs import TEXT_WRONGS
from reports.findings.wrong import REFERENCE, GivenAnswers, Wrong, right
from reports.grading.allowed_answers import is_nan
from specs.cases import Case
from specs.formats import format_named
from specs.selection import case_named

ROUND = (("round", "nearest-even"), ("overflow", "saturate"))
CASES = (
    *(
        case_named(f"onnx-cast:25/{each}")
        for each in (
            "float64/float16",
            "float32/bfloat16",
            "float32/float16",
            "float16/float8e4m3fn/saturate:1",
            "float16/float8e5m2/saturate:0",
            "bfloat16/float8e5m2/saturate:0",
            "bfloat16/float8e4m3fnuz/saturate:1",
            "float8e4m3fn/float32",
            "float8e5m2fnuz/float16",
            "float32/float8e8m0/saturate:1/round_mode:up",
            "float16/int8",
            "bfloat16/uint16",
            "uint64/float32",
            "uint64/bfloat16",
            "int32/float32",
            "uint16/int16",
            "int16/uint64",
            "uint8/uint8",
            "bool/float16",
            "float32/string",
            "int16/string",
            "string/float16",
        )
    ),
    Case("small-floats", "1", "float32", "float8e4m3fn", ROUND),
    Case("small-floats", "1", "int32", "bfloat16", ROUND),
    Case("small-floats", "1", "string", "float8e4m3fn", ROUND),
    Case("small-floats", "1", "float8e4m3fn", "float32", ()),
    Case("small-floats", "1", "float4e2m1", "float32", ()),
    case_named("pypto-cast:0.2/float32/int16/mode:CAST_RINT/satmode:on"),
    case_named("stablehlo-reduce-precision:1.20/float64/float64/bits:e5m10"),
    case_named("jax-carriers:0.10/float32/float32/carrier:add-zero"),
)
MOST_INPUTS = 3000
F32 = "onnx-carriers:25/float32/float32"


def given_in(case: Case) -> GivenAnswers:
    """Inputs of a case, with the right answers."""
    inputs = quick_inputs(case.source, case.target, 0, 200)
    inputs = inputs[:: -(-inputs.size // MOST_INPUTS)]
    return GivenAnswers(case, inputs, REFERENCE.cast(case, inputs))


def answers_of(row: Wrong, given: GivenAnswers) -> Any:
    """The answers of a backend that is wrong by a row alone."""
    found = row.answers(given)
    if found is None:
        return with_one_nan(row, given, given.answers)
    return with_one_nan(row, given, np.where(found.concerned, found.codes, given.answers))


def with_one_nan(row: Wrong, given: GivenAnswers, answers: Any) -> Any:
    """Answers in which all NaNs are the same, unless the row says which of them comes out."""
    if row.changes_nans or not given.target.nan_codes:
        return answers
    return np.where(is_nan(given.target, answers), given.target.nan_codes[0][0], answers)


SINGLE = {each for each in (*TEXT_WRONGS, *WRONGS, *TRIED_LAST) if isinstance(each, Wrong)}
"""The rows that depend neither on the document nor on the pair."""
SAME = {
    ("as-c-on-x86", "unchanged"),
    ("as-c-on-x86", "subnormals-as-normal"),
    ("as-c-on-x86", "moves-bits"),
    ("below-normal-becomes-zero", "flushes-subnormals"),
    ("subnormals-become-zero", "flushes-subnormals"),
    ("subnormals-as-normal", "subnormals-as-normal"),
}
"""Pairs of rows that give the same answers, but have names or sentences of their own: C, too, keeps
integers that fit and makes 0 of subnormals, and a codec is said to read codes and to flush
subnormals."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_two_rows_no_name_and_sentences_are_the_same(case: Case) -> None:
    # Dtypes that are taken for others are one finding, whose sentence names all of them.
    rows = [*wrongs_of(case), *wrongs_tried_last(case)]
    words = [(each.name, each.says, each.says_of_negative) for each in rows if not each.mistaken]
    assert len({*words}) == len(words)
    assert all(name and says for name, says, _ in words)


def test_each_row_is_wrong_somewhere_and_told_from_every_other_by_some_input() -> None:
    """Of the rows that share a word ``alike``, the first is enough to be told from all others."""
    wrong, told, together = set(), set(), set()
    for case in CASES:
        given = given_in(case)
        rows = [each for each in (*wrongs_of(case), *wrongs_tried_last(case)) if each in SINGLE]
        answers = {each: answers_of(each, given).tolist() for each in rows}
        for row in rows:
            if answers[row] != with_one_nan(row, given, given.answers).tolist():
                wrong.add(row)
        for pair in combinations(rows, 2):
            one, other = pair
            if not one.alike or one.alike != other.alike:
                together.add(pair)
                told |= {pair} if answers[one] != answers[other] else set()
    # Where an exponent is written is read from answers, and right ones have none.
    assert {each.name for each in SINGLE - wrong} == {"writes-an-exponent"}
    assert {(one.name, other.name) for one, other in together - told} == SAME


@pytest.mark.parametrize("target", ["float8e5m2/saturate:1", "int8"])
def test_ties_toward_infinity_are_a_half_more_rounded_down(target: str) -> None:
    case = case_named(f"onnx-cast:25/float16/{target}")
    [row] = (each for each in wrongs_of(case) if each.name == "rounds-nearest-up")
    inputs = np.arange(1 << 16, dtype=np.uint16)
    values = inputs.view(np.float16).astype(np.float64)
    if case.target == "int8":
        inside = np.abs(values) < 127
        wanted = np.floor(values[inside] + 0.5).astype(np.int8).view(np.uint8)
    else:
        inside = (np.abs(values) < 50_000) & (np.abs(values) > 1e-3)
        unit = np.exp2(np.floor(np.log2(np.abs(values[inside]))) - 2)
        near = (np.floor(values[inside] / unit + 0.5) * unit).astype(np.float16)
        wanted = (near.view(np.uint16) >> 8).astype(np.uint8)
    given = GivenAnswers(case, inputs[inside], wanted)
    found = row.answers(given)
    assert found is not None
    assert found.codes.tolist() == wanted.tolist()
    assert found.concerned.all()
    assert (right(case, given.inputs).codes != wanted).any()


@pytest.mark.parametrize("target", ["float32", "float64", "bfloat16"])
def test_subnormals_read_as_normal_get_an_implicit_one(target: str) -> None:
    case = case_named(f"onnx-cast:25/float16/{target}")
    [row] = (each for each in wrongs_of(case) if each.name == "subnormals-as-normal")
    codes = np.array([0x0001, 0x03FF, 0x8200, 0x0400, 0x3C00, 0x0000], np.uint16)
    read = [2**-15 * (1 + 1 / 1024), 2**-15 * (1 + 1023 / 1024), -(2**-15) * 1.5, 2**-14, 1, 0]
    like = {"float32": np.float32, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16}[target]
    wanted = np.array(read).astype(np.float32).astype(like)
    found = row.answers(GivenAnswers(case, codes, np.zeros(6, np.uint64)))
    assert found is not None
    assert found.codes.tolist() == wanted.view(f"u{wanted.itemsize}").tolist()


def test_subnormals_of_a_format_with_the_exponents_of_float32_are_not_tried() -> None:
    case = case_named("onnx-cast:25/bfloat16/float16")
    assert "subnormals-as-normal" not in {each.name for each in wrongs_of(case)}


@pytest.mark.parametrize("source", ["float6e2m3", "float6e3m2", "float4e2m1"])
def test_rows_are_tried_on_all_patterns_of_a_source_of_few_bits(source: str) -> None:
    inputs = np.arange(1 << format_named(source).bits, dtype=np.uint8)
    for target in ("float4e2m1", "float6e3m2", "float8e5m2", "float8e5m2fnuz", "int8", "float32"):
        case = case_named(f"stablehlo-convert:1.20/{source}/{target}")
        wrong = right(case, inputs).codes ^ 1
        for row in every_wrong(case):
            assert row.explains(GivenAnswers(case, inputs, wrong), "required").size == inputs.size


def test_a_truncation_after_a_rounding_to_float32() -> None:
    case = case_named("onnx-cast:25/float64/bfloat16")
    rows = {each.name: each for each in wrongs_tried_last(case)}
    assert [name for name in rows if name.startswith("truncates-after")] == [
        "truncates-after-float32"
    ]
    # The first rounds up to a bfloat16; the second is cut, where the nearest is above it.
    values = np.array([1 + 2**-7 - 2**-30, 1 + 2**-8 + 2**-9, -1 - 2**-8 - 2**-9])
    given = GivenAnswers(case, values.view(np.uint64), np.zeros(3, np.uint16))
    found = rows["truncates-after-float32"].answers(given)
    assert found is not None
    assert [hex(code) for code in found.codes.tolist()] == ["0x3f81", "0x3f80", "0xbf80"]


def test_a_nan_of_the_wrong_sign_is_not_the_recommended_one() -> None:
    case = Case("small-floats", "1", "float64", "float8e4m3fn", ROUND)
    nans = np.array([0x7FF0000000000001, 0xFFF8000000000000], np.uint64)
    [row] = [each for each in wrongs_of(case) if each.name == "nan-sign"]
    answers = row.answers(GivenAnswers(case, nans, np.array([0x7F, 0x7F], np.uint8)))
    assert answers is not None
    assert answers.codes.tolist() == [0xFF, 0x7F]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (0x7E01, "quiets-nans"),
        (0xFC01, "nan-sign"),
        (0x7C02, "nan-payload"),
        (0xFE01, "nan-payload"),
    ],
)
def test_another_nan_is_quiet_or_of_another_sign_or_payload(answer: int, name: str) -> None:
    case = case_named("onnx-carriers:25/float16/float16/carrier:expand")
    given = GivenAnswers(case, np.array([0x7C01], np.uint16), np.array([answer], np.uint16))
    rows = [row.name for row in wrongs_of(case) if row.explains(given, "recommended").any()]
    assert rows[0] == name
    assert "unchanged" not in rows


def test_nans_of_which_only_the_signs_are_wrong_have_no_other_payload() -> None:
    case = case_named("onnx-carriers:25/float16/float16/carrier:expand")
    [row] = [each for each in wrongs_of(case) if each.name == "nan-payload"]
    nans, answers = np.array([0x7C01, 0x7FFF], np.uint16), np.array([0xFC01, 0xFFFF], np.uint16)
    assert not row.explains(GivenAnswers(case, nans, answers), "recommended").any()
    one_nan = GivenAnswers(case, nans, np.full(2, 0xFFFF, np.uint16))
    assert row.explains(one_nan, "recommended").all()


def test_a_nan_that_stays_one_shows_no_other_dtype() -> None:
    case = case_named("torch-carriers:2.13/bfloat16/bfloat16/carrier:scatter")
    row = taken_for(("bfloat16", "bfloat16"), ("float16", "float16"))
    nan, number = np.array([0x7F81], np.uint16), np.array([0x4000], np.uint16)
    other = GivenAnswers(case, nan, np.array([0xFFFF], np.uint16))
    assert not row.explains(other, "recommended").any()
    assert row.explains(GivenAnswers(case, number, number), "recommended").any()


def test_only_where_a_document_rounds_on_the_way_rounding_is_left_out() -> None:
    names = {
        carrier: {row.name for row in wrongs_of(case_named(f"{F32}/carrier:{carrier}"))}
        & {"unchanged", "skips-rounding"}
        for carrier in ("through-float16", "expand")
    }
    assert names == {"through-float16": {"skips-rounding"}, "expand": {"unchanged"}}


@pytest.mark.parametrize(
    ("count", "text", "read"),
    [
        (3, "12.345", "12.300"),
        (2, "0.00123e5", "0.00120e5"),
        (1, "-1002", "-1000"),
        (4, "123", "123"),
        (1, "INF", "INF"),
    ],
)
def test_readers_ignore_digits_after_the_first_ones(count: int, text: str, read: str) -> None:
    case = Case("small-floats", "1", "string", "float16", ROUND)
    row = digits_read(count)
    given, other = (np.array([each], object) for each in (text, read))
    answers = row.answers(GivenAnswers(case, given, given))
    assert answers is not None
    assert answers.codes.tolist() == REFERENCE.cast(case, other).tolist()
