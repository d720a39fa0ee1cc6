"""Planted faults of carriers are found, named, and told by their step; errors are exact."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.carriers.bias import errors
from conformance.families.carriers.faulty_step import FaultyStep
from conformance.families.carriers.steps import faulty_step
from conformance.families.cast.baseline import GradedAnswers
from oracles.reference import exact
from reports.grading.allowed_answers import ALLOWED, NOT_ALLOWED, is_nan
from reports.problem_words import words
from reports.problems import decode_problem, problem_json
from specs.cases import Case
from specs.formats import Format, format_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance.families.carriers.planted import (
    DOCUMENT,
    FAULTS,
    THREADS,
    behaving,
    carried,
    findings,
    registered,
    stores,
)
from tests.conformance.feeding import answering, feed, judged, planted


@pytest.fixture(autouse=True, scope="module")
def known_document() -> Iterator[None]:
    with registered():
        yield


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_with_its_step(fault: str, tmp_path: Path) -> None:
    found = findings(tmp_path, FAULTS[fault].answer)
    assert FAULTS[fault].wants in [each.name for each in found], [each.says for each in found]


def test_a_right_carrier_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, carried()) == ()


def test_each_thread_has_a_fault() -> None:
    assert {*THREADS.values()} <= {*FAULTS}
    assert len(THREADS) == 24


def test_a_truncating_store_says_how_far_it_is_off(tmp_path: Path) -> None:
    [found] = findings(tmp_path, stores("bfloat16", behaving("truncate-infinity")))
    assert found.says == (
        "rounds toward zero, in the store of add-out, autocast-matmul, copy-after-flush and 3 more;"
        " magnitudes are 0.501 units of the last place too small on average of 65,279 inputs"
    )


def test_an_unexplained_fault_has_an_operation_and_a_mean_error(tmp_path: Path) -> None:
    fault = FAULTS["a division multiplies by the reciprocal"]
    [found] = findings(tmp_path, fault.answer)
    assert found.says == (
        "gives wrong values that no closed form explains, in the operation of"
        " divide-product-by-255; magnitudes are 0.9909 units of the last place too large on"
        " average of 63,488 inputs"
    )


def test_quiet_nans_and_one_nan_for_all_are_two_findings(tmp_path: Path) -> None:
    def finish(case: Case, loaded: Any, answers: Any) -> Any:
        source = format_named(case.source)
        if source.kind != "float" or case.mode["carrier"] not in ("concatenate", "index-put"):
            return answers
        quiet = loaded.dtype.type(1 << source.entry.mantissa - 1)
        other = answers | quiet if case.mode["carrier"] == "concatenate" else ~(answers & 0)
        return np.where(is_nan(source, loaded), other, answers)

    found = findings(tmp_path, carried(finish=finish))
    assert {each.name for each in found} == {"quiets-nans-in-operation", "nan-payload-in-operation"}


CASE = f"{DOCUMENT}:1/float32/float32/carrier:multiply-by-one"


def step_of(**wrong: bool) -> FaultyStep:
    """The step that is found if second carriers are wrong: of the load, the store or the pair."""
    case = case_named(CASE)
    inputs = np.array([0x3F800000, 0x3F800001], np.uint32)

    def answer(asked: Case, bits: Any) -> Any:
        kind = "pair"
        if (asked.source, asked.target) != ("float32", "float32"):
            kind = "load" if asked.source == "float32" else "store"
        right = carried()(asked, bits)
        return right ^ right.dtype.type(1) if wrong.get(kind) else right

    grades = np.array([NOT_ALLOWED, ALLOWED], np.uint8)
    graded = GradedAnswers(inputs, inputs ^ 1, grades, np.zeros(2, np.uint8))
    return feed(faulty_step(planted(), case, graded), answering(carry=answer, cast=answer))


@pytest.mark.parametrize(
    ("wrong", "step"),
    [
        ({}, "operation"),
        ({"load": True}, "operation"),
        ({"pair": True, "load": True}, "load"),
        ({"pair": True, "store": True}, "store"),
        ({"pair": True, "load": True, "store": True}, "load or store"),
    ],
)
def test_second_carriers_tell_the_step(wrong: dict[str, bool], step: str) -> None:
    assert step_of(**wrong).step == step


def test_second_carriers_that_may_answer_anything_tell_nothing() -> None:
    case = case_named("numpy-carriers:2.4/float64/int32/carrier:set-items")
    nan = np.array([0x7FF8 << 48], np.uint64)
    grades = np.array([NOT_ALLOWED], np.uint8)
    graded = GradedAnswers(nan, np.zeros(1, np.uint32), grades, np.zeros(1, np.uint8))
    right = answering(carry=carried(), cast=carried())
    found = feed(faulty_step(planted(), case, graded), right)
    assert (found.step, found.also, found.right) == ("", (), ())


def test_the_words_name_few_carriers() -> None:
    step = FaultyStep("store", ("a", "b", "c", "d"), ("e",), -0.5, 65536)
    assert words(step) == (
        "its store is at fault; a, b, c and 1 more too; not e; magnitudes are 0.5 units of the"
        " last place too small on average of 65,536 inputs"
    )


def test_the_problem_of_a_stored_run_is_read() -> None:
    stored = {
        "problem": "FaultyStep",
        "step": "load or store",
        "also": ["a", "b"],
        "right": [],
        "bias": 0.25,
        "inputs": 16,
    }
    step = FaultyStep("load or store", ("a", "b"), (), 0.25, 16)
    assert decode_problem(stored) == step
    assert decode_problem(problem_json(step)) == step
    assert {**problem_json(step), "also": ["a", "b"], "right": []} == stored
    assert step.name_end == "-in-load-or-store"
    with pytest.raises(LookupError):
        decode_problem(stored | {"problem": "FaultySteps"})


def by_fractions(source: Format, target: Format, given: int, got: int) -> Fraction | None:
    """The error of one answer by rational arithmetic, in units of the target's last place."""
    one, other = exact.decode(source, given), exact.decode(target, got)
    if not (isinstance(one, exact.Number) and isinstance(other, exact.Number)):
        return None
    x, y = (each.significand * Fraction(2) ** each.exponent for each in (one, other))
    if x > exact.limits(target)[0].significand * Fraction(2) ** exact.limits(target)[0].exponent:
        return None
    unit = target.lowest_exponent - target.entry.mantissa
    if x:
        top = x.numerator.bit_length() - x.denominator.bit_length()
        top -= Fraction(2) ** top > x
        unit = max(unit, top - target.entry.mantissa)
    return (y - x) / Fraction(2) ** unit


