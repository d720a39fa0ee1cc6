"""Failures of cells become findings: what is one finding, what it shows, and its script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reports.findings.causes import Failure, find_causes
from reports.findings.cells import Cell, Divergence
from reports.findings.find import find_findings
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.finding_text import extent_words
from reports.findings.wrong import answered_ruling, expected_of
from reports.judgement import NEXT_SCRIPT
from reports.problems import (
    BrokenAdapter,
    BrokenPromise,
    ChangesWithShape,
    Refused,
    WrongShape,
)
from specs.selection import case_named


def cell(case: str, *, check: str = "", verdict: str = "violates") -> Cell:
    """A cell that fails."""
    document, version, source, target, mode = parts_of(case)
    return Cell(
        "one", case, document, version, source, target, mode, verdict, "",
        inputs=1, open=0, wrong=0, runs=0, reaches_ends=False, broken=(), reproduction="",
        asked=None, answers=None, check=check,
    )  # fmt: skip


def parts_of(case: str) -> tuple[str, str, str, str, str]:
    """Document, version, source, target and mode of a case id."""
    name, source, target, *modes = case.split("/")
    document, version = name.split(":")
    return document, version, source, target, "/".join(modes)


def broken(rule: str = "rule") -> Divergence:
    """A broken rule without values."""
    return Divergence(rule, "§ 1", "required", 0, 0, "", None, None, (), (), ())


VIEW = "torch-view:2/int8/int16/shape:2"
RULE = ("rule", "§ 1", "required")
SAME = WrongShape(*RULE, (), (), (8,))
SCALED = WrongShape(*RULE, (8,), (4,), (4, 2))


def test_a_shape_that_several_rules_explain_goes_to_the_one_that_explains_most() -> None:
    failures = [Failure(cell(VIEW), broken(), problem) for problem in (SAME, SCALED)]
    names = {cause.name for cause, _ in find_causes(failures)}
    assert names == {"scales-the-last-axis"}


@pytest.mark.parametrize(
    ("case_error", "name"),
    [("TypeError", "raises-TypeError"), ("ValueError", "raises-in-some-layouts")],
)
def test_a_check_with_an_error_of_cases_is_part_of_their_finding(
    case_error: str, name: str
) -> None:
    of_case = cell("onnx-cast:25/float32/float16", verdict="error")
    of_check = cell(
        "onnx-cast:25/float32/bfloat16", check="invariances/float32/bfloat16", verdict="error"
    )
    _, (cause, _) = find_causes(
        [
            Failure(of_case, None, Refused(case_error, "no")),
            Failure(of_check, None, Refused("TypeError", "no", where="shape ()")),
        ]
    )
    assert cause.name == name


def test_a_road_that_is_named_by_a_path_is_named_whole() -> None:
    check = "variants/their/casts.py:Slow/float32/float16"
    of_check = cell("onnx-cast:25/float32/float16", check=check)
    [(cause, says)] = find_causes([Failure(of_check, broken(), None)])
    assert cause == ("depends on layout", "differs-from-their/casts.py:Slow")
    assert says == "answers otherwise than their/casts.py:Slow"


def test_of_findings_of_a_kind_that_of_most_cases_is_the_first() -> None:
    errors = {"int8": "TypeError", "int16": "ValueError", "int32": "ValueError"}
    cells = [
        replace(
            cell(f"onnx-cast:25/float32/{target}", verdict="error"),
            problems=(Refused(error, "no"),),
        )
        for target, error in errors.items()
    ]
    stored: dict[str, Any] = {}
    found = find_findings(cells, stored.__getitem__)["one"]
    assert [each.name for each in found] == ["raises-ValueError", "raises-TypeError"]


def test_an_adapter_that_changes_bits_is_no_error_of_the_framework() -> None:
    refused = cell("onnx-cast:25/float32/int8", verdict="error")
    [(cause, says)] = find_causes([Failure(refused, None, BrokenAdapter("int8", "it loses 0x80"))])
    assert cause == ("wrong refusal", "adapter-breaks-int8")
    assert says == "the adapter, not the framework: int8: it loses 0x80"


def test_an_error_has_an_exact_count_of_no_inputs() -> None:
    refused = cell("onnx-cast:25/float32/int8", verdict="error")
    stored: dict[str, Any] = {}
    problem = Refused("ValueError", "no")
    [found] = find_findings([replace(refused, problems=(problem,))], stored.__getitem__)["one"]
    assert (found.inputs, found.is_exact) == (0, True)


def extent(*cases: str) -> str:
    """The extent of a finding of one wrong input in each of some cases."""
    wrong = (1, True, "", "0x3c00", "0x40", ("0x38",))
    shares = tuple(ExplainedCase(cell(case), "r", "", "required", *wrong) for case in cases)
    return extent_words(Finding("double", "one", "wrong value", "gives the double", shares))


def test_the_example_of_several_cases_is_said_to_be_of_one() -> None:
    case, other = (f"onnx-cast:{each}/float16/float8e4m3fn/saturate:1" for each in (24, 25))
    pair, example = "float16 to float8e4m3fn", "0x3c00 (1) gives 0x40 (2), not 0x38 (1)"
    assert extent(case) == f"1 case, {pair}, 1 input; {example}"
    assert extent(case, other) == f"2 cases, {pair}, 2 inputs; {example}, in {other}"


def test_of_many_pairs_those_of_the_first_sources_are_named() -> None:
    targets = {"int8": "float16", "int16": "float32", "int32": "float64", "uint8": "bfloat16"}
    cases = [f"onnx-cast:25/{source}/{target}" for source, target in targets.items()]
    assert extent(*cases).startswith("4 cases, int8 to float16; 4 pairs in all, 4 inputs; ")


@pytest.mark.parametrize(
    ("promise", "facts", "name"),
    [
        ("other member", ("bias", "float32", "float16"), "not-all-members"),
        ("other member", ("scale", "float64", "float16"), "not-all-members"),
        ("member's value", ("bias", "0x3c00", "0x0", "0x1"), "members-get-other-values"),
    ],
)
def test_members_of_a_layer_that_are_wrong_are_one_finding(
    promise: str, facts: tuple[str, ...], name: str
) -> None:
    problem = BrokenPromise(*RULE, promise, facts, "a layer of several dtypes")
    case = "paddle-layer-astype:1.0/float32/float16/form:name/member:weight"
    [(cause, _)] = find_causes([Failure(cell(case), broken(), problem)])
    assert cause == ("wrong value", name)


def test_an_element_that_depends_on_the_shape_depends_on_layout() -> None:
    problem = ChangesWithShape(*RULE, (5,))
    [(cause, _)] = find_causes([Failure(cell("onnx-cast:25/float32/float16"), broken(), problem)])
    assert cause == ("depends on layout", "changes-with-layout")


def shown_script(smallest: str, script: str, source: str = "float16", shown: str = "0x3c00") -> str:
    """The script of a finding's share in a case whose own script shows another input."""
    one = Divergence("r", "", "required", 1, 1, "", shown, "0x01", ("0x02",), (), ())
    base = cell(f"onnx-cast:25/{source}/float8e4m3fn/saturate:1")
    held = replace(base, broken=(one,), reproduction=script)
    share = ExplainedCase(held, "r", "", "required", 1, True, "", smallest, "0x01", ("0x02",))
    return share.script


