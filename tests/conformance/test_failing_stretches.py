"""Failing inputs are followed to the ends of their stretches, or not called exact."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings
from conformance.kinds.follow import GradedAnswers, Ranges, follow
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judging import failing_stretches
from oracles.protocol import Bits
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from reports.grading.grades import ALLOWED, NOT_ALLOWED
from specs.cases import Case
from specs.selection import case_named

SIZE = 1 << 12


def graded(inputs: Bits, failing: Any) -> GradedAnswers:
    grades = np.where(np.isin(inputs, failing), NOT_ALLOWED, ALLOWED).astype(np.uint8)
    return GradedAnswers(inputs, inputs.copy(), grades, np.zeros(inputs.size, np.uint8))


@st.composite
def stretches(draw: st.DrawFn) -> list[int]:
    """Stretches of failing inputs with room between them."""
    found, at = [], draw(st.integers(0, 40))
    while at < SIZE:
        length = draw(st.integers(1, 90))
        found += range(at, min(at + length, SIZE))
        at += length + draw(st.integers(2 * length + 20, 900))
    return found


@settings(deadline=None)
@given(stretches(), st.data())
def test_every_stretch_with_a_known_input_is_found_whole(
    failing: list[int], data: st.DataObject
) -> None:
    heads = [code for code in failing if code - 1 not in failing]
    known = {0, SIZE - 1, *heads}
    known |= {data.draw(st.sampled_from([code, max(code - 9, 0)])) for code in heads}
    # Beyond a stretch lies an input that is known to be right.
    known |= {min(code + 1, SIZE - 1) for code in failing if code + 1 not in failing}
    asked = []

    def ask(ranges: Ranges) -> GradedAnswers:
        asked.append(inputs := ranges.inputs(np.uint32))
        return graded(inputs, failing)

    whole = follow(graded(np.array(sorted(known), np.uint32), failing), ask)
    assert whole is not None
    assert whole.inputs[whole.fails].tolist() == failing
    assert (np.diff(whole.inputs.astype(np.int64)) > 0).all()
    assert sorted(np.concatenate([[], *asked]).tolist()) == sorted(
        set(whole.inputs.tolist()) - known
    )


def test_a_stretch_beyond_the_budget_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_stretches, "MOST_FOLLOWED", 1000)
    failing = range(100, 3000)
    known = graded(np.array([0, 100, 2999, SIZE - 1], np.uint32), failing)
    assert follow(known, lambda ranges: graded(ranges.inputs(np.uint32), failing)) is None
    known = graded(np.array([0, 1500, SIZE - 1], np.uint32), failing)
    assert follow(known, lambda ranges: graded(ranges.inputs(np.uint32), failing)) is None


class WrongAboutSome(Reference):
    """Answers zero for 3000 consecutive inputs, of which the quick tier asks one."""

    first, last = 0x40490001, 0x40490001 + 2999
    name = "wrong"
    version = "1"

    def cast(self, case: Case, inputs: Bits) -> Bits:
        answers = super().cast(case, inputs).copy()
        answers[(inputs >= self.first) & (inputs <= self.last)] = 0
        return answers


def test_a_judgement_counts_every_failing_input() -> None:
    case = case_named("onnx-cast:25/float32/float16")
    backend = Backend("wrong", WrongAboutSome())
    judge = BackendJudge(backend, {}, Settings(max_examples=200_000))
    found = judge.judge(case)
    assert found.verdict == "deviates"
    assert found.reaches_ends
    assert found.wrong == 3000
    [divergence] = found.divergences
    assert divergence.runs.first.tolist() == [WrongAboutSome.first]
    assert divergence.runs.last.tolist() == [WrongAboutSome.last]


class ChangesWithTheVersion(WrongAboutSome):
    """Errs about the same inputs in each version, but in the last about one more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def road(self, case: Case) -> str:
        return f"{case.version} {super().road(case)}"

    def cast(self, case: Case, inputs: Bits) -> Bits:
        self.asked[case.version] += inputs.size
        answers = super().cast(case, inputs)
        if case.version == "25":
            answers[inputs == self.last + 1] = 0
        return answers


def test_answers_of_another_road_are_asked_and_only_an_equal_result_is_shared() -> None:
    oracle = ChangesWithTheVersion()
    judge = BackendJudge(Backend("wrong", oracle), {}, Settings(max_examples=200_000))
    wrong = {
        version: judge.judge(case_named(f"onnx-cast:{version}/float32/float16")).wrong
        for version in ("23", "24", "25")
    }
    assert wrong == {"23": 3000, "24": 3000, "25": 3001}
    # That two versions give the same is no reason to ask the second one less.
    assert oracle.asked["23"] == oracle.asked["24"] < oracle.asked["25"]
