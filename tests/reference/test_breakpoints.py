"""Every step of every staircase starts at or next to one of the breakpoints."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.judging.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.breakpoints import breakpoints
from specs.formats import Format
from tests.reference.distinct import numeric_rulings

SIXTEEN_BITS = [
    name
    for name, rules in numeric_rulings().items()
    if rules.source.bits == 16
    and rules.target.bits <= 16
    and rules.target.kind == "float"
    and rules.source.kind == "float"
]


def kind_boundaries(source: Format) -> set[int]:
    """Patterns next to zero, infinity and the first NaN, in both signs."""
    edges = {0, source.max_code, source.infinity_code, source.infinity_code + 1}
    edges |= {code | source.sign_bit for code in edges} | {source.sign_bit - 1}
    return {code + step for code in edges for step in (-1, 0, 1)}


@pytest.mark.parametrize("name", SIXTEEN_BITS)
def test_every_step_of_a_16_bit_source_is_at_a_breakpoint(name: str) -> None:
    rules = numeric_rulings()[name]
    source, target = rules.source, rules.target
    inputs = np.arange(1 << 16, dtype=source.storage)
    expected = expect_by_kernels.expect(rules, inputs)
    changes = (expected.codes[1:] != expected.codes[:-1]) | (
        expected.branch_indices[1:] != expected.branch_indices[:-1]
    )
    known = set(breakpoints(source, target, range(target.max_code + 1))) | kind_boundaries(source)
    if target == source:  # a ruling may require that each NaN keeps its pattern
        known |= {code for nans in source.nans("any") for code in nans}
    steps = np.flatnonzero(changes).tolist()
    assert [code for code in steps if code not in known or code + 1 not in known] == []


def test_quick_inputs_of_a_wide_source_hold_both_sides_of_a_tie() -> None:
    inputs = set(quick_inputs("float32", "float16", 0, 0).tolist())
    assert {0x3F800FFF, 0x3F801000, 0x3F801001} <= inputs
    assert {0x477FEFFF, 0x477FF000, 0x477FF001} <= inputs  # 65520, where float16 overflows
    assert {0xC77FEFFF, 0xC77FF000, 0xC77FF001} <= inputs


def test_quick_inputs_depend_on_the_seed_only() -> None:
    first = quick_inputs("int64", "float32", 1, 500).copy()
    quick_inputs.cache_clear()
    assert np.array_equal(first, quick_inputs("int64", "float32", 1, 500))
    assert not np.array_equal(first, quick_inputs("int64", "float32", 2, 500))
