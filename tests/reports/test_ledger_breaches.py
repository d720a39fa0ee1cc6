"""A ledger lists the rule, the region, an example and the behavior of a judgement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.running.selection import case_named
from reports.diff.answer_arrays import DatumArray, InputsAndAnswers
from reports.diff.failure_runs import gather
from reports.diff.judgement import Divergence, Fault, Judgement
from reports.diff.verdicts import Verdict
from reports.ledger.breaches import breaches, shorten_example
from reports.ledger.listing import InputOptions
from reports.ledger.update import update_ledger

CASE = "onnx-cast:25/float16/int8"
OTHER = "onnx-cast:25/float16/int16"
BYTE = "onnx-cast:25/float8e5m2/bool"
OPTIONS = InputOptions()


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


def test_a_breach_names_its_rule_its_inputs_and_an_example() -> None:
    [found] = breaches(case_named(CASE), failing_judgement(divergence([0x4400, 0x4401], [9, 9])))
    assert (found.verdict, found.rule, found.inputs) == ("violates", "a", 2)
    assert found.example == "0x4400 gives 0x09, not 0x04 or 0x05"


def test_each_level_of_a_rule_is_a_breach_of_its_own() -> None:
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
    assert base == error_region("on 3 of 40 texts, the smallest 'k: v': ValueError: no")
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
    regions = {
        breaches(case_named(CASE), failing_judgement(one), of_pair=True)[0].region for one in faults
    }
    assert len(regions) == 1
    assert region(faults[0]) != region(faults[1])


@pytest.mark.parametrize("verdict", ["open", "conforms", "differs", "unsupported", "not-run"])
def test_other_verdicts_have_no_breach(verdict: Verdict) -> None:
    assert (
        breaches(case_named(CASE), failing_judgement(divergence(*BASE_ANSWERS), verdict=verdict))
        == ()
    )


def test_an_example_is_short_and_names_no_folder() -> None:
    assert shorten_example("no /home/someone/a/kernel.cc here") == "no kernel.cc here"
    assert shorten_example(r"no C:\Users\someone\kernel.cc") == "no kernel.cc"
    assert shorten_example("float32/float16") == "float32/float16"
    assert len(shorten_example("x" * 1000)) == 120


def test_an_update_lists_the_behavior_that_gives_all_wrong_answers() -> None:
    # Halves, and a number that is right: 0.5, 1.5, 2.5, 3.5 and 4 rounded away from zero.
    inputs = np.array([0x3800, 0x3E00, 0x4100, 0x4300, 0x4400], np.uint16)
    answers = np.array([1, 2, 3, 4, 4], np.uint8)
    wrong = divergence([0x3800, 0x3E00, 0x4100, 0x4300], [1, 2, 3, 4])
    answered = InputsAndAnswers(DatumArray("float16", inputs), DatumArray("int8", answers))
    found = replace(failing_judgement(wrong), answered=answered)
    assert [each.behaviour for each in breaches(case_named(CASE), found)] == [None]
    [explained] = breaches(case_named(CASE), found, explains=True)
    assert explained.behaviour == "half-away-saturate"
    assert update_ledger(None, "b", "1", OPTIONS, {CASE: [explained]}).listings[CASE][
        0
    ].behavior == ("half-away-saturate")
    unexplainable = InputsAndAnswers(
        answered.inputs, DatumArray("int8", answers ^ np.array([0, 0, 64, 0, 0], np.uint8))
    )
    [unexplained] = breaches(
        case_named(CASE), replace(found, answered=unexplainable), explains=True
    )
    assert unexplained.behaviour is None
