"""The proof by exhaustion accepts right staircases, and finds one wrong step among thousands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")

from lab.proof.exhaustion import first_difference, prove
from oracles.reference import expect_by_kernels
from oracles.reference.staircase import Staircase, staircase
from oracles.reference.sweep_inputs import Dense, StepPatterns
from specs.branches import Ruling
from specs.ruling import ruling
from specs.selection import case_named

EVERY = Dense(1 << 16)
CASES = (
    "onnx-cast:1/float16/int8",
    "onnx-cast:19/bfloat16/float8e4m3fn/saturate:1",
    "onnx-cast:19/float16/float8e5m2fnuz/saturate:0",
    "onnx-cast:1/float16/float64",
    "onnx-cast:21/float16/int4",
    "pypto-cast:0.2/float16/int8/mode:CAST_CEIL/satmode:off",
)


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("name", CASES)
def test_a_right_staircase_is_proved_on_every_input(name: str) -> None:
    rules = ruling(case_named(name))
    proved = prove(name, staircase(rules), EVERY)
    assert (proved.verdict, proved.inputs) == ("proved", "65,536")


def planted(rules: Ruling, field: str, number: int) -> Staircase:
    """The staircase with the lowest bit of one field of one step flipped."""
    stairs = staircase(rules)
    steps = stairs.steps.copy()
    steps[field][number] ^= 1
    return replace(stairs, steps=steps)


@pytest.mark.parametrize("field", ["low", "other_low", "branch_index", "offset", "rise"])
@pytest.mark.parametrize("name", CASES[:3])
def test_a_wrong_step_is_a_counterexample(name: str, field: str) -> None:
    rules = ruling(case_named(name))
    stairs = staircase(rules)
    periods = (stairs.stretches["last"] - stairs.stretches["first"]) >> stairs.stretches["shift"]
    for number, stretch in enumerate(stairs.stretches):
        steps = stairs.steps_of(number)
        if periods[number] > 0 and steps.size > 1:
            found = prove(name, planted(rules, field, int(stretch["end"]) - 1), EVERY)
            assert found.verdict == "counterexample"
            assert found.found.startswith("0x")
            return
    pytest.fail("no stretch has several steps and several periods")


# Each pair of widths is compiled anew, so CI runs the one that the tests above use.
@pytest.mark.parametrize("field", ["low", "other_low", "branch_index", "rise", "other_rise"])
@pytest.mark.parametrize(
    "name",
    [
        "onnx-cast:25/int16/int8",
        pytest.param("onnx-cast:1/int8/float32", marks=pytest.mark.nightly),
        pytest.param("onnx-cast:1/int16/int64", marks=pytest.mark.nightly),
    ],
)
def test_a_wrong_slope_is_a_counterexample(name: str, field: str) -> None:
    rules = ruling(case_named(name))
    stairs = staircase(rules)
    slopes = [
        number
        for number, stretch in enumerate(stairs.stretches)
        if stretch["last"] - stretch["first"] >> stretch["shift"]
        and stairs.steps_of(number).size == 1
    ]
    for number in slopes:
        wrong = planted(rules, field, int(stairs.stretches[number]["begin"]))
        found = prove(name, wrong, EVERY)
        assert found.verdict == "counterexample"
    assert slopes


def test_first_difference_returns_the_index_of_the_first_wrong_answer() -> None:
    rules = ruling(case_named("onnx-cast:1/float16/int8"))
    inputs = np.arange(1 << 16, dtype=np.uint16)
    for wrong in (0, 1, 0x3C00, 0x4BFF):
        expected = expect_by_kernels.expect(rules, inputs)
        expected.codes[wrong] ^= 1
        assert first_difference(staircase(rules), inputs, expected) == wrong
        scattered = inputs[inputs % 3 == wrong % 3]
        index = first_difference(staircase(rules), scattered, expected.at(scattered))
        assert scattered[index] == wrong


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("size", [70_000, 1000, 1])
def test_wide_sources_are_compared_by_compiled_kernels(size: int) -> None:
    name = "onnx-cast:19/float64/float8e5m2/saturate:1"
    stairs = staircase(ruling(case_named(name)))
    assert prove(name, stairs, Dense(size)).verdict == "proved"
    wrong = replace(stairs, steps=stairs.steps.copy())
    wrong.steps["low"][0] ^= 1
    assert prove(name, wrong, Dense(size)).verdict == "counterexample"


def test_breakpoints_of_64_bit_sources_are_compared() -> None:
    name = "onnx-cast:19/float64/float8e5m2/saturate:1"
    rules = ruling(case_named(name))
    steps = StepPatterns([rules])
    proved = prove(name, staircase(rules), steps)
    assert (proved.verdict, proved.inputs) == ("proved", f"{steps.size:,}")
    middle = int(np.flatnonzero(staircase(rules).steps["rise"])[40])
    assert prove(name, planted(rules, "offset", middle), steps).verdict == "counterexample"
