"""Failures: their digest has every failing input and answer, and no sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast

import numpy as np
import pytest

from reports.findings.finding_text import shortened
from reports.grading.failure_runs import gather
from reports.judgement import Judgement, Verdict
from reports.known_failures import VARIES, KnownFailure, failures, parse_failure
from reports.problem_words import PROMISES
from reports.problems import (
    BrokenAdapter,
    BrokenPromise,
    Died,
    NotRefused,
    Problem,
    Refused,
    WrongByAnyReading,
    WrongElement,
    WrongForm,
    WrongShape,
    WrongTensor,
    WrongValues,
)
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
    [failure] = failures(case_named(name), failing_judgement(*problems, verdict=verdict))
    return failure.region


def error_region(problem: Problem, name: str = CASE) -> str:
    return region(problem, name=name, verdict="error")


def test_a_failure_is_a_text_and_back() -> None:
    [found] = failures(case_named(CASE), failing_judgement(divergence([0x4400, 0x4401], [9, 9])))
    assert (found.what, found.inputs) == ("violates", 2)
    assert parse_failure(str(found)) == found == KnownFailure("violates", 2, found.region)


def test_each_level_is_a_failure_of_its_own() -> None:
    parts = divergence([1], [9]), divergence([2], [9], "recommended")
    found = failures(case_named(CASE), failing_judgement(*parts))
    assert [each.what for each in found] == ["violates", "deviates"]


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


def test_the_rules_that_share_wrong_values_do_not_change_the_region() -> None:
    inputs, answers = BASE_ANSWERS
    parts = [
        replace(divergence([one], [answer]), rule=f"rule-{one}")
        for one, answer in zip(inputs, answers, strict=True)
    ]
    found = failures(case_named(CASE), failing_judgement(*parts))
    assert found == failures(case_named(CASE), failing_judgement(divergence(*BASE_ANSWERS)))


RULE = {"rule": "form:name", "clause": "2", "level": "required"}
RAISES = Refused("ValueError", "at 0x7ffe: no", "on 0x0001")
TOO_WIDE = WrongForm("the answer holds 0x1f, wider than int8")
OTHER_DTYPE = BrokenPromise(promise="dtype", facts=("float16", "int8"), **RULE)
QUANTIZED = WrongTensor(
    *RULE.values(), "y", "0x1 (about 1.0e-45), scale 0x2 (3e-45)", "0x01 (1)", ("0x02 (2)",), 3, 9
)
SHAPED = WrongElement(*RULE.values(), (2, 3), 4, "0x01", "0x02", layout="transposed")
READ = WrongByAnyReading(*RULE.values(), (SHAPED, WrongShape(*RULE.values(), (2,), (1,))))
NOT_REFUSED = NotRefused(*RULE.values(), "shape (4,) gives int8", error_class="TypeError")


RUNS = divergence(*BASE_ANSWERS).runs


@pytest.mark.parametrize(
    ("problem", "content"),
    [
        (divergence(*BASE_ANSWERS), ["violates", [3, RUNS.checksum]]),
        (RAISES, ["error", ["Refused", "", "error", "ValueError"]]),
        (TOO_WIDE, ["error", ["WrongForm", ""]]),
        (OTHER_DTYPE, ["violates", ["BrokenPromise", "form:name", "dtype", ["source", "target"]]]),
        (
            QUANTIZED,
            [
                "violates",
                ["WrongQuantized", "form:name", "y", ["0x1", "0x2"], ["0x01"], [["0x02"]], 3, 9],
            ],
        ),
        (SHAPED, ["violates", ["WrongElement", "form:name", [2, 3], 4, ["0x01"], ["0x02"]]]),
        (Died("exit code 139"), ["crashed"]),
    ],
)
def test_a_region_is_a_digest_of_the_data(problem: Problem, content: list[Any]) -> None:
    digest = sha256(json.dumps(content).encode()).hexdigest()
    assert region(problem, verdict=content[0]) == digest[:16]


SENTENCES = {
    "what a promise is called": (OTHER_DTYPE, OTHER_DTYPE),
    "where a promise is broken": (OTHER_DTYPE, replace(OTHER_DTYPE, where="in a tensor of 2 × 3")),
    "what a call gives back": tuple(
        BrokenPromise(promise="returned", facts=(fact,), **RULE) for fact in ("itself", "its input")
    ),
    "an error's text and inputs": (
        replace(RAISES, **RULE),
        replace(RAISES, line="so nicht", inputs="bei 0x1", where="in a row", **RULE),
    ),
    "how a form is wrong": (replace(TOO_WIDE, **RULE), WrongForm("ten bits in int8", **RULE)),
    "how values are spelled": (
        QUANTIZED,
        replace(
            QUANTIZED, given="0x1 by a scale of 0x2 (2.8e-45)", got="0x01", allowed=("0x02 or 2",)
        ),
    ),
    "how a tensor lies": (SHAPED, replace(SHAPED, layout="with its axes swapped")),
    "how a tensor lies by a reading": (
        READ,
        replace(READ, readings=(replace(SHAPED, layout="swapped"), READ.readings[1])),
    ),
    "what is given instead of an error": (NOT_REFUSED, replace(NOT_REFUSED, but="four of int8")),
}


@pytest.mark.parametrize("change", SENTENCES)
def test_no_sentence_is_in_the_region(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = SENTENCES[change]
    before = region(one)
    for promise in PROMISES:
        monkeypatch.setitem(cast(dict[str, str], PROMISES), promise, "is not what it should be")
    assert region(one) == region(other) == before


DATA = {
    "the rule": (OTHER_DTYPE, replace(OTHER_DTYPE, rule="form:other")),
    "the promise": (OTHER_DTYPE, replace(OTHER_DTYPE, promise="converted")),
    "another dtype than due": (OTHER_DTYPE, replace(OTHER_DTYPE, facts=("int16", "int8"))),
    "the class of an error": (RAISES, replace(RAISES, error="TypeError")),
    "an error that is reported": (RAISES, replace(RAISES, kind="answer")),
    "an error and a wrong form": (RAISES, TOO_WIDE),
    "the quantized value": (QUANTIZED, replace(QUANTIZED, given="0x1, scale 0x3")),
    "the code that is given": (QUANTIZED, replace(QUANTIZED, got="0x03 (3)")),
    "the code that is allowed": (QUANTIZED, replace(QUANTIZED, allowed=("0x04 (4)",))),
    "how many are wrong": (QUANTIZED, replace(QUANTIZED, wrong=4)),
    "the place of an element": (SHAPED, replace(SHAPED, index=3)),
    "a bit of an element": (SHAPED, replace(SHAPED, got="0x03")),
    "another reading": (READ, replace(READ, readings=READ.readings[::-1])),
    "the shape of an answer": (READ.readings[1], replace(READ.readings[1], got=(2, 2))),
    "the class that is due": (NOT_REFUSED, replace(NOT_REFUSED, error_class="ValueError")),
}


@pytest.mark.parametrize("change", DATA)
def test_all_data_is_in_the_region(change: str) -> None:
    one, other = (replace(each, **RULE | {"rule": each.rule or "a"}) for each in DATA[change])
    assert region(one) != region(other)


def test_equal_runs_of_another_case_have_the_same_region() -> None:
    assert region(divergence(*BASE_ANSWERS)) == region(divergence(*BASE_ANSWERS), name=OTHER)


def test_the_region_of_an_error_depends_on_its_class_only() -> None:
    base = error_region(RAISES)
    assert base == error_region(Refused("ValueError", "something else"), OTHER)
    assert base != error_region(replace(RAISES, error="TypeError"))
    assert base != error_region(TOO_WIDE) == error_region(WrongForm("no array"), OTHER)
    assert base != error_region(BrokenAdapter("int8", "ValueError: no"))


def test_a_process_that_dies_and_then_raises_an_error_raises_an_error() -> None:
    [found] = failures(case_named(CASE), failing_judgement(Died("9"), RAISES, verdict="error"))
    assert found.region == error_region(RAISES)


def test_the_region_of_a_fault_has_dtypes_by_their_roles() -> None:
    of_int16 = replace(OTHER_DTYPE, facts=("float16", "int16"))
    assert region(OTHER_DTYPE) == region(of_int16, name=OTHER) != region(of_int16)


def test_a_failure_covers_those_alike_and_one_that_varies_any() -> None:
    found = KnownFailure("violates", 2, "0" * 16)
    assert found.covers(found)
    assert KnownFailure("violates").covers(found)
    assert not KnownFailure("deviates").covers(found)
    assert not replace(found, region="1" * 16).covers(found)
    assert not found.covers(KnownFailure("violates"))
    assert str(KnownFailure("violates")) == f"violates {VARIES}"


def test_the_region_of_a_pair_depends_on_the_rule_only() -> None:
    faults = [WrongElement("a", "1", "required", (9,), place, "0x1", "0x2") for place in (7, 8)]
    checks = [replace(failing_judgement(one), check="invariances/x/y") for one in faults]
    assert len({failures(case_named(CASE), one)[0].region for one in checks}) == 1
    assert region(faults[0]) != region(faults[1])


@pytest.mark.parametrize("verdict", ["open", "conforms", "differs", "unsupported", "not-run"])
def test_other_verdicts_are_no_failure(verdict: Verdict) -> None:
    assert (
        failures(case_named(CASE), failing_judgement(divergence(*BASE_ANSWERS), verdict=verdict))
        == ()
    )


def test_a_text_is_short_and_names_no_folder() -> None:
    assert shortened("no /home/someone/a/kernel.cc here") == "no kernel.cc here"
    assert shortened(r"no C:\Users\someone\kernel.cc") == "no kernel.cc"
    assert shortened("float32/float16") == "float32/float16"
    assert len(shortened("x" * 1000)) == 90


@pytest.mark.parametrize("text", ["", "violates", "violates x 00ff", "violates 3 00ff more"])
def test_other_texts_are_no_failures(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no failure|invalid literal"):
        parse_failure(text)
