"""Breaches: every failing input and answer affects the digest that a ledger compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.grading.failure_runs import gather
from reports.verdicts import Verdict
from reports.findings.finding_text import shortened
from reports.judgement import Divergence, Fault, Judgement
from reports.ledger.breaches import Breach, breaches, parse_breach
from specs.selection import case_named

CASE = "onnx-cast:25/float16/int8"
OTHER = "onnx-cast:25/float16/int16"


def divergence(inputs: list[int], answers: list[int], level: str = "required") -> Divergence:
    given, answered = np.array(inputs, np.uint16), np.array(answers, np.uint8)
    [(_, runs)] = gather(given, answered, np.ones(given.size, np.uint8))
    return Divergence("a", "1", level, len(inputs), runs, inputs[0], answers[0], ("0x04", "0x05"))


def failing_judgement(
    *parts: Divergence | Fault, verdict: Verdict = "violates", message: str = ""
) -> Judgement:
    found = tuple(part for part in parts if isinstance(part, Divergence))
    faults = tuple(part for part in parts if isinstance(part, Fault))
    return Judgement(CASE, "b", verdict, message, divergences=found, faults=faults)


def region(*parts: Divergence | Fault, name: str = CASE) -> str:
    [breach] = breaches(case_named(name), failing_judgement(*parts))
    return breach.region


def error_region(message: str, name: str = CASE) -> str:
    [breach] = breaches(case_named(name), failing_judgement(verdict="error", message=message))
    return breach.region


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


def test_equal_runs_of_another_case_have_the_same_region() -> None:
    assert region(divergence(*BASE_ANSWERS)) == region(divergence(*BASE_ANSWERS), name=OTHER)


def test_the_region_of_an_error_depends_on_its_class_only() -> None:
    base = error_region("on 0x0001: ValueError: at 0x7ffe: no")
    assert base == error_region("ValueError: something else", OTHER)
    assert base == error_region(
        "on 'k: v', the simplest text that raises the error: ValueError: no"
    )
    assert base != error_region("on 0x0001: TypeError: at 0x7ffe: no")
    wide = error_region("the answer holds 0x1f, wider than int8")
    assert wide == error_region("the answer holds 0x2, wider than int16", OTHER)
    assert wide != error_region("the answer has shape (2,), the input (1,)")


def test_the_region_of_a_fault_depends_on_its_text_without_the_dtypes() -> None:
    def fault(message: str, kind: str = "answer") -> Fault:
        return Fault(kind, "form:name", "2", "required", message)

    same = region(fault("gives float16 instead of int8"))
    assert same == region(fault("gives float16 instead of int16"), name=OTHER)
    assert same != region(fault("gives float16 instead of int16"))
    assert same != region(fault("gives float16 instead of int8", "error"))


def test_the_region_of_a_pair_depends_on_the_rule_only() -> None:
    faults = [Fault("answer", "a", "1", "required", f"at {place}") for place in (7, 15)]
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
