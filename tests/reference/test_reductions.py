"""Rounding through another float and back: all ways to compute it agree around every half ulp."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import breakpoints
from conformance.families.cast.quick_inputs import inputs_of
from oracles.reference import expect_by_exact, expect_by_kernels, expect_by_staircase, staircase
from oracles.reference.compiled_kernels import compiled
from oracles.reference.expectations import Expected
from specs.behaviors import reductions
from specs.branches import Ruling
from specs.cases import Case
from specs.outcomes import Anything, Nan
from specs.ruling import ruling
from specs.selection import select
from tests.reference.distinct import numeric_rulings

CASES = {
    case.id: case
    for case in select(["stablehlo-reduce-precision"])
    if case.example is None and ruling(case).on_the_way
}
STRIDE = 11
"""One of this many values of a wide middle format is compared, with the midpoint after it."""


def near_half_ulps(rules: Ruling) -> NDArray[np.uint64]:
    """The inputs at, below and above values and midpoints of the formats on the way."""
    source = rules.source
    if source.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    found = []
    for way in rules.on_the_way:
        values = np.arange(way.max_code + 1 if way.bits <= 16 else 1 << 12, dtype=np.uint64)
        edges = [way.max_code, way.max_code - 1, *(way.infinity_code - each for each in range(40))]
        picked = values if way.bits == 8 else values[::STRIDE]
        normal = np.uint64(1 << way.entry.mantissa)
        picked = np.concatenate([picked, np.array(edges, np.uint64), normal + values[:3] - 1])
        picked = picked[picked <= way.max_code]
        found.append(breakpoints(source, way, np.unique(picked)))
        # Also where values begin to round up to the smallest normal one if exponents go on below.
        small = way.lowest_exponent - way.precision - 1
        edge = np.float64((2.0 ** (way.precision + 1) - 1) * 2.0**small)
        width = np.float64 if source.bits == 64 else np.float32
        code = int(np.array([edge], width).view(source.storage)[0])
        around = [code + step for step in range(-3, 4)]
        found.append(np.array([*around, *(each | source.sign_bit for each in around)], np.uint64))
    return np.unique(np.concatenate(found)).astype(source.storage)


def assert_equal(rules: Ruling, inputs: NDArray[np.uint64], one: Expected, two: Expected) -> None:
    named = np.array([not isinstance(branch.outcome, Nan | Anything) for branch in rules.branches])[
        one.branch_indices
    ]
    for name in ("branch_indices", "codes", "others"):
        differs = getattr(one, name) != getattr(two, name)
        if name != "branch_indices":
            differs &= named
        assert not differs.any(), (name, hex(inputs[np.flatnonzero(differs)[0]]))


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize("name", CASES)
def test_definition_kernels_and_staircase_agree(name: str) -> None:
    rules = ruling(CASES[name])
    inputs = near_half_ulps(rules)
    assert inputs.size > 200
    by_kernels = expect_by_kernels.expect(rules, inputs)
    assert_equal(rules, inputs, by_kernels, expect_by_staircase.expect(rules, inputs))
    few = inputs[:: max(1, inputs.size // 1_000)]
    some = by_kernels.at(np.searchsorted(inputs, few))
    assert_equal(rules, few, some, expect_by_exact.expect(rules, few))


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", [*CASES][::-6])
def test_compiled_kernels_agree(name: str) -> None:
    rules = ruling(CASES[name])
    inputs = near_half_ulps(rules)
    found = compiled(rules).expect(inputs)
    assert_equal(rules, inputs, expect_by_kernels.expect(rules, inputs), found)


def test_a_staircase_without_the_ends_of_tiny_values_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = ruling(CASES["stablehlo-reduce-precision:1.20/float32/float32/bits:e5m10"])
    inputs = near_half_ulps(rules)
    monkeypatch.setattr(staircase, "_ends_of_tiny", lambda way: iter(()))
    staircase.stretches.cache_clear()
    staircase.staircase.cache_clear()
    try:
        with pytest.raises(AssertionError):
            assert_equal(
                rules,
                inputs,
                expect_by_kernels.expect(rules, inputs),
                expect_by_staircase.expect(rules, inputs),
            )
    finally:
        staircase.stretches.cache_clear()
        staircase.staircase.cache_clear()


def edge_case() -> Case:
    return CASES["stablehlo-reduce-precision:1.20/float64/float64/bits:e5m10"]


def test_the_quick_inputs_of_a_reduction_are_those_of_a_cast_there_and_the_edge_of_zero() -> None:
    rules = ruling(edge_case())
    inputs = inputs_of(edge_case(), rules, 0, 10)
    edge = np.array([2.0**-14 - 2.0**-26]).view(np.uint64)[0]
    tie = np.array([1 + 2.0**-11]).view(np.uint64)[0]
    for code in (edge - 1, edge, tie - 1, tie, tie + 1):
        assert code in inputs, hex(code)


def test_every_reduction_of_a_document_is_compared() -> None:
    used = {
        name
        for name, rules in numeric_rulings().items()
        if any(each.kind == "float" for each in rules.on_the_way)
    }
    assert used == set(CASES)
    assert {f"via-{way.name}" for case in CASES.values() for way in ruling(case).on_the_way} <= (
        reductions().keys()
    )
