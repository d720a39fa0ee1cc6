"""A behaviour explains a divergence only if it gives all its wrong answers, and these are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from conformance.running.selection import case_named
from reports.diff.answer_arrays import DatumArray, InputsAndAnswers
from reports.diff.failure_runs import gather
from reports.diff.judgement import Divergence
from reports.ledger.breaches import find_behavior

CASE = case_named("onnx-cast:25/float16/int8")
TO_TEXT = case_named("onnx-cast:25/float16/string")
AWAY = "half-away-saturate"
RIGHT = {0.5: 0, 0.625: 0, 1.25: 1, 3.75: 3, 60.0: 60}
WRONG = {1.5: 2, 2.5: 3, -1.5: -2}


def divergence(wrong: dict[float, int]) -> Divergence:
    asked = answered(wrong)
    inputs, answers = asked.inputs.values, asked.answers.values
    [(_, runs)] = gather(inputs, answers, np.ones(inputs.size, np.uint8))
    return Divergence("a", "1", "required", len(wrong), runs, int(inputs[0]), 0, ("0x00",))


def answered(values: dict[float, int]) -> InputsAndAnswers:
    inputs = np.array([*values], np.float16).view(np.uint16)
    answers = np.array([*values.values()], np.int8).view(np.uint8)
    order = np.argsort(inputs)
    return InputsAndAnswers(
        DatumArray("float16", inputs[order]), DatumArray("int8", answers[order])
    )


def test_right_answers_beside_wrong_ones_are_not_asked_of() -> None:
    assert find_behavior(CASE, answered(WRONG | RIGHT), divergence(WRONG)) == AWAY
    assert find_behavior(CASE, answered(WRONG), divergence(WRONG)) == AWAY


def test_what_two_behaviours_share_is_neithers() -> None:
    shared: dict[Any, int] = {**WRONG, float("inf"): -1}
    assert find_behavior(CASE, answered(shared), divergence(shared)) is None


def test_runs_that_are_not_all_listed_or_answers_that_are_not_kept_tell_nothing() -> None:
    known = divergence(WRONG)
    more = replace(known, runs=replace(known.runs, total=known.runs.total + 1))
    assert find_behavior(CASE, answered(WRONG), more) is None
    assert find_behavior(CASE, None, known) is None


def test_of_texts_there_is_no_behaviour() -> None:
    texts = np.empty(1, object)
    texts[:] = ["2"]
    kept = InputsAndAnswers(
        DatumArray("float16", np.array([0x3E00], np.uint16)), DatumArray("string", texts)
    )
    assert find_behavior(TO_TEXT, kept, divergence({1.5: 2})) is None
