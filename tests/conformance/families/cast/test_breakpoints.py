"""Every step of every staircase starts at or next to one of the breakpoints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from conformance.families.cast.breakpoints import breakpoints, ties
from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference import expect_by_kernels
from oracles.reference.exact import Number, decode
from specs.formats import Format, formats
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


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", SIXTEEN_BITS)
def test_every_step_of_a_16_bit_source_is_at_a_breakpoint(name: str) -> None:
    rules = numeric_rulings()[name]
    source, target = rules.source, rules.target
    inputs = np.arange(1 << 16, dtype=source.storage)
    expected = expect_by_kernels.expect(rules, inputs)
    changes = (expected.codes[1:] != expected.codes[:-1]) | (
        expected.branch_indices[1:] != expected.branch_indices[:-1]
    )
    near = breakpoints(source, target, np.arange(target.max_code + 1))
    known = set(near.tolist()) | kind_boundaries(source)
    if target == source:  # a ruling may require that each NaN keeps its pattern
        known |= {code for nans in source.nans("any") for code in nans}
    steps = np.flatnonzero(changes).tolist()
    assert [code for code in steps if code not in known or code + 1 not in known] == []


def by_definition(source: Format, target: Format, codes: list[int]) -> list[int]:
    """Breakpoints by exact arithmetic on fractions, one value after the other."""
    points = []
    for code in codes:
        value = exact_value(target, code)
        above = value_above(target, code)
        points += [value, (value + above) / 2, *([above] if code == target.max_code else [])]
        if code == target.max_code and target.is_integral and target.is_signed and target.bits < 64:
            points += [above + Fraction(1, 2), above + 1]  # where the step of the lowest one ends
    near = {0, 1}
    for point in points:
        if not 0 < point <= exact_value(source, source.max_code):
            continue
        first, last = 0, source.max_code  # the largest pattern whose value is not above the point
        while first < last:
            middle = (first + last + 1) // 2
            if exact_value(source, middle) <= point:
                first = middle
            else:
                last = middle - 1
        if first:
            near |= {first - 1, first, first + 1}
    inside = {code for code in near if code <= source.max_code}
    if not (source.is_signed and target.is_signed):
        return sorted(inside)
    negative = {
        -code & source.mask if source.is_integral else code | source.sign_bit for code in inside
    }
    return sorted(inside | negative)


def exact_value(dtype: Format, code: int) -> Fraction:
    """The value of a non-negative finite pattern."""
    number = decode(dtype, code)
    assert isinstance(number, Number)
    return Fraction(number.significand) * Fraction(2) ** number.exponent


def value_above(dtype: Format, code: int) -> Fraction:
    """The value of the next pattern, as if the format had no end."""
    if code < dtype.max_code:
        return exact_value(dtype, code + 1)
    if dtype.kind == "float" and dtype.entry.mantissa == 0:
        return 2 * exact_value(dtype, code)
    return 2 * exact_value(dtype, code) - exact_value(dtype, code - 1)


WIDE = [dtype for dtype in formats().values() if dtype.is_numeric and dtype.kind != "complex"]


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("source", WIDE, ids=lambda dtype: dtype.name)
def test_breakpoints_are_those_of_the_definition(source: Format) -> None:
    for target in WIDE:
        fields = [1 << place for place in range(target.bits)]
        near = {step + edge for edge in (0, *fields, target.max_code) for step in (-1, 0, 1)}
        codes = sorted(code for code in near if 0 <= code <= target.max_code)[::3]
        codes = sorted({*codes, 0, 1, target.max_code - 1, target.max_code} - {-1})
        assert breakpoints(source, target, codes).tolist() == by_definition(source, target, codes)


def test_quick_inputs_of_a_wide_source_hold_both_sides_of_a_tie() -> None:
    inputs = set(quick_inputs("float32", "float16", 0, 0).tolist())
    assert {0x3F800FFF, 0x3F801000, 0x3F801001} <= inputs
    assert {0x477FEFFF, 0x477FF000, 0x477FF001} <= inputs  # 65520, where float16 overflows
    assert {0xC77FEFFF, 0xC77FF000, 0xC77FF001} <= inputs


def test_each_bit_below_a_tie_decides_alone_in_some_input_of_a_swept_source() -> None:
    inputs = quick_inputs("float32", "float16", 0, 0)
    for place in range(12):
        assert (inputs & 0x1FFF == 0x1000 | 1 << place).any(), place


@pytest.mark.parametrize("target", ["bfloat16", "int8", "float16"])
def test_quick_inputs_hold_values_as_data_has_them(target: str) -> None:
    inputs = quick_inputs("float32", target, 0, 0)
    known = set(inputs.tolist())
    integers = np.arange(-256, 257).astype(np.float32).view(np.uint32)
    assert {*integers.tolist()} - {0x80000000} <= known
    powers = np.float32(1.5) * np.float32(2) ** np.arange(-126, 128, dtype=np.float32)
    assert {*powers.astype(np.float32).view(np.uint32).tolist()} <= known
    assert np.count_nonzero(inputs & 0xFFFF == 0) > 500  # values of bfloat16


def test_quick_inputs_depend_on_the_seed_only() -> None:
    first = quick_inputs("int64", "float32", 1, 500).copy()
    quick_inputs.cache_clear()
    assert np.array_equal(first, quick_inputs("int64", "float32", 1, 500))
    assert not np.array_equal(first, quick_inputs("int64", "float32", 2, 500))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float16", "float8e5m2"),
        ("float16", "int8"),
        ("float16", "float8e4m3fnuz"),
        ("int16", "float8e4m3fn"),
    ],
)
def test_a_tie_is_the_source_value_halfway_between_two_target_values(
    source: str, target: str
) -> None:
    form, narrow = formats()[source], formats()[target]
    values = {code: decode(narrow, code) for code in range(narrow.max_code + 1)}
    halves = {
        (_fraction(values[code]) + _fraction(values[code + 1])) / 2
        for code in range(narrow.max_code)
    }
    halfway = {
        code
        for code in range(form.max_code + 1)
        if isinstance(number := decode(form, code), Number) and _fraction(number) in halves
    }
    assert set(ties(form, narrow, np.arange(narrow.max_code)).tolist()) == halfway != set()


def _fraction(number: object) -> Fraction:
    assert isinstance(number, Number)
    return Fraction(number.significand) * Fraction(2) ** number.exponent
