"""Staircase lookup finds the step of each input, and counts the open inputs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.expect_by_staircase import branch_indices_of, last_of_step, open_inputs
from oracles.reference.staircase import STEP, STRETCH, Staircase, Step, staircase
from reports.grading.staircase_grades import compare_with_steps
from specs.branches import Ruling
from tests.reference.distinct import numeric_rulings
from tests.search import examples

RULINGS = numeric_rulings()


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("name", [*RULINGS][::34])
def test_branches_are_those_of_the_kernels(name: str) -> None:
    rules = RULINGS[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, 0, 1_000)
    branch_indices = branch_indices_of(staircase(rules), inputs)
    assert np.array_equal(branch_indices, expect_by_kernels.expect(rules, inputs).branch_indices)
    assert branch_indices_of(staircase(rules), inputs[:0]).size == 0


def count_open(rules: Ruling, lo: int, hi: int) -> int:
    """Count the open inputs of a range by looking at each."""
    inputs = np.arange(lo, hi, dtype=np.uint64).astype(rules.source.storage)
    expected = expect_by_kernels.expect(rules, inputs)
    return int(np.isin(expected.branch_indices, rules.open_branches).sum())


NARROW_OPEN = [n for n, r in RULINGS.items() if r.open_branches and r.source.bits <= 16]
WIDE_OPEN = [n for n, r in RULINGS.items() if r.open_branches and r.source.bits > 16]


@given(st.data())
@examples(60)
def test_open_inputs_of_a_narrow_source_are_counted(data: st.DataObject) -> None:
    rules = RULINGS[data.draw(st.sampled_from(NARROW_OPEN))]
    end = rules.source.mask + 1
    ends = st.integers(0, end) | st.sampled_from([0, end, rules.source.sign_bit])
    lo, hi = sorted((data.draw(ends), data.draw(ends)))
    assert open_inputs(staircase(rules), lo, hi) == count_open(rules, lo, hi)


@given(st.data())
@examples(60)
def test_open_inputs_of_a_wide_source_are_counted(data: st.DataObject) -> None:
    rules = RULINGS[data.draw(st.sampled_from(WIDE_OPEN))]
    stairs = staircase(rules)
    row = stairs.stretches[data.draw(st.integers(0, stairs.stretches.size - 1))]
    near = int(row[data.draw(st.sampled_from(["first", "last"]))])
    lo = max(0, near - data.draw(st.integers(0, 5_000)))
    hi = min(rules.source.mask + 1, near + data.draw(st.integers(0, 5_000)))
    assert open_inputs(stairs, lo, hi) == count_open(rules, lo, hi)


def test_open_inputs_of_all_of_float64_are_counted() -> None:
    # Version 1 truncates values between -1.0 and 256.0 and leaves all others open.
    stairs = staircase(RULINGS["onnx-cast:1/float64/uint8"])
    not_open = 0x4070_0000_0000_0000 + 0x3FF0_0000_0000_0000
    assert open_inputs(stairs, 0, 1 << 64) == (1 << 64) - not_open
    cuts = [0, 12_345, 1 << 62, (1 << 63) + 77, 1 << 64]
    parts = [open_inputs(stairs, *cut) for cut in pairwise(cuts)]
    assert sum(parts) == (1 << 64) - not_open


@given(st.integers(0, 120), st.integers(0, 120), st.integers(0, 2))
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
    outside, _ = compare_with_steps(stairs, inputs, np.full(inputs.size, 8, np.uint8))
    assert open_inputs(stairs, lo, hi) == np.count_nonzero(~outside)


@given(st.sampled_from([*RULINGS]), st.data())
@examples(60)
def test_all_inputs_of_one_step_are_allowed_the_same(name: str, data: st.DataObject) -> None:
    rules = RULINGS[name]
    stairs = staircase(rules)
    row = stairs.stretches[data.draw(st.integers(0, stairs.stretches.size - 1))]
    first = int(row["first"]) + data.draw(st.integers(0, int(row["last"] - row["first"])))
    last = min(rules.source.mask, first + data.draw(st.integers(0, 300)))
    inputs = np.arange(first, last + 1, dtype=np.uint64).astype(rules.source.storage)
    expected = expect_by_kernels.expect(rules, inputs)
    if last <= last_of_step(stairs, first):
        for column in (expected.branch_indices, expected.codes, expected.others):
            assert (column == column[0]).all()
    assert first <= last_of_step(stairs, first) <= int(row["last"])


def test_one_step_ends_where_the_next_begins() -> None:
    # 65520 (0x477FF000) is the first value that overflows to infinity.
    stairs = staircase(RULINGS["onnx-cast:13/float32/float16"])
    assert last_of_step(stairs, 0x4780_0001) == 0x47FF_FFFF
    assert last_of_step(stairs, 0x477F_EFFF) == 0x477F_EFFF
    assert last_of_step(stairs, 0x477F_F000) == 0x477F_F000
    assert last_of_step(stairs, 0x3F80_0000) == 0x3F80_0000
    assert last_of_step(stairs, 0x3F80_0001) == 0x3F80_1000
    assert last_of_step(stairs, 0x3F80_1001) == 0x3F80_1FFF