def test_of_two_scripts_each_share_has_its_own() -> None:
    value, error = (
        "bits = np.array([0x3c00], np.uint16)\n",
        "bits = np.array([0x3c00]).reshape(())\n",
    )
    both = value + NEXT_SCRIPT + error
    assert (shown_script("0x3c00", both), shown_script("", both)) == (value, error)


def test_a_script_asks_for_the_input_that_the_finding_shows() -> None:
    script = "bits = np.array([0x3c00], np.uint16)\nprint(bits)\n"
    assert shown_script("0x3c00", script) == script
    assert shown_script("0x7c00", script) == script.replace("0x3c00", "0x7c00")
    assert shown_script("0x7c00", "print('no input')\n") == ""
    assert shown_script("", script) == ""


def test_a_script_asks_for_the_text_that_the_finding_shows() -> None:
    script, wanted = (f"bits = np.array(['{text}'], object)\n" for text in ("1", "+1"))
    assert shown_script("+1", script, "string", "1") == wanted


def test_a_worked_example_expects_what_the_page_prints() -> None:
    rules = answered_ruling(case_named("cinn-cast:1.0/int32/float32/example:one-two-three"))
    assert rules is not None
    expected = expected_of(rules, np.array([3, 1, 2], np.uint32))
    assert expected.codes.view(np.float32).tolist() == [3.0, 1.0, 2.0]
    assert expected.branch_indices.tolist() == [2, 0, 1]
