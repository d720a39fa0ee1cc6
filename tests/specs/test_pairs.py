"""What `pair: exact` and `pair: rounds` say, against every value of every narrow format."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from specs.formats import Format, format_named, formats
from specs.pair_conditions import is_exact, rounds, value_of

NUMERIC = [form for form in formats().values() if form.is_numeric]
ENUMERABLE = [form for form in NUMERIC if form.bits <= 16]


@cache
def values(form: Format) -> frozenset[Fraction]:
    """Every finite value, read from the bits by the format's definition alone."""
    not_finite = {code for codes in form.nan_codes for code in codes}
    if form.entry.infinity:
        not_finite |= {form.infinity_code, form.infinity_code | form.sign_bit}
    return frozenset(
        value_of(form, code) for code in range(form.mask + 1) if code not in not_finite
    )


def has(target: Format, value: Fraction) -> bool:
    """Whether a format wider than can be enumerated has a value in its range."""
    if target.bits <= 16:
        return value in values(target)
    if target.is_integral or not value:
        return value.denominator == 1
    top = abs(value.numerator).bit_length() - value.denominator.bit_length()
    leading = top if abs(value) >= Fraction(2) ** top else top - 1
    unit = Fraction(2) ** (max(leading, target.lowest_exponent) - target.entry.mantissa)
    return (value / unit).denominator == 1


@pytest.mark.parametrize("source", ENUMERABLE, ids=lambda form: form.name)
def test_exact_means_that_the_target_has_every_value(source: Format) -> None:
    for target in NUMERIC:
        low, high = (value_of(target, code) for code in (target.lowest_code, target.max_code))
        every = all(low <= value <= high and has(target, value) for value in values(source))
        assert is_exact(source, target) == every, target.name


@pytest.mark.parametrize("source", ENUMERABLE, ids=lambda form: form.name)
def test_rounds_means_that_a_value_in_range_is_not_the_target_s(source: Format) -> None:
    for target in NUMERIC:
        low, high = (value_of(target, code) for code in (target.lowest_code, target.max_code))
        some = any(low <= value <= high and not has(target, value) for value in values(source))
        assert rounds(source, target) == some, target.name


def test_every_numeric_format_is_exact_in_itself() -> None:
    assert all(is_exact(form, form) and not rounds(form, form) for form in NUMERIC)


@pytest.mark.parametrize(
    ("source", "target", "exact", "loses"),
    [
        ("float32", "float64", True, False),
        ("float64", "float32", False, True),
        ("int32", "float64", True, False),
        ("int32", "float32", False, True),
        ("int64", "float64", False, True),
        ("uint32", "int64", True, False),
        ("int64", "uint64", False, False),
        ("uint64", "int64", False, False),
        ("float32", "int64", False, True),
        ("float64", "float8e8m0", False, True),
        ("int64", "float6e2m3", False, False),
        ("int64", "float4e2m1", False, True),
        ("uint32", "float8e8m0", False, True),
    ],
)
def test_wide_pairs(source: str, target: str, exact: bool, loses: bool) -> None:
    pair = format_named(source), format_named(target)
    assert (is_exact(*pair), rounds(*pair)) == (exact, loses)


def test_what_is_no_number_is_exact_in_itself_only() -> None:
    others = [form for form in formats().values() if not form.is_numeric]
    assert len(others) == 3
    for source, target in product(others, formats().values()):
        assert is_exact(source, target) == (source.name == target.name)
        assert not rounds(source, target)
