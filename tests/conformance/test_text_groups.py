"""Texts of an export are in groups by value and spelling, and none is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.exchange.exported_tests import MAX_INPUTS, exported_case
from conformance.exchange.text_groups import text_group
from conformance.kinds.quick_inputs import few_inputs
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named, select

STRING_CASES = [case for case in select(["onnx-cast:25"]) if case.source == "string"]


@pytest.mark.parametrize(
    ("target", "text", "group"),
    [
        ("float32", "0", "ordinary"),
        ("float32", "-0.0", "ordinary"),
        ("float32", "3.14", "ordinary"),
        ("float32", "1E+5", "ordinary"),
        ("float32", "0.12345678901234567", "ordinary"),
        ("float32", "0.123456789012345678", "digits"),
        ("int64", "9223372036854775807", "digits"),
        ("float32", "100000000000000000000.0", "ordinary"),
        ("float32", "+1", "spelling"),
        ("float32", "01", "spelling"),
        ("float32", "0e999", "spelling"),
        ("float32", "nan", "spelling"),
        ("float32", "-inf", "spelling"),
        ("float32", " 1", "spelling"),
        ("float32", "1e", "spelling"),
        ("float32", "1_000", "spelling"),
        ("float32", "\uff11", "spelling"),
        ("float32", "NaN", "nonfinite"),
        ("float32", "+INF", "nonfinite"),
        # The ends of float32's ranges, and the first numbers beyond them.
        ("float32", "1.17549435082228750797e-38", "digits"),
        ("float32", "1.1754943508222876e-38", "ordinary"),
        ("float32", "1.1754943508222875e-38", "subnormal"),
        ("float32", "1.402e-45", "subnormal"),
        ("float32", "1.401e-45", "underflow"),
        ("float32", "5e-324", "underflow"),
        ("float32", "3.4028234e38", "ordinary"),
        ("float32", "3.4028235e38", "overflow"),
        ("float32", "-1e400", "overflow"),
        ("float64", "1e-45", "ordinary"),
        ("float64", "5e-324", "subnormal"),
        ("float64", "2e-324", "underflow"),
        ("float16", "65504", "ordinary"),
        ("float16", "65519", "overflow"),
        ("float16", "1e-5", "subnormal"),
        ("int8", "127", "ordinary"),
        ("int8", "-129", "overflow"),
        # A text has the values of float64.
        ("string", "5e-324", "subnormal"),
        ("string", "1e309", "overflow"),
        # The value comes first.
        ("float32", "+1e-40", "subnormal"),
        ("float32", "+1e40", "overflow"),
    ],
)
def test_a_text_is_in_the_group_of_its_value_or_spelling(
    target: str, text: str, group: str
) -> None:
    assert text_group(format_named(target), text) == group


@pytest.mark.parametrize("case", STRING_CASES, ids=str)
def test_the_groups_of_a_case_have_each_of_its_inputs_once(case: Case) -> None:
    exported, rules = exported_case(case), ruling(case)
    if not exported.tests:
        assert exported.why_no_test in ("open", "to be refused")
        return
    inputs = few_inputs(case, rules, MAX_INPUTS)
    found = Counter(text for test in exported.tests for text in test.data_sets[0].inputs.tolist())
    assert set(found.values()) == {1}
    assert len(found) + sum(exported.left_out.values()) == inputs.size
    assert set(found) <= set(inputs.tolist())
    for test in exported.tests:
        texts = test.data_sets[0].inputs.tolist()
        assert {text_group(rules.target, text) for text in texts} == {test.group}
        assert test.data_sets[0].answers.size == test.size == sum(test.levels.values())


def test_casts_of_numbers_have_no_groups() -> None:
    [test] = exported_case(case_named("onnx-cast:25/int4/float32")).tests
    assert test.group is None
