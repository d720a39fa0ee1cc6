"""The yardstick of codecs: its formats, and the answers that it allows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import few_inputs, quick_inputs
from oracles.reference import expect_by_exact, expect_by_kernels
from oracles.reference.exact import NotANumber, Number, decode
from oracles.reference.kernel_text import answer_text
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    grade_answers,
    grade_pattern,
)
from specs.cases import Case
from specs.editions import edition
from specs.errors import CastigateError
from specs.formats import dtype_spelled, every_format, format_named, formats
from specs.loader import document_named
from specs.outcomes import Anything
from specs.ruling import ruling
from specs.selection import cases_of_pair, select


def values_of(name: str) -> list[Fraction | None]:
    """The value of each code; None for a NaN."""
    form = format_named(name)
    found: list[Fraction | None] = []
    for code in range(form.mask + 1):
        datum = decode(form, code)
        if isinstance(datum, Number):
            found.append(Fraction(datum.significand) * Fraction(2) ** datum.exponent)
        else:
            assert isinstance(datum, NotANumber)
            found.append(None)
    return found


def test_unsigned_formats_of_scales() -> None:
    assert {*every_format()} - {*formats()} == {"float8ue5m3", "float7ue4m3"}
    wide, narrow = values_of("float8ue5m3"), values_of("float7ue4m3")
    assert wide[:2] == [0, Fraction(1, 1 << 17)]
    assert wide[248:] == [65536, 73728, 81920, 90112, 98304, 106496, 114688, None]
    assert narrow == values_of("float8e4m3fn")[:128]
    assert narrow[-2:] == [448, None]


def test_they_are_spelled_as_others_are_and_belong_to_no_document() -> None:
    assert [dtype_spelled(word) for word in ("ue5m3", "UE4M3")] == ["float8ue5m3", "float7ue4m3"]
    assert not any("ue" in case.source + case.target for case in select(["onnx-cast:25"]))


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(
    "source", ["float16", "float32", "float8e5m2", "float8e8m0", "int8", "int64", "uint32"]
)
def test_definition_and_kernels_agree(source: str) -> None:
    for case in edition(document_named("small-floats"), "1").cases():
        rules = ruling(case)
        if case.source == source and case.target != "string" and not rules.is_open:
            inputs = few_inputs(case, rules, 256)
            found = expect_by_kernels.expect(rules, inputs)
            expected = expect_by_exact.expect(rules, inputs)
            for name in ("branch_indices", "codes", "others"):
                mine, other = getattr(found, name), getattr(expected, name)
                np.testing.assert_array_equal(mine, other, f"{case} {name}")


@pytest.mark.parametrize("target", ["float8e4m3fnuz", "float16", "float6e2m3", "float7ue4m3"])
def test_definition_and_kernels_agree_on_texts(target: str) -> None:
    texts = quick_inputs("string", target, 0, 10).tolist()
    for case in cases_of_pair("small-floats", "1", "string", target):
        rules = ruling(case)
        answers = np.array([answer_text(rules, text) for text in texts], rules.target.storage)
        expected = expect_by_exact.expect(rules, np.array(texts, object))
        grades = grade_answers(rules, np.array(texts, object), expected, answers)
        assert [text for text, grade in zip(texts, grades, strict=True) if grade != ALLOWED] == []


@pytest.mark.parametrize(
    ("target", "rounding", "overflow", "text", "allowed"),
    [
        ("float8e4m3fn", "nearest-even", "saturate", "464", [0x7E]),
        ("float8e4m3fn", "nearest-even", "nan", "465", [0x7F, 0xFF]),
        ("float8e4m3fn", "nearest-even", "saturate", "-0", [0x80]),
        ("float8e4m3fnuz", "nearest-even", "saturate", "-0", [0]),
        ("float8e5m2", "odd", "inf", "1e9", [0x7B]),
        ("float8e5m2", "nearest-even", "inf", "INF", [0x7C]),
        ("float8e5m2", "ceil", "inf", "1e-99", [1]),
        ("float8e4m3fn", "nearest-even", "saturate", "nan", [0x7F, 0xFF]),
        ("float7ue4m3", "nearest-even", "saturate", "0.002", [1]),
        ("float8e8m0", "nearest-even", "saturate", "1e-99", [0]),
    ],
)
def test_what_texts_become(
    target: str, rounding: str, overflow: str, text: str, allowed: list[int]
) -> None:
    modes = ("round", rounding), ("overflow", overflow)
    rules = ruling(Case("small-floats", "1", "string", target, modes))
    found = expect_by_exact.allow(rules, text)
    codes = range(rules.target.mask + 1)
    assert [each for each in codes if grade_pattern(rules, found, each) == ALLOWED] == allowed


@pytest.mark.parametrize("text", [".5", "1e", "", "0x10"])
def test_of_other_texts_nothing_is_required(text: str) -> None:
    [rules, *_] = map(ruling, cases_of_pair("small-floats", "1", "string", "float8e5m2"))
    assert isinstance(expect_by_exact.allow(rules, text).branch.outcome, Anything)


@pytest.mark.parametrize(
    ("target", "rounding", "overflow", "value", "allowed"),
    [
        ("float8e4m3fn", "nearest-even", "saturate", 464, [0x7E]),
        ("float8e4m3fn", "nearest-even", "nan", 465, [0x7F, 0xFF]),
        ("float8e4m3fn", "nearest-even", "nan", 464, [0x7E]),
        ("float8e5m2", "nearest-even", "inf", 61440, [0x7C]),
        ("float8e5m2", "toward-zero", "inf", 61440, [0x7B]),
        ("float8e5m2", "floor", "inf", -61440, [0xFC]),
        ("float8e5m2", "ceil", "inf", -65536, [0xFB]),
        ("float8e5m2", "nearest-even", "saturate", np.inf, [0x7B, 0x7C]),
        ("float8e4m3fnuz", "nearest-even", "saturate", -0.0, [0]),
        ("float8e4m3fnuz", "nearest-even", "saturate", -(2.0**-12), [0]),
        ("float8e4m3fn", "nearest-even", "saturate", -(2.0**-12), [0x80]),
        ("float8e8m0", "nearest-even", "saturate", 2.0**-128, [0]),
        ("float8e8m0", "nearest-even", "saturate", 1.5, [128]),
        ("float8ue5m3", "nearest-even", "saturate", 114688, [254]),
        ("float7ue4m3", "nearest-away", "saturate", 1.0625, [0x39]),
        ("float4e2m1", "nearest-even", "saturate", 5.0, [6]),
        ("float4e2m1", "nearest-away", "saturate", 2.5, [5]),
    ],
)
def test_answers_of_the_yardstick(
    target: str, rounding: str, overflow: str, value: float, allowed: list[int]
) -> None:
    case = Case(
        "small-floats", "1", "float32", target, (("round", rounding), ("overflow", overflow))
    )
    code = int(np.float32(value).view(np.uint32))
    rules = ruling(case)
    found = expect_by_exact.allow(rules, code)
    grades = [grade_pattern(rules, found, answer) for answer in range(rules.target.mask + 1)]
    assert [answer for answer, grade in enumerate(grades) if grade != NOT_ALLOWED] == allowed


def test_what_a_format_lacks_is_open() -> None:
    for target, overflow in (("float4e2m1", "nan"), ("float8e4m3fn", "inf")):
        modes = (("round", "nearest-even"), ("overflow", overflow))
        rules = ruling(Case("small-floats", "1", "float32", target, modes))
        allowed = expect_by_exact.allow(rules, 0x3F800001)
        assert isinstance(allowed.branch.outcome, Anything)


def test_it_is_for_codecs() -> None:
    with pytest.raises(CastigateError, match=r"use castigate codec$"):
        select(["small-floats"])
