"""A backend that answers otherwise above some length is judged on both sides of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings

from conformance.judging import row_limits
from oracles.protocol import Unsupported
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from reports.grading.allowed_answers import Expectations, grade_answers
from reports.judgement import Judgement
from specs.cases import Case
from specs.ruling import ruling
from specs.selection import case_named

RIGHT = Reference()
EXACT = "onnx-cast:25/uint8/float16"
OPEN = "onnx-cast:25/float8e5m2/int32"
INPUTS = 256
BELOW, ABOVE = 1 << 10, 100
"""Limits: all inputs in one row stay below the first, and exceed the second."""
SHORT_SHAPE = "shape (5,): an element answers otherwise than in one row"
Change = Callable[[Any, Any], Any]


class Planted:
    """Answers rows of more than ``limit`` elements, or of at most so many, with a change."""

    name = "planted"
    version = "0"

    def __init__(self, limit: int, is_long_changed: bool, change: Change) -> None:
        self.row_limits = (limit,)
        self.limit = limit
        self.is_long_changed = is_long_changed
        self.change = change
        self.asked: list[int] = []

    def cast(self, case: Case, bits: Any) -> Any:
        self.asked.append(bits.size)
        answer = RIGHT.cast(case, bits)
        is_long = bits.size > self.limit
        return self.change(bits, answer) if is_long == self.is_long_changed else answer


class WithRoad(Planted):
    def road(self, case: Case) -> str:
        return f"{case.source}->{case.target}"


def judged(oracle: Any, case: str = EXACT) -> Judgement:
    return BackendJudge(Backend("planted", oracle), {}, Settings()).judge(case_named(case))


def last_bit(bits: Any, answer: Any) -> Any:
    """Wrong for 3, 7 and their like: a fourth of all inputs."""
    return np.where(bits & 3 == 3, answer ^ 1, answer).astype(answer.dtype)


@pytest.mark.parametrize("limit", [BELOW, ABOVE])
@pytest.mark.parametrize("is_long_changed", [False, True])
def test_an_answer_that_is_wrong_on_one_side_only_is_found(
    limit: int, is_long_changed: bool
) -> None:
    found = judged(Planted(limit, is_long_changed, last_bit))
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


@pytest.mark.parametrize("limit", [BELOW, ABOVE, INPUTS])
def test_who_answers_alike_on_both_sides_conforms(limit: int) -> None:
    oracle = Planted(limit, True, lambda bits, answer: answer)
    found = judged(oracle)
    assert (found.verdict, found.message, found.divergences) == ("conforms", "", ())
    sides = {size > limit for size in oracle.asked if size >= INPUTS % limit}
    assert sides == {False, True}
    assert max(oracle.asked) == max(INPUTS, limit + 1)


def test_what_is_wrong_on_both_sides_is_counted_once() -> None:
    class AlwaysWrong(Planted):
        def cast(self, case: Case, bits: Any) -> Any:
            return last_bit(bits, RIGHT.cast(case, bits))

    found = judged(AlwaysWrong(BELOW, True, last_bit))
    assert (found.verdict, found.wrong, found.message) == ("violates", INPUTS // 4, "")


def test_an_open_answer_that_depends_on_the_length_is_told_and_no_failure() -> None:
    def other_infinity(bits: Any, answer: Any) -> Any:
        return np.where(bits == 0x7C, 7, answer).astype(answer.dtype)

    found = judged(Planted(BELOW, True, other_infinity), OPEN)
    assert (found.verdict, found.divergences) == ("conforms", ())
    assert "1 of 256 inputs have other answers in rows of at most 1,024 elements" in found.message
    assert "0 are wrong only in the shorter, 0 only in the longer; 0x7c gives" in found.message


def test_rows_that_are_not_supported_are_left_out_and_told() -> None:
    def declines(bits: Any, answer: Any) -> Any:
        raise Unsupported("not folded\nat all")

    found = judged(Planted(BELOW, True, declines))
    says = "rows of more than 1,024 elements not asked: not folded"
    assert (found.verdict, found.message) == ("conforms", says)


def test_an_error_in_the_other_rows_is_the_verdict() -> None:
    def raises(bits: Any, answer: Any) -> Any:
        raise ValueError("too long")

    oracle = Planted(BELOW, True, raises)
    found = judged(oracle)
    assert (found.verdict, found.message) == ("error", "ValueError: too long")
    oracle.claims = ("torch-view",)  # type: ignore[attr-defined]
    assert judged(oracle).verdict == "differs"


def test_raw_bytes_are_compared_too() -> None:
    case = case_named("paddle-tensor-to:1.0/uint8/complex128/form:name")
    rules, inputs = ruling(case), np.arange(INPUTS, dtype=np.uint8)
    answer = RIGHT.cast(case, inputs)
    expected = Expectations(independent=False).of(rules, inputs)
    one_row = row_limits.Judged(answer, grade_answers(rules, inputs, expected, answer))

    def imaginary(rows: Sequence[Any]) -> list[Any]:
        parts = [RIGHT.cast(case, row).view(np.uint64) for row in rows]
        return [(part | np.uint64([0, 1] * (part.size // 2))).view("V16") for part in parts]

    worse = row_limits.across([BELOW], rules, inputs, expected, one_row, imaginary)
    # The document is open here: the first answers stay, and the note says that others came.
    assert worse.answer.tobytes() == answer.tobytes()
    assert worse.notes[0].startswith("256 of 256 inputs have other answers")
    other = f"0x{1:016x}{0:016x}"
    assert worse.notes[0].endswith(f"0x{0:032x} in the shorter, {other} in the longer")


def test_cases_of_one_road_share_the_rows() -> None:
    names = [f"onnx-cast:{version}/uint8/float16" for version in (13, 19, 25)]
    for made, times in ((WithRoad, 1), (Planted, 3)):
        oracle = made(BELOW, True, last_bit)
        backend_judge = BackendJudge(Backend("planted", oracle), {}, Settings())
        found = [replace(backend_judge.judge(case_named(name)), case="") for name in names]
        assert oracle.asked.count(BELOW + 1) == times
        assert [each.wrong for each in found] == [INPUTS // 4] * 3
        # Another pair has the same inputs, but its answers are not shared.
        other = backend_judge.judge(case_named("onnx-cast:25/uint8/bfloat16"))
        assert oracle.asked.count(BELOW + 1) == times + 1
        assert other.wrong == INPUTS // 4


def test_a_worked_example_is_not_asked_again() -> None:
    oracle = Planted(BELOW, True, last_bit)
    assert judged(oracle, "onnx-cast:25/int16/int8/example:discarded-bits").verdict == "conforms"
    assert BELOW + 1 not in oracle.asked
