"""The definition against the meaning of rounding: exact fractions and neighboring values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference.exact import Number, decode, encode, round_magnitude, unit_of, zone_of
from specs.formats import Format, format_named, formats, value_of
from specs.model.vocabulary import ROUNDINGS, Rounding

FLOATS = [form for form in formats().values() if form.kind == "float"]
NUMERIC = [form for form in formats().values() if form.is_numeric]
SIGNED_FLOATS = [form for form in FLOATS if form.is_signed]


@st.composite
def finite_patterns(draw: st.DrawFn) -> tuple[Format, int]:
    """A source and one of its finite patterns."""
    source = draw(st.sampled_from(NUMERIC))
    code = draw(st.integers(0, source.mask))
    if not isinstance(decode(source, code), Number):
        code = draw(st.integers(0, source.max_code))
    return source, code


@given(finite_patterns())
def test_decoding_gives_the_value_of_the_fields(finite_pattern: tuple[Format, int]) -> None:
    source, code = finite_pattern
    number = decode(source, code)
    assert isinstance(number, Number)
    value = number.significand * Fraction(2) ** number.exponent
    assert (-value if number.sign else value) == value_of(source, code)


@given(finite_patterns())
def test_encoding_inverts_decoding(finite_pattern: tuple[Format, int]) -> None:
    source, code = finite_pattern
    number = decode(source, code)
    assert isinstance(number, Number)
    assert encode(source, number.sign, number.significand, number.exponent) == code


@given(finite_patterns(), st.sampled_from(SIGNED_FLOATS), st.sampled_from(list(ROUNDINGS.values())))
def test_rounding_picks_the_right_neighbor(
    finite_pattern: tuple[Format, int], target: Format, rounding: Rounding
) -> None:
    number = decode(*finite_pattern)
    assert isinstance(number, Number)
    if number.significand == 0:
        return
    x = abs(value_of(*finite_pattern))
    unit = unit_of(target, number)
    multiple = round_magnitude(number, unit, rounding)
    if zone_of(target, number, multiple, unit) == "overflow":
        return
    code = encode(target, 0, multiple, unit)
    result = value_of(target, code)
    lower = max(code - 1, 0) if result > x else code
    below = value_of(target, lower)
    above = value_of(target, lower + 1) if lower < target.max_code else None
    assert below <= x
    assert above is None or x <= above
    if result == x:
        return
    down = result == below
    match rounding:
        case "toward-zero":
            assert down
        case "floor":
            assert down == (number.sign == 0)
        case "ceil":
            assert down == (number.sign == 1)
        case "odd":
            assert code % 2 == 1
        case "nearest-even" | "nearest-away" if above is not None:
            middle = (below + above) / 2
            if x != middle:
                assert down == (x < middle)
            elif rounding == "nearest-away":
                assert not down
            else:
                assert code % 2 == 0


@pytest.mark.parametrize(
    ("source", "pattern", "target", "rounding", "expected"),
    [
        ("float32", 0x3F801000, "float16", "nearest-even", 0x3C00),  # 1 + 2^-11, a tie
        ("float32", 0x3F803000, "float16", "nearest-even", 0x3C02),  # 1 + 3 * 2^-11, a tie
        ("float32", 0x3F801000, "float16", "nearest-away", 0x3C01),
        ("float32", 0xBF801000, "float16", "floor", 0xBC01),
        ("float32", 0xBF801000, "float16", "ceil", 0xBC00),
        ("float32", 0x3F800001, "float16", "odd", 0x3C01),
        ("float32", 0x33000000, "float16", "nearest-even", 0x0000),  # 2^-25, half the smallest
        ("float32", 0x33000001, "float16", "nearest-even", 0x0001),
        ("float64", 0x3FF0000000000000, "bfloat16", "nearest-even", 0x3F80),
        ("int32", 0x01000001, "float32", "nearest-even", 0x4B800000),  # 2^24 + 1
        ("float32", 0x40200000, "int8", "nearest-even", 0x02),  # 2.5
        ("float32", 0x40200000, "int8", "nearest-away", 0x03),
        ("float32", 0xC0200000, "int8", "toward-zero", 0xFE),
        ("float32", 0x43E80000, "float8e4m3fn", "nearest-even", 0x7E),  # 464, tie of 448 and 480
        ("float32", 0x40400000, "float8e8m0", "nearest-away", 0x81),  # 3, tie of 2 and 4
        ("float64", 0x47EFFFFFE0000001, "float32", "floor", 0x7F7FFFFF),  # above the largest
        ("float64", 0x47EFFFFFE0000001, "float32", "ceil", 0x7F800000),
        ("float64", 0xC7EFFFFFE0000001, "float32", "floor", 0xFF800000),
    ],
)
def test_known_roundings(
    source: str, pattern: int, target: str, rounding: Rounding, expected: int
) -> None:
    number = decode(format_named(source), pattern)
    assert isinstance(number, Number)
    unit = unit_of(format_named(target), number)
    multiple = round_magnitude(number, unit, rounding)
    assert encode(format_named(target), number.sign, multiple, unit) == expected


def test_a_value_may_be_encoded_from_any_unit() -> None:
    half = format_named("float16")
    assert encode(half, 0, 6 << 40, -40) == 0x4600
    assert encode(half, 1, 1 << 16, -40) == 0x8001  # -2^-24, the smallest
