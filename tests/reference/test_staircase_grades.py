"""Grades by staircases equal the quick tier's comparison, in numpy and in numba."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.judging.quick_inputs import quick_inputs
from conformance.sweep.array_forms import forms
from oracles.reference import expect_by_kernels, staircase_grades
from oracles.reference.expectations import Expected
from oracles.reference.staircase import STEP, STRETCH, Staircase, Step, staircase
from oracles.reference.staircase_grades import ALLOWED, BROKEN, OPEN
from reports.diff.allowed_answers import grade_answers
from specs.outcomes import Anything, Either, Exactly, Nan
from specs.ruling import Ruling
from tests.reference.distinct import numeric_rulings

RULINGS = numeric_rulings()
SEED = 20_261_123
MOST_INPUTS = 20_000


def has(rules: Ruling, *kinds: type) -> bool:
    return any(isinstance(branch.outcome, kinds) for branch in rules.branches)


OPEN_IN_PART = [n for n, r in RULINGS.items() if has(r, Anything) and not r.is_open]
WITH_FRACTIONS = [
    name
    for name in OPEN_IN_PART
    if any(branch.input_class in ("fraction", "whole") for branch in RULINGS[name].branches)
]
SPREAD = {
    *[*RULINGS][::17],
    *OPEN_IN_PART[::17],
    *WITH_FRACTIONS[::17],
    *[name for name, rules in RULINGS.items() if has(rules, Either)][::9],
    *[name for name, rules in RULINGS.items() if has(rules, Nan)][::25],
    *[name for name, rules in RULINGS.items() if rules.target.bits < 8][::17],
}
PICKED = [name for name in RULINGS if name in SPREAD]


def some_inputs(rules: Ruling) -> NDArray[Any]:
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, 1_000)
    return inputs[:: max(1, inputs.size // MOST_INPUTS)]


def right_answers(
    rules: Ruling, expected: Expected, chance: np.random.Generator
) -> NDArray[np.uint64]:
    """Random answers that break nothing, not even a recommendation."""
    size = expected.places.size
    second = chance.random(size) < 0.5
    answers = np.where(second, expected.others, expected.codes).astype(np.uint64)
    for place, branch in enumerate(rules.branches):
        here = expected.places == place
        match branch.strictest:
            case Exactly(code=code):
                codes = np.full(size, code, np.uint64)
            case Anything():
                mask = rules.target.mask
                codes = chance.integers(0, mask, size, np.uint64, endpoint=True)
            case Nan(sign=sign):
                ranges = [
                    chance.integers(nans[0], nans[-1], size, np.uint64, endpoint=True)
                    for nans in rules.target.nans(sign)
                ]
                codes = np.where(second, ranges[0], ranges[-1])
            case _:
                continue
        answers[here] = codes[here]
    return answers


def expected_grades(
    rules: Ruling, inputs: NDArray[Any], expected: Expected, answers: NDArray[Any]
) -> NDArray[np.uint8]:
    """The grades by the quick tier's comparison, which leaves the check of widths to its caller."""
    wrong = grade_answers(rules, inputs, expected, answers) > 0
    wrong |= answers > rules.target.mask
    not_broken = np.where(np.isin(expected.places, rules.open_branches), OPEN, ALLOWED)
    return np.where(wrong, expected.places + BROKEN, not_broken).astype(np.uint8)


def flipped(
    answers: NDArray[np.uint64], bits: int, chance: np.random.Generator
) -> NDArray[np.uint64]:
    """The answers with a random bit flipped in about half of them."""
    bit = chance.integers(0, bits, answers.size, np.uint64)
    return answers ^ ((np.uint64(1) << bit) * (chance.random(answers.size) < 0.5))


@pytest.fixture(params=["numpy", "numba"])
def grades(request: pytest.FixtureRequest) -> Any:
    if request.param == "numba":
        pytest.importorskip("numba", reason="needs numba (the extra `fast`)")
    return forms(request.param == "numba").grades