@pytest.mark.parametrize(
    ("source", "target"),
    [("float16", "bfloat16"), ("bfloat16", "float16"), ("float32", "bfloat16"),
     ("float64", "float32"), ("int32", "float32")],
)  # fmt: skip
def test_errors_are_those_of_rational_arithmetic(source: str, target: str) -> None:
    one, other = format_named(source), format_named(target)
    chance = np.random.default_rng(7)
    inputs = chance.integers(0, one.mask, 3000, dtype=np.uint64, endpoint=True).astype(one.storage)
    case = Case("", "", source, target)
    answers = behaving("truncate-infinity")(case, inputs, np.zeros(inputs.size, other.storage))
    wanted = [
        found
        for given, got in zip(inputs.tolist(), answers.tolist(), strict=True)
        if (found := by_fractions(one, other, given, got)) is not None
    ]
    assert errors(one, other, inputs, answers).tolist() == [float(each) for each in wanted]


def test_a_carrier_is_ruled_input_by_input() -> None:
    rules = ruling(case_named(CASE))
    assert [(each.rule, each.input_class) for each in rules.branches] == [
        ("computed", name) for name in ("nan", "inf", "-inf", "-zero", "otherwise")
    ]


@pytest.mark.parametrize(
    ("claims", "asked_for", "asked"),
    [(None, (), 1), ((), (), 0), ((), (DOCUMENT,), 7)],
)
def test_a_night_asks_a_seventh_of_what_is_claimed(
    claims: tuple[str, ...] | None, asked_for: tuple[str, ...], asked: int
) -> None:
    """Of seven seeds, one asks a claimed carrier, none another's, and all a named one."""
    case, right = case_named(CASE), answering(carry=carried(), cast=carried())
    found = [
        judged(
            CASE,
            right,
            planted(claims, seed=seed, has_turns=True, asked_for=frozenset(asked_for)),
        ).verdict
        for seed in range(7)
    ]
    assert case.document == DOCUMENT
    assert 7 - found.count("not-run") == asked
