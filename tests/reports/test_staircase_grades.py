"""Grades by staircases equal the quick tier's comparison, in numpy and in numba."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.expectations import Expected, has_branch
from oracles.reference.staircase import Staircase, staircase
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    NOT_RECOMMENDED,
    Grades,
    grade_answers,
)
from reports.grading.chunk_comparison import chunk_comparison
from reports.grading.staircase_grades import grade_by_staircase
from specs.branches import Ruling
from specs.outcomes import Anything, Either, Exactly, Nan
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
RECOMMENDING = [
    name
    for name, rules in RULINGS.items()
    if rules.source.kind == "float" and any(branch.recommended for branch in rules.branches)
]
SPREAD = {
    *RECOMMENDING[::9],
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
    size = expected.branch_indices.size
    second = chance.random(size) < 0.5
    answers = np.where(second, expected.others, expected.codes).astype(np.uint64)
    for branch_index, branch in enumerate(rules.branches):
        here = expected.branch_indices == branch_index
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
) -> Grades:
    """The grades by the quick tier's comparison; answers beyond the target are not allowed."""
    grades = grade_answers(rules, inputs, expected, answers)
    return np.where(answers > rules.target.mask, NOT_ALLOWED, grades)


def flipped(
    answers: NDArray[np.uint64], bits: int, chance: np.random.Generator
) -> NDArray[np.uint64]:
    """The answers with a random bit flipped in about half of them."""
    bit = chance.integers(0, bits, answers.size, np.uint64)
    return answers ^ ((np.uint64(1) << bit) * (chance.random(answers.size) < 0.5))


def compare_in_64_bits(
    stairs: Staircase, inputs: NDArray[Any], answers: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compare by numba without compiling for the widths of a ruling."""
    compare = chunk_comparison(compiled=True).compare_with_steps
    return compare(stairs, inputs.astype(np.uint64), answers.astype(np.uint64))


# Compiling takes a second for each pair of widths, which matter only where elements are loaded.
@pytest.fixture(params=["numpy", "numba-64", pytest.param("numba", marks=pytest.mark.nightly)])
def graded(request: pytest.FixtureRequest) -> Any:
    if request.param == "numpy":
        return grade_by_staircase
    pytest.importorskip("numba", reason="needs numba (the extra `fast`)")
    in_own_widths = chunk_comparison(compiled=True).compare_with_steps
    compare = in_own_widths if request.param == "numba" else compare_in_64_bits
    return partial(grade_by_staircase, compare=compare)


@pytest.mark.ci_runs_one_of(40)
@pytest.mark.parametrize("name", PICKED)
def test_grades_are_those_of_the_quick_tier(name: str, graded: Any) -> None:
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
        of_quick_tier = expected_grades(rules, inputs, expected, answers.astype(storage))
        grades, branch_indices = graded(stairs, inputs, answers.astype(storage))
        assert grades.dtype == np.uint8
        assert np.array_equal(grades, of_quick_tier)
        assert np.array_equal(branch_indices, expected.branch_indices)
        if answers is right:
            refused = has_branch(expected.branch_indices, rules.refused_branches)
            assert np.array_equal(grades, np.where(refused, NOT_ALLOWED, ALLOWED))


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("name", PICKED[::4])
def test_an_answers_grade_does_not_depend_on_the_other_inputs(name: str, graded: Any) -> None:
    rules, chance = RULINGS[name], np.random.default_rng(SEED)
    stairs, inputs = staircase(rules), some_inputs(rules)
    answers = chance.integers(0, rules.target.mask, inputs.size, np.uint64, endpoint=True)
    answers = answers.astype(rules.target.storage)
    whole, _ = graded(stairs, inputs, answers)
    selection = np.flatnonzero(chance.random(inputs.size) < 0.1)
    for where in (selection, selection[:1], selection[:0], slice(-3, None)):
        grades, _ = graded(stairs, inputs[where], answers[where])
        assert np.array_equal(grades, whole[where])


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("name", RECOMMENDING[::9])
def test_an_answer_that_is_allowed_but_not_recommended(name: str, graded: Any) -> None:
    rules = RULINGS[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, 1_000)
    expected = expect_by_kernels.expect(rules, inputs)
    answers = right_answers(rules, expected, np.random.default_rng(SEED))
    worse = np.zeros(inputs.size, bool)
    for index, branch in enumerate(rules.branches):
        match branch.outcome, branch.recommended:
            case Nan(), Nan(sign=sign):
                code = rules.target.nans("+" if sign == "-" else "-")[0][-1]
            case Either(options=options), Exactly() as recommended:
                code = next(each.code for each in options if each != recommended)
            case _:
                continue
        here = expected.branch_indices == index
        answers[here], worse[here] = code, True
    grades, _ = graded(staircase(rules), inputs, answers.astype(rules.target.storage))
    assert worse.any()
    assert np.array_equal(grades, np.where(worse, NOT_RECOMMENDED, ALLOWED))


def test_the_selected_rulings_are_of_every_kind() -> None:
    picked = [RULINGS[name] for name in PICKED]
    assert any(rules.is_open for rules in picked)
    assert any(has(rules, Either) for rules in picked)
    assert any(has(rules, Nan) and not rules.target.has_signed_nan for rules in picked)
    assert {rules.target.bits for rules in picked} == {1, 2, 4, 6, 8, 16, 32, 64}
    assert {rules.source.bits for rules in picked} >= {4, 8, 16, 32, 64}
    assert len(WITH_FRACTIONS) > 9
