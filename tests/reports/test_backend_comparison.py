"""Two backends' answers compared: where they differ, by which rule, and which one is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.reference import Reference
from reports.grading.allowed_answers import Expectations
from reports.judgement import DatumArray, InputsAndAnswers
from reports.outputs.backend_comparison import CaseComparison, compare_answers
from specs.cases import Case
from specs.formats import format_named

HALF = Case("onnx-cast", "25", "float16", "float8e4m3fn", (("saturate", "1"),))
OPEN = Case("onnx-cast", "25", "float16", "int8")
ALL_INPUTS = np.arange(1 << 16, dtype=np.uint16)
ONE = 0x3C00


def inputs_and_answers(case: Case, answers: Any, inputs: Any = ALL_INPUTS) -> InputsAndAnswers:
    return InputsAndAnswers(DatumArray(case.source, inputs), DatumArray(case.target, answers))


def right_answers(case: Case) -> Any:
    return Reference().cast(case, ALL_INPUTS)


def compared(case: Case, one: Any, other: Any) -> CaseComparison:
    return compare_answers(
        case, inputs_and_answers(case, one), inputs_and_answers(case, other), Expectations(False)
    )


def test_equal_answers_have_no_difference() -> None:
    answers = right_answers(HALF)
    found = compared(HALF, answers, answers.copy())
    assert (found.asked, found.count, found.differences) == (1 << 16, 0, ())


@pytest.mark.parametrize(("swapped", "right"), [(False, "one"), (True, "other")])
def test_the_backend_whose_answers_are_allowed_is_right(swapped: bool, right: str) -> None:
    answers = right_answers(HALF)
    wrong = answers.copy()
    wrong[ONE : ONE + 3] ^= 1
    pair = (wrong, answers) if swapped else (answers, wrong)
    [difference] = compared(HALF, *pair).differences
    assert (difference.right, difference.count, difference.runs.total) == (right, 3, 1)
    assert (difference.runs.first[0], difference.runs.last[0]) == (ONE, ONE + 2)
    given = difference.smallest
    assert isinstance(given, int)
    both = (difference.answer, difference.other_answer)
    assert both == (pair[0][given], pair[1][given])
    assert difference.allowed == (f"0x{answers[given]:02x}",)


def test_inputs_of_several_branches_of_one_rule_are_one_difference() -> None:
    answers = right_answers(HALF)
    wrong = answers.copy()
    wrong[[ONE, 0x7C00, 0xFC00]] = [0x11, 0x22, 0x33]
    [difference] = compared(HALF, answers, wrong).differences
    assert (difference.rule, difference.clause) == ("saturate-24", "table 1 (saturate = 1)")
    assert (difference.right, difference.count) == ("one", 3)
    assert difference.runs.answer.tolist() == [0x38, 0x7E, 0xFE]


def test_neither_is_right_if_both_break_the_rule_differently() -> None:
    answers = right_answers(HALF)
    one, other = answers.copy(), answers.copy()
    one[ONE] ^= 1
    other[ONE] ^= 2
    [difference] = compared(HALF, one, other).differences
    assert (difference.right, difference.count) == ("neither", 1)


def test_both_are_right_if_any_nan_is_allowed() -> None:
    case = Case("onnx-cast", "25", "float32", "float16")
    inputs = np.array([0x7FC0_0000], np.uint32)
    pair = [
        inputs_and_answers(case, np.array([nan], np.uint16), inputs) for nan in (0x7E00, 0x7C01)
    ]
    [difference] = compare_answers(case, *pair, Expectations(False)).differences
    assert (difference.right, difference.allowed) == ("both", ("any-nan",))


def test_open_inputs_are_counted_as_open() -> None:
    answers = right_answers(OPEN)
    other = answers.copy()
    other[0x7C00] ^= 0x80  # infinity
    [difference] = compared(OPEN, answers, other).differences
    assert (difference.right, difference.count, difference.smallest) == ("open", 1, 0x7C00)


@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)))
def test_only_inputs_that_both_were_asked_are_compared(
    one: set[int], other: set[int], wrong: set[int]
) -> None:
    case, right = Case("onnx-cast", "25", "int8", "int16"), Reference().cast
    asked = [np.array(sorted(side), np.uint8) for side in (one, other)]
    first, second = (right(case, inputs) for inputs in asked)
    second[np.isin(asked[1], list(wrong))] ^= 1
    pair = (inputs_and_answers(case, first, asked[0]), inputs_and_answers(case, second, asked[1]))
    found = compare_answers(case, *pair, Expectations(False))
    assert (found.asked, found.count) == (len(one & other), len(one & other & wrong))


def test_complex_answers_that_a_document_refuses_differ_without_a_grade() -> None:
    case = Case("onnx-cast", "1", "float32", "complex128")
    storage = np.dtype(format_named("complex128").storage)
    inputs = np.arange(2, dtype=format_named(case.source).storage)
    one, other = (np.frombuffer(bytes(31) + bytes([last]), storage) for last in (0, 1))
    [found] = compare_answers(
        case,
        *(
            InputsAndAnswers(DatumArray(case.source, inputs), DatumArray("complex128", each))
            for each in (one, other)
        ),
        Expectations(independent=False),
    ).differences
    assert (found.right, found.count, found.smallest) == ("neither", 1, 1)
