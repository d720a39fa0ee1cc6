"""Failing inputs are followed to the ends of their stretches, or not called exact."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.cast import follow
from conformance.families.cast.baseline import GradedAnswers
from conformance.families.cast.follow import (
    Ranges,
    follow_all_stretches,
    follow_stretches,
)
from conformance.families.reference import Reference
from conformance.judging.asking import Ask
from conformance.pair import judge_pair
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from reports.grading.allowed_answers import ALLOWED, NOT_ALLOWED
from specs.cases import Case
from specs.selection import case_named
from tests.conformance.feeding import answering, feed, planted

SIZE = 1 << 12


def graded(inputs: Bits, failing: Any) -> GradedAnswers:
    grades = np.where(np.isin(inputs, failing), NOT_ALLOWED, ALLOWED).astype(np.uint8)
    return GradedAnswers(inputs, inputs.copy(), grades, np.zeros(inputs.size, np.uint8))


def feed_ranges(
    follows: Any, start: GradedAnswers, failing: Any
) -> tuple[GradedAnswers | None, list[int]]:
    """Follow failing inputs from known answers; return what is found, and all inputs asked."""
    asked: list[int] = []

    def ask_ranges(ranges: Ranges) -> Ask[GradedAnswers]:
        yield []
        inputs = ranges.inputs(np.uint32)
        asked.extend(inputs.tolist())
        return graded(inputs, failing)

    return feed(follows(start, ask_ranges), answering()), asked


def followed(known: list[int], failing: Any) -> tuple[GradedAnswers | None, list[int]]:
    """Follow failing inputs around known ones; return what is found, and all inputs asked."""
    start = graded(np.array(known, np.uint32), failing)
    return feed_ranges(follow_stretches, start, failing)


@st.composite
def stretches(draw: st.DrawFn) -> list[int]:
    """Stretches of failing inputs with room between them."""
    found, at = [], draw(st.integers(0, 40))
    while at < SIZE:
        length = draw(st.integers(1, 90))
        found += range(at, min(at + length, SIZE))
        at += length + draw(st.integers(2 * length + 20, 900))
    return found


@given(stretches(), st.data())
def test_every_stretch_with_a_known_input_is_found_whole(
    failing: list[int], data: st.DataObject
) -> None:
    heads = [code for code in failing if code - 1 not in failing]
    known = {0, SIZE - 1, *heads}
    known |= {data.draw(st.sampled_from([code, max(code - 9, 0)])) for code in heads}
    # Beyond a stretch lies an input that is known to be right.
    known |= {min(code + 1, SIZE - 1) for code in failing if code + 1 not in failing}
    whole, asked = followed(sorted(known), failing)
    assert whole is not None
    assert whole.inputs[whole.fails].tolist() == failing
    assert (np.diff(whole.inputs.astype(np.int64)) > 0).all()
    assert sorted(asked) == sorted(set(whole.inputs.tolist()) - known)


INTEGERS = [0x44000000 + 0x2000 * step for step in range(40)]
"""Float32 patterns far from one another: 512 and every half from there."""
BETWEEN = [code + beside for code in INTEGERS for beside in (-1, 1)]
"""Inputs beside these, whose right answers are known at the start."""


@pytest.mark.parametrize("known", [INTEGERS[:1], INTEGERS[::13]])
def test_failing_inputs_that_lie_scattered_are_reached_by_leaps(known: list[int]) -> None:
    start = graded(np.array(sorted({0, *known, *BETWEEN, 0xFFFFFFFF}), np.uint32), INTEGERS)
    whole, _ = feed_ranges(follow_all_stretches, start, INTEGERS)
    assert whole is not None
    assert whole.inputs[whole.fails].tolist() == INTEGERS


def test_scattered_inputs_that_are_too_many_are_not_called_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follow, "MOST_LEAPED", 5)
    known = sorted({0, *INTEGERS[::13], *BETWEEN, 0xFFFFFFFF})
    start = graded(np.array(known, np.uint32), INTEGERS)
    assert feed_ranges(follow_all_stretches, start, INTEGERS)[0] is None


def test_leaps_that_find_more_in_every_round_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round reaches few further inputs, so three rounds do not find them all."""
    monkeypatch.setattr(follow, "MOST_ROUNDS", 3)
    failing = [0x80000000 + (1 << bit) - 1 for bit in range(2, 20)]
    failing = [code & ~1 for code in failing]
    known = sorted({0, failing[0], *(code + beside for code in failing for beside in (-1, 1))})
    start = graded(np.array([*known, 0xFFFFFFFF], np.uint32), failing)
    assert feed_ranges(follow_all_stretches, start, failing)[0] is None
    monkeypatch.setattr(follow, "MOST_ROUNDS", 100)
    whole, _ = feed_ranges(follow_all_stretches, start, failing)
    assert whole is not None
    assert whole.inputs[whole.fails].tolist() == failing


@pytest.mark.parametrize("known", [[0, 100, 2999, SIZE - 1], [0, 1500, SIZE - 1]])
def test_a_stretch_beyond_the_budget_has_no_end(
    known: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_FOLLOWED", 1000)
    assert followed(known, range(100, 3000))[0] is None


FIRST, LAST = 0x40490001, 0x40490001 + 2999
"""The first and the last input with a wrong answer; the quick tier asks one of that range."""


def wrong_about_some(case: Case, inputs: Bits) -> Bits:
    """Answer zero from ``FIRST`` to ``LAST``, and for one more input in version 25."""
    answers = Reference().cast(case, inputs).copy()
    answers[(inputs >= FIRST) & (inputs <= LAST + (case.version == "25"))] = 0
    return answers


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("road", "is_shared"),
    [
        (lambda case: "one", True),
        (lambda case: case.version, False),
        (lambda case: "", False),  # The backend fails to name it.
    ],
)
def test_a_judgement_counts_every_failing_input_and_cases_of_one_road_share_them(
    road: Any, is_shared: bool
) -> None:
    cases = [case_named(f"onnx-cast:{version}/float32/float16") for version in (23, 24, 25)]
    asked: list[Any] = []
    judge = judge_pair(planted(max_examples=200_000), cases)
    judgements = feed(judge, answering(cast=wrong_about_some, road=road), asked)
    for found, last in zip(judgements, (LAST, LAST, LAST + (not is_shared)), strict=True):
        assert (found.verdict, found.reaches_ends) == ("deviates", True)
        assert found.wrong == last + 1 - FIRST
        [divergence] = found.divergences
        assert divergence.runs.first.tolist() == [FIRST]
        assert divergence.runs.last.tolist() == [last]
    rows = Counter(
        each.case.version
        for each in asked
        if isinstance(each, Cast) and each.bits.size == follow.ROW
    )
    assert rows["23"] > 0
    # Equal answers on two roads are no reason to ask the second one less.
    assert rows["24"] == (0 if is_shared else rows["23"])
