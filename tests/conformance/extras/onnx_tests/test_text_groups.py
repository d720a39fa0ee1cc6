"""Texts of an export are in groups by value and spelling, and none is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.extras.onnx_tests.tests import MAX_INPUTS, exported_case, text_group
from conformance.families.cast.quick_inputs import few_inputs
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named, select

STRING_CASES = [case for case in select(["onnx-cast:25"]) if case.source == "string"]


GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    # Includes texts beside the ends of float32's ranges. The value outranks the spelling.
    "float32": {
        "ordinary": ("0", "-0.0", "3.14", "1E+5", "0.12345678901234567", "100000000000000000000.0",
                     "1.1754943508222876e-38", "3.4028234e38"),
        "digits": ("0.123456789012345678", "1.17549435082228750797e-38"),
        "spelling": ("+1", "01", "0e999", "nan", "-inf", " 1", "1e", "1_000", "\uff11"),
        "nonfinite": ("NaN", "+INF"),
        "subnormal": ("1.1754943508222875e-38", "1.402e-45", "+1e-40"),
        "underflow": ("1.401e-45", "5e-324"),
        "overflow": ("3.4028235e38", "-1e400", "+1e40"),
    },
    "float64": {"ordinary": ("1e-45",), "subnormal": ("5e-324",), "underflow": ("2e-324",)},
    "float16": {"ordinary": ("65504",), "overflow": ("65519",), "subnormal": ("1e-5",)},
    "int64": {"digits": ("9223372036854775807",)},
    "int8": {"ordinary": ("127",), "overflow": ("-129",)},
    # If the target is string, texts are grouped by their values in float64.
    "string": {"subnormal": ("5e-324",), "overflow": ("1e309",)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "text", "group"),
    [
        (target, text, group)
        for target, groups in GROUPS.items()
        for group, texts in groups.items()
        for text in texts
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
