"""`pair: exact` and `pair: rounds`, checked against every value of every narrow format."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from specs.formats import Format, format_named, formats, is_exact, rounds, value_of

NUMERIC = [fmt for fmt in formats().values() if fmt.is_numeric]
ENUMERABLE = [
    pytest.param(fmt, id=fmt.name, marks=[pytest.mark.nightly] * (fmt.bits > 8))
    for fmt in NUMERIC
    if fmt.bits <= 16
]
"""The conditions of a pair do not distinguish 16 bits from 8, which have fewer values."""


@cache
def values(fmt: Format) -> frozenset[Fraction]:
    """Every finite value of a format that can be enumerated."""
    not_finite = {code for codes in fmt.nan_codes for code in codes}
    if fmt.entry.infinity:
        not_finite |= {fmt.infinity_code, fmt.infinity_code | fmt.sign_bit}
    return frozenset(value_of(fmt, code) for code in range(fmt.mask + 1) if code not in not_finite)


def has_value(target: Format, value: Fraction) -> bool:
    """Whether a format of any width has a value, provided that the value is in its range."""
    if target.bits <= 8:
        return value in values(target)
    if target.is_integral or not value:
        return value.denominator == 1
    top = abs(value.numerator).bit_length() - value.denominator.bit_length()
    leading = top if abs(value) >= Fraction(2) ** top else top - 1
    unit = Fraction(2) ** (max(leading, target.lowest_exponent) - target.entry.mantissa)
    return (value / unit).denominator == 1


@pytest.mark.parametrize("source", ENUMERABLE)
def test_exact_means_that_the_target_has_every_value(source: Format) -> None:
    for target in NUMERIC:
        low, high = (value_of(target, code) for code in (target.lowest_code, target.max_code))
        every = all(low <= value <= high and has_value(target, value) for value in values(source))
        assert is_exact(source, target) == every, target.name


@pytest.mark.parametrize("source", ENUMERABLE)
def test_rounds_means_that_the_target_lacks_a_value_in_its_range(source: Format) -> None:
    for target in NUMERIC:
        low, high = (value_of(target, code) for code in (target.lowest_code, target.max_code))
        some = any(
            low <= value <= high and not has_value(target, value) for value in values(source)
        )
        assert rounds(source, target) == some, target.name


def test_every_numeric_format_is_exact_in_itself() -> None:
    assert all(is_exact(fmt, fmt) and not rounds(fmt, fmt) for fmt in NUMERIC)


@pytest.mark.parametrize(
    ("source", "target", "expect_exact", "expect_rounds"),
    [
        ("float32", "float64", True, False), ("float64", "float32", False, True),
        ("int32", "float64", True, False), ("int32", "float32", False, True),
        ("int64", "float64", False, True), ("uint32", "int64", True, False),
        ("int64", "uint64", False, False), ("uint64", "int64", False, False),
        ("float32", "int64", False, True), ("float64", "float8e8m0", False, True),
        ("int64", "float6e2m3", False, False), ("int64", "float4e2m1", False, True),
        ("uint32", "float8e8m0", False, True),
    ],
)  # fmt: skip
def test_conditions_of_wide_pairs(
    source: str, target: str, expect_exact: bool, expect_rounds: bool
) -> None:
    pair = format_named(source), format_named(target)
    assert (is_exact(*pair), rounds(*pair)) == (expect_exact, expect_rounds)


def test_a_non_numeric_format_is_exact_only_in_itself() -> None:
    non_numeric = [fmt for fmt in formats().values() if not fmt.is_numeric]
    assert len(non_numeric) == 3
    for source, target in product(non_numeric, formats().values()):
        assert is_exact(source, target) == (source.name == target.name)
        assert not rounds(source, target)
