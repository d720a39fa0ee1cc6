"""Breaches: every failing input and answer affects the digest that a ledger compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.findings.finding_text import shortened
from reports.grading.failure_runs import gather
from reports.judgement import Judgement
from reports.ledger.breaches import Breach, breaches, parse_breach
from reports.problems import (
    BrokenPromise,
    Problem,
    Refused,
    WrongForm,
    WrongTensor,
    WrongValues,
)
from reports.verdicts import Verdict
from specs.selection import case_named

CASE = "onnx-cast:25/float16/int8"
OTHER = "onnx-cast:25/float16/int16"


def divergence(inputs: list[int], answers: list[int], level: str = "required") -> WrongValues:
    given, answered = np.array(inputs, np.uint16), np.array(answers, np.uint8)
    [(_, runs)] = gather(given, answered, np.ones(given.size, np.uint8))
    return WrongValues("a", "1", level, len(inputs), runs, inputs[0], answers[0], ("0x04", "0x05"))


def failing_judgement(*problems: Problem, verdict: Verdict = "violates") -> Judgement:
    return Judgement(CASE, "b", verdict, problems)


def region(*problems: Problem, name: str = CASE, verdict: Verdict = "violates") -> str:
    [breach] = breaches(case_named(name), failing_judgement(*problems, verdict=verdict))
    return breach.region


def error_region(problem: Problem, name: str = CASE) -> str:
    return region(problem, name=name, verdict="error")


def test_a_breach_is_a_text_and_back() -> None:
    [found] = breaches(case_named(CASE), failing_judgement(divergence([0x4400, 0x4401], [9, 9])))
    assert (found.verdict, found.inputs) == ("violates", 2)
    assert parse_breach(str(found)) == found == Breach("violates", 2, found.region)


def test_each_level_is_a_breach_of_its_own() -> None:
    parts = divergence([1], [9]), divergence([2], [9], "recommended")
    found = breaches(case_named(CASE), failing_judgement(*parts))
    assert [each.verdict for each in found] == ["violates", "deviates"]


BASE_ANSWERS = ([0x4400, 0x4401, 0x4500], [9, 9, 9])
CHANGES = {
    "an input less": divergence([0x4400, 0x4401], [9, 9]),
    "an input moved": divergence([0x4400, 0x4401, 0x4501], [9, 9, 9]),
    "the first answer": divergence([0x4400, 0x4401, 0x4500], [8, 9, 9]),
    "the last answer": divergence([0x4400, 0x4401, 0x4500], [9, 9, 8]),
    "an answer within a run": divergence([0x4400, 0x4401, 0x4500], [9, 8, 9]),
    "the level": divergence(*BASE_ANSWERS, "recommended"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_inputs_or_answers_changes_the_region(change: str) -> None:
    assert region(CHANGES[change]) != region(divergence(*BASE_ANSWERS))


RULE = {"rule": "form:name", "clause": "2", "level": "required"}
RAISES = Refused("ValueError", "at 0x7ffe: no", "on 0x0001")
TOO_WIDE = WrongForm("the answer holds 0x1f, wider than int8")
OTHER_DTYPE = BrokenPromise(promise="dtype", facts=("float16", "int8"), **RULE)
SAYS_OTHER_DTYPE = Refused("", "gives float16 instead of int8", **RULE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("problem", "verdict", "digest"),
    [
        (divergence(*BASE_ANSWERS), "violates", "b7d2d58848084907"),
        (RAISES, "error", "dd84e8b78359a644"),
        (TOO_WIDE, "error", "73fd37e08f3a00ae"),
        (OTHER_DTYPE, "violates", "0fd317d14c53704e"),
        (replace(SAYS_OTHER_DTYPE, kind="answer"), "violates", "0fd317d14c53704e"),
        (SAYS_OTHER_DTYPE, "violates", "163fb2210112825a"),
    ],
)
def test_regions_are_those_that_ledgers_of_version_0_list(
    problem: Problem, verdict: Verdict, digest: str
) -> None:
    assert region(problem, verdict=verdict) == digest


def test_equal_runs_of_another_case_have_the_same_region() -> None:
    assert region(divergence(*BASE_ANSWERS)) == region(divergence(*BASE_ANSWERS), name=OTHER)


def test_the_region_of_an_error_depends_on_its_class_only() -> None:
    base = error_region(RAISES)
    assert base == error_region(Refused("ValueError", "something else"), OTHER)
    simplest = "on 'k: v', the simplest text that raises the error"
    assert base == error_region(Refused("ValueError", "no", simplest))
    assert base != error_region(replace(RAISES, error="TypeError"))
    wide = error_region(TOO_WIDE)
    assert wide == error_region(WrongForm("the answer holds 0x2, wider than int16"), OTHER)
    assert wide != error_region(WrongForm("the answer has shape (2,), the input (1,)"))


def test_the_region_of_a_fault_depends_on_its_text_without_the_dtypes() -> None:
    same = region(OTHER_DTYPE)
    of_int16 = replace(OTHER_DTYPE, facts=("float16", "int16"))
    assert same == region(of_int16, name=OTHER)
    assert same != region(of_int16)
    assert same != region(SAYS_OTHER_DTYPE)


def test_the_region_of_a_quantization_has_patterns_and_no_decimals() -> None:
    def quantized(given: str, got: str) -> WrongTensor:
        return WrongTensor("a", "1", "required", "y", given, got, ("0x02 (2)",), 3, 9)

    short = quantized("0x1 (about 1.0e-45), scale 0x2 (about 3.0e-45)", "0x01 (1)")
    longer = quantized("0x1 (about 1.4e-45), scale 0x2 (about 2.8e-45)", "0x01 (1)")
    other = quantized("0x1 (about 1.0e-45), scale 0x2 (about 3.0e-45)", "0x03 (1)")
    assert region(short) == region(longer) != region(other)


def test_the_region_of_a_pair_depends_on_the_rule_only() -> None:
    faults = [WrongForm(f"at {place}", "", "a", "1", "required") for place in (7, 15)]
    checks = [replace(failing_judgement(one), check="invariances/x/y") for one in faults]
    assert len({breaches(case_named(CASE), one)[0].region for one in checks}) == 1
    assert region(faults[0]) != region(faults[1])


@pytest.mark.parametrize("verdict", ["open", "conforms", "differs", "unsupported", "not-run"])
def test_other_verdicts_have_no_breach(verdict: Verdict) -> None:
    assert (
        breaches(case_named(CASE), failing_judgement(divergence(*BASE_ANSWERS), verdict=verdict))
        == ()
    )


def test_a_text_is_short_and_names_no_folder() -> None:
    assert shortened("no /home/someone/a/kernel.cc here") == "no kernel.cc here"
    assert shortened(r"no C:\Users\someone\kernel.cc") == "no kernel.cc"
    assert shortened("float32/float16") == "float32/float16"
    assert len(shortened("x" * 1000)) == 90
