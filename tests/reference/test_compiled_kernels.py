"""Compiled kernels compute what the kernels compute on arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.compiled_kernels import compiled, program
from oracles.reference.expectations import Expected
from specs.branches import Branch
from specs.outcomes import Value
from tests.reference.distinct import numeric_rulings

RULINGS = {name: rules for name, rules in numeric_rulings().items() if not rules.is_open}
SPREAD = [*RULINGS][:: len(RULINGS) // 24]
PICKED = [
    "onnx-cast:13/float32/float16",
    "onnx-cast:13/float64/float32",
    "onnx-cast:21/float32/int4",
    "onnx-cast:13/int64/float32",
    "onnx-cast:19/float32/float8e4m3fnuz/saturate:1",
    "onnx-cast:24/float32/float8e8m0/saturate:0/round_mode:up",
    "pypto-cast:seed/float32/float16/mode:CAST_ODD",
    "pypto-cast:0.2/float16/int8/mode:CAST_RINT/satmode:off",
]
SEED = 20_261_121
SOME = pytest.mark.ci_runs_one_of(16)
"""Compiling takes seconds per ruling."""

pytest.importorskip("numba", reason="compiling needs the extra `fast`")


def same(left: Expected, right: Expected) -> bool:
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        and getattr(left, name).dtype == getattr(right, name).dtype
        for name in ("branch_indices", "codes", "others")
    )


@SOME
@pytest.mark.parametrize("name", [*PICKED, *SPREAD])
def test_compiled_kernels_agree_on_breakpoints_and_random_patterns(name: str) -> None:
    rules = RULINGS[name]
    inputs = quick_inputs(rules.source.name, rules.target.name, SEED, 20_000)
    assert same(compiled(rules).expect(inputs), expect_by_kernels.expect(rules, inputs))


@SOME
@pytest.mark.parametrize("name", PICKED)
def test_compiled_kernels_agree_on_consecutive_patterns_at_both_ends(name: str) -> None:
    rules = RULINGS[name]
    count = min(10_000, rules.source.mask + 1)
    kernels = compiled(rules)
    for first in (0, rules.source.mask + 1 - count):
        result = kernels.allocate(count)
        kernels.consecutive(np.uint64(first), result.branch_indices, result.codes, result.others)
        inputs = (np.arange(count, dtype=np.uint64) + np.uint64(first)).astype(rules.source.storage)
        assert same(result, expect_by_kernels.expect(rules, inputs))


def test_a_program_contains_only_the_operations_that_it_needs() -> None:
    text = program(RULINGS["onnx-cast:1/float32/bool"])
    assert ">>" not in text or "<<" not in text
    assert len(text) < len(program(RULINGS["onnx-cast:13/float32/float16"]))


def test_no_integer_is_subnormal() -> None:
    # No document has a rule about the underflow of integers today.
    rules = RULINGS["onnx-cast:21/float32/int4"]
    classes = ("underflow", "otherwise")
    branches = tuple(Branch(each, Value(), "required", "", "") for each in classes)
    inputs = np.array([0x3F00_0000, 0x3F80_0000, 0x4000_0000], np.uint32)  # 0.5, 1, 2
    found = compiled(replace(rules, branches=branches)).expect(inputs)
    assert found.branch_indices.tolist() == [0, 1, 1]
