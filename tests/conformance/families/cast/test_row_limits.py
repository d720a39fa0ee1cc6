"""A backend that answers otherwise above some length is judged on both sides of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.shapes import WorstAnswers, across
from conformance.families.reference import Reference
from oracles.backend.requests import Cast, CastBatch
from oracles.protocol import Unsupported
from reports.grading.allowed_answers import Expectations, grade_answers
from reports.judgement import Judgement
from specs.cases import Call, Case
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.feeding import Answer, answering, feed, planted, without_place

RIGHT = Reference()
EXACT = "onnx-cast:25/uint8/float16"
OPEN = "onnx-cast:25/float8e5m2/int32"
INPUTS = 256
BELOW, ABOVE = 1 << 10, 100
"""Limits: all inputs in one row stay below the first, and exceed the second."""
SHORT_SHAPE = "shape (5,): an element answers otherwise than in one row"
Change = Callable[[Any, Any], Any]


def changing(change: Change, limit: int = BELOW, is_long_changed: bool = True) -> Answer:
    """Change the answers in rows of more than ``limit`` elements, or in the shorter ones."""

    def cast(case: Case, bits: Any) -> Any:
        answer = RIGHT.cast(case, bits)
        return change(bits, answer) if (bits.size > limit) == is_long_changed else answer

    return answering(cast=cast)


def judged(
    answer: Answer,
    case: str = EXACT,
    limit: int = BELOW,
    claims: list[str] | None = None,
    asked: list[Any] | None = None,
) -> Judgement:
    return feeding.judged(case, answer, planted(claims, row_limits=(limit,)), asked)


def last_bit(bits: Any, answer: Any) -> Any:
    """Flip the last bit of the answers to 3, 7, 11 and so on: a fourth of all inputs."""
    return np.where(bits & 3 == 3, answer ^ 1, answer).astype(answer.dtype)


def raising(error: Exception) -> Change:
    def change(bits: Any, answer: Any) -> Any:
        raise error

    return change


@pytest.mark.parametrize("limit", [BELOW, ABOVE])
@pytest.mark.parametrize("is_long_changed", [False, True])
def test_an_answer_that_is_wrong_on_one_side_only_is_found(
    limit: int, is_long_changed: bool
) -> None:
    found = judged(changing(last_bit, limit, is_long_changed), limit=limit)
    assert (found.verdict, found.wrong, found.inputs) == ("violates", INPUTS // 4, INPUTS)
    [divergence] = found.divergences
    assert (divergence.smallest, divergence.answer) == (3, 0x4201)
    assert divergence.allowed == ("0x4200",)
    counts, answers = ("64 are wrong", "0 only"), ("0x4201", "0x4200")
    if is_long_changed:
        counts, answers = ("0 are wrong", "64 only"), answers[::-1]
    # Where the short rows are wrong, so is the tensor of shape (5,).
    assert found.message.removesuffix("; " + SHORT_SHAPE) == (
        f"64 of 256 inputs have other answers in rows of at most {limit:,} elements than in longer"
        f" ones: {counts[0]} only in the shorter, {counts[1]} in the longer;"
        f" 0x03 gives {answers[0]} in the shorter, {answers[1]} in the longer"
    )


@pytest.mark.parametrize(
    ("limit", "rows"),
    [(BELOW, [BELOW + 1]), (ABOVE, [ABOVE, ABOVE, INPUTS - 2 * ABOVE]), (INPUTS, [INPUTS + 1])],
)
def test_all_inputs_are_requested_on_the_other_side_of_the_limit(
    limit: int, rows: list[int]
) -> None:
    asked: list[Any] = []
    found = judged(changing(lambda bits, answer: answer), limit=limit, asked=asked)
    assert (found.verdict, found.message, found.divergences) == ("conforms", "", ())
    *_, row, _, others = asked  # A short row comes first, and the shapes come between these two.
    assert isinstance(row, Cast)
    assert row.bits.size == INPUTS
    assert isinstance(others, CastBatch)
    assert [*map(prod, others.batch.shapes)] == rows
    assert others.is_shared


def test_an_answer_that_is_wrong_on_both_sides_is_counted_once() -> None:
    always_wrong = answering(cast=lambda case, bits: last_bit(bits, RIGHT.cast(case, bits)))
    found = judged(always_wrong)
    assert (found.verdict, found.wrong, found.message) == ("violates", INPUTS // 4, "")


def test_an_open_answer_that_depends_on_the_length_is_a_note() -> None:
    def other_infinity(bits: Any, answer: Any) -> Any:
        return np.where(bits == 0x7C, 7, answer).astype(answer.dtype)

    found = judged(changing(other_infinity), OPEN)
    assert (found.verdict, found.divergences) == ("conforms", ())
    assert "1 of 256 inputs have other answers in rows of at most 1,024 elements" in found.message
    assert "0 are wrong only in the shorter, 0 only in the longer; 0x7c gives" in found.message


@pytest.mark.parametrize(
    ("error", "claims", "verdict", "message"),
    [
        (Unsupported("not folded\nat all"), None, "conforms",
         "rows of more than 1,024 elements not asked: not folded"),
        (ValueError("too long"), None, "error", "ValueError: too long"),
        (ValueError("too long"), ["torch-view"], "differs", "ValueError: too long"),
    ],
)  # fmt: skip
def test_rows_without_an_answer(
    error: Exception, claims: list[str] | None, verdict: str, message: str
) -> None:
    found = judged(changing(raising(error)), claims=claims)
    assert (found.verdict, without_place(found.message)) == (verdict, message)


def test_wide_elements_of_calls_are_compared_too() -> None:
    case = case_named("paddle-tensor-to:1.0/uint8/complex128/form:name")
    rules, inputs = ruling(case), np.arange(INPUTS, dtype=np.uint8)
    answer = RIGHT.cast(case, inputs)
    expected = Expectations(independent=False).of(rules, inputs)
    one_row = WorstAnswers(answer, grade_answers(rules, inputs, expected, answer))

    def imaginary(case: Case, call: Call, members: Any) -> Any:
        returned = RIGHT.call(case, call, members)
        words = returned.tensors[""].bits.view(np.uint64)
        bits = (words | np.uint64([0, 1] * (words.size // 2))).view("V16")
        return replace(returned, tensors={"": replace(returned.tensors[""], bits=bits)})

    asks = across([BELOW], case, rules, inputs, expected, one_row)
    worse = feed(asks, answering(call=imaginary))
    # The document is open here: the first answers are kept, and a note tells of the others.
    assert worse.answer.tobytes() == answer.tobytes()
    assert worse.notes[0].startswith("256 of 256 inputs have other answers")
    other = f"0x{1:016x}{0:016x}"
    assert worse.notes[0].endswith(f"0x{0:032x} in the shorter, {other} in the longer")


def test_a_worked_example_is_requested_once() -> None:
    asked: list[Any] = []
    answer = changing(last_bit)
    found = judged(answer, "onnx-cast:25/int16/int8/example:discarded-bits", asked=asked)
    assert found.verdict == "conforms"
    assert [type(each) for each in asked] == [Cast]
