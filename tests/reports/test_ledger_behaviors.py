"""A behavior explains a divergence only if it gives all its wrong answers, and all are stored."""

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
BEHAVIOR = "half-away-saturate"
RIGHT = {0.5: 0, 0.625: 0, 1.25: 1, 3.75: 3, 60.0: 60}
WRONG = {1.5: 2, 2.5: 3, -1.5: -2}


def divergence(wrong: dict[float, int]) -> Divergence:
    answered = inputs_and_answers(wrong)
    inputs, answers = answered.inputs.values, answered.answers.values
    [(_, runs)] = gather(inputs, answers, np.ones(inputs.size, np.uint8))
    return Divergence("a", "1", "required", len(wrong), runs, int(inputs[0]), 0, ("0x00",))


def inputs_and_answers(values: dict[float, int]) -> InputsAndAnswers:
    inputs = np.array([*values], np.float16).view(np.uint16)
    answers = np.array([*values.values()], np.int8).view(np.uint8)
    order = np.argsort(inputs)
    return InputsAndAnswers(
        DatumArray("float16", inputs[order]), DatumArray("int8", answers[order])
    )


def test_right_answers_do_not_affect_the_behavior() -> None:
    assert find_behavior(CASE, inputs_and_answers(WRONG | RIGHT), divergence(WRONG)) == BEHAVIOR
    assert find_behavior(CASE, inputs_and_answers(WRONG), divergence(WRONG)) == BEHAVIOR


def test_no_behavior_is_named_if_two_are_needed() -> None:
    needs_two: dict[Any, int] = {**WRONG, float("inf"): -1}
    assert find_behavior(CASE, inputs_and_answers(needs_two), divergence(needs_two)) is None


def test_no_behavior_is_named_without_all_runs_and_answers() -> None:
    known = divergence(WRONG)
    more = replace(known, runs=replace(known.runs, total=known.runs.total + 1))
    assert find_behavior(CASE, inputs_and_answers(WRONG), more) is None
    assert find_behavior(CASE, None, known) is None


def test_texts_have_no_behavior() -> None:
    texts = np.empty(1, object)
    texts[:] = ["2"]
    answered = InputsAndAnswers(
        DatumArray("float16", np.array([0x3E00], np.uint16)), DatumArray("string", texts)
    )
    assert find_behavior(TO_TEXT, answered, divergence({1.5: 2})) is None