@pytest.mark.parametrize("name", PICKED)
def test_grades_are_those_of_the_comparison(name: str, grades: Any) -> None:
    rules, chance = RULINGS[name], np.random.default_rng(SEED)
    stairs, inputs = staircase(rules), some_inputs(rules)
    expected = expect_by_kernels.expect(rules, inputs)
    storage = np.dtype(rules.target.storage)
    right = right_answers(rules, expected, chance)
    for answers in (
        right,
        flipped(right, rules.target.bits, chance),
        flipped(right, 8 * storage.itemsize, chance),
    ):
        compared = expected_grades(rules, inputs, expected, answers.astype(storage))
        graded = grades(stairs, inputs, answers.astype(storage))
        assert graded.dtype == np.uint8
        assert np.array_equal(graded, compared)
        if answers is right:
            assert np.isin(graded, (ALLOWED, OPEN)).all()


@pytest.mark.parametrize("name", PICKED[::4])
def test_an_answers_grade_does_not_depend_on_the_other_inputs(name: str, grades: Any) -> None:
    rules, chance = RULINGS[name], np.random.default_rng(SEED)
    stairs, inputs = staircase(rules), some_inputs(rules)
    answers = chance.integers(0, rules.target.mask, inputs.size, np.uint64, endpoint=True)
    answers = answers.astype(rules.target.storage)
    whole = grades(stairs, inputs, answers)
    selection = np.flatnonzero(chance.random(inputs.size) < 0.1)
    for where in (selection, selection[:1], selection[:0], slice(-3, None)):
        assert np.array_equal(grades(stairs, inputs[where], answers[where]), whole[where])


def test_the_selected_rulings_are_of_every_kind() -> None:
    picked = [RULINGS[name] for name in PICKED]
    assert any(rules.is_open for rules in picked)
    assert any(has(rules, Either) for rules in picked)
    assert any(has(rules, Nan) and not rules.target.has_signed_nan for rules in picked)
    assert {rules.target.bits for rules in picked} == {1, 2, 4, 8, 16, 32, 64}
    assert {rules.source.bits for rules in picked} >= {4, 8, 16, 32, 64}
    assert len(WITH_FRACTIONS) > 9


@pytest.mark.parametrize("name", PICKED[::2])
def test_branch_places_are_those_of_the_kernels(name: str) -> None:
    rules = RULINGS[name]
    inputs = some_inputs(rules)
    places = staircase_grades.branch_places(staircase(rules), inputs)
    assert np.array_equal(places, expect_by_kernels.expect(rules, inputs).places)
    assert staircase_grades.branch_places(staircase(rules), inputs[:0]).size == 0


def count_open(rules: Ruling, lo: int, hi: int) -> int:
    """Count the open inputs of a range by looking at each."""
    inputs = np.arange(lo, hi, dtype=np.uint64).astype(rules.source.storage)
    return int(np.isin(expect_by_kernels.expect(rules, inputs).places, rules.open_branches).sum())


NARROW_OPEN = [n for n, r in RULINGS.items() if r.open_branches and r.source.bits <= 16]
WIDE_OPEN = [n for n, r in RULINGS.items() if r.open_branches and r.source.bits > 16]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_open_inputs_of_a_narrow_source_are_counted(data: st.DataObject) -> None:
    rules = RULINGS[data.draw(st.sampled_from(NARROW_OPEN))]
    end = rules.source.mask + 1
    ends = st.integers(0, end) | st.sampled_from([0, end, rules.source.sign_bit])
    lo, hi = sorted((data.draw(ends), data.draw(ends)))
    assert staircase_grades.open_inputs(staircase(rules), lo, hi) == count_open(rules, lo, hi)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_open_inputs_of_a_wide_source_are_counted(data: st.DataObject) -> None:
    rules = RULINGS[data.draw(st.sampled_from(WIDE_OPEN))]
    stairs = staircase(rules)
    row = stairs.stretches[data.draw(st.integers(0, stairs.stretches.size - 1))]
    near = int(row[data.draw(st.sampled_from(["first", "last"]))])
    lo = max(0, near - data.draw(st.integers(0, 5_000)))
    hi = min(rules.source.mask + 1, near + data.draw(st.integers(0, 5_000)))
    assert staircase_grades.open_inputs(stairs, lo, hi) == count_open(rules, lo, hi)


def test_open_inputs_of_all_of_float64_are_counted() -> None:
    # Version 1 truncates values between -1.0 and 256.0 and leaves all others open.
    stairs = staircase(RULINGS["onnx-cast:1/float64/uint8"])
    not_open = 0x4070_0000_0000_0000 + 0x3FF0_0000_0000_0000
    assert staircase_grades.open_inputs(stairs, 0, 1 << 64) == (1 << 64) - not_open
    cuts = [0, 12_345, 1 << 62, (1 << 63) + 77, 1 << 64]
    parts = [staircase_grades.open_inputs(stairs, *cut) for cut in pairwise(cuts)]
    assert sum(parts) == (1 << 64) - not_open


@given(st.integers(0, 120), st.integers(0, 120), st.integers(0, 2))
@settings(deadline=None)
def test_open_steps_are_counted_anywhere_in_a_period(one: int, other: int, at: int) -> None:
    # No document has this today: an open step between others, and a last period cut short.
    steps = [Step(offset, 0, 7, 7, 0, 7, 7, 0) for offset in (0, 2, 5)]
    steps[at] = steps[at]._replace(low=0, high=255, other_low=0, other_high=255)
    parts = [(0, 9, 4, 0, 1), (10, 99, 3, 1, 4), (100, (1 << 16) - 1, 16, 4, 5)]
    rules = RULINGS["onnx-cast:1/float16/uint8"]
    steps = [steps[0], *steps, steps[0]]
    stairs = Staircase(rules, np.array(parts, STRETCH), np.array(steps, STEP))
    lo, hi = sorted((one, other))
    inputs = np.arange(lo, hi, dtype=np.uint16)
    graded = staircase_grades.grades(stairs, inputs, np.full(inputs.size, 8, np.uint8))
    assert staircase_grades.open_inputs(stairs, lo, hi) == np.count_nonzero(graded == OPEN)


@given(st.sampled_from(PICKED), st.data())
@settings(max_examples=150, deadline=None)
def test_all_inputs_of_one_step_are_allowed_the_same(name: str, data: st.DataObject) -> None:
    rules = RULINGS[name]
    stairs = staircase(rules)
    row = stairs.stretches[data.draw(st.integers(0, stairs.stretches.size - 1))]
    first = int(row["first"]) + data.draw(st.integers(0, int(row["last"] - row["first"])))
    last = min(rules.source.mask, first + data.draw(st.integers(0, 300)))
    inputs = np.arange(first, last + 1, dtype=np.uint64).astype(rules.source.storage)
    expected = expect_by_kernels.expect(rules, inputs)
    if staircase_grades.is_one_step(stairs, first, last):
        for column in (expected.places, expected.codes, expected.others):
            assert (column == column[0]).all()
    assert staircase_grades.is_one_step(stairs, first, first)


def test_one_step_ends_where_the_next_begins() -> None:
    # 65520 (0x477FF000) is the first value that overflows to infinity.
    stairs = staircase(RULINGS["onnx-cast:13/float32/float16"])
    assert staircase_grades.is_one_step(stairs, 0x4780_0001, 0x4780_0FFF)
    assert not staircase_grades.is_one_step(stairs, 0x477F_EFFF, 0x477F_F000)
    assert not staircase_grades.is_one_step(stairs, 0x3F80_0000, 0x3F80_2000)
    assert not staircase_grades.is_one_step(stairs, 0x7F7F_FFFF, 0x7F80_0000)
