"""Every spelling of a value: patterns, decimals, nan, inf, true; and reasons for refusals."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.families.value_spelling import (
    JsonNumber,
    NestedDatum,
    TensorDatum,
    datum,
    is_full_pattern,
    tensor,
)
from oracles.reference import exact
from oracles.reference.exact_text import exact_decimal
from specs.errors import CastigateError
from specs.formats import Format, format_named, formats

NUMERIC = [form for form in formats().values() if form.is_numeric]
FLOATS = [form for form in NUMERIC if form.kind == "float"]
NARROW = [form.name for form in sorted(NUMERIC, key=lambda form: form.bits) if form.bits <= 16]
"""The narrowest first: CI runs one of eight, and none of 65,536 patterns."""
TINY = [form.name for form in FLOATS if form.bits <= 8]


def read(form: Format, text: str) -> int:
    """Return the pattern of a spelling, which must be the same as text and as a JSON number."""
    code = datum(form, text, "input")
    assert isinstance(code, int)
    assert datum(form, JsonNumber(text), "input") == code
    return code


def refusal(form: Format, text: str) -> str:
    with pytest.raises(CastigateError) as caught:
        datum(form, text, "input")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def finite(form: Format) -> dict[int, Fraction]:
    """The value of every finite pattern."""
    decoded = {code: exact.decode(form, code) for code in range(form.mask + 1)}
    return {
        code: (-1) ** number.sign * number.significand * Fraction(2) ** number.exponent
        for code, number in decoded.items()
        if isinstance(number, exact.Number)
    }


def plain(form: Format, code: int) -> str:
    """The exact value of a pattern, all its digits written out."""
    number = exact.decode(form, code)
    assert isinstance(number, exact.Number)
    return "-" * number.sign + exact_decimal(number.significand, number.exponent)


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("name", NARROW)
def test_each_exact_decimal_is_read_as_its_pattern(name: str) -> None:
    form = format_named(name)
    for code in finite(form):
        text = plain(form, code)
        assert datum(form, text, "input") == code, text
        if form.kind == "float" and (form.bits <= 8 or code % 7 == 0):
            whole, _, fraction = text.partition(".")
            scientific = f"{whole}{fraction}e-{len(fraction)}"
            assert datum(form, scientific, "input") == code, scientific
            padded = f"{text}{'' if fraction else '.'}000"
            assert datum(form, padded, "input") == code, padded


@pytest.mark.parametrize("name", NARROW)
def test_each_pattern_is_read_as_itself(name: str) -> None:
    form = format_named(name)
    for code in range(form.mask + 1):
        assert datum(form, form.hexadecimal(code), "input") == code
        assert datum(form, form.hexadecimal(code).upper(), "input") == code


@given(st.sampled_from([form for form in NUMERIC if form.bits > 16]), st.data())
def test_exact_decimals_and_patterns_of_wide_formats(form: Format, data: st.DataObject) -> None:
    code = data.draw(st.integers(0, form.mask), "code")
    assert read(form, form.hexadecimal(code)) == code
    if isinstance(exact.decode(form, code), exact.Number):
        assert read(form, plain(form, code)) == code


@given(st.integers(0, 2**64 - 1))
@example(1)
@example(0x7FEFFFFFFFFFFFFF)
@example(0x4341C37937E08000)
@example(0x0100000000000000)  # 2^-1007: Python prints the decimal above it
def test_the_digits_that_python_prints_of_a_float64_name_it(code: int) -> None:
    [number] = struct.unpack("<d", code.to_bytes(8, "little"))
    if number == number:
        assert read(format_named("float64"), repr(number)) == code


def nearest(values: list[tuple[Fraction, int]], decimal: Fraction) -> tuple[Fraction, int | None]:
    """The gap to the nearest value and its pattern, found by looking at all; None at a tie."""
    (gap, code), (next_gap, _) = sorted((abs(value - decimal), code) for value, code in values)[:2]
    return gap, None if gap == next_gap else code


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("name", TINY)
def test_a_decimal_between_values_names_the_nearest_or_none(name: str) -> None:
    form = format_named(name)
    values = [(value, code) for code, value in finite(form).items() if value >= 0]
    if form.entry.zero == "none":
        values.append((Fraction(0), -1))
    largest = max(values)[0]
    named = refused = 0
    for power in range(-6, 4):
        for digits in [*range(1, 40), 123, 250, 375, 999, 1001]:
            text, last_digit = f"{digits}e{power}", Fraction(10) ** power
            if digits * last_digit > largest:
                continue
            gap, code = nearest(values, digits * last_digit)
            if gap == 0 or (code not in (None, 0, -1) and gap <= last_digit / 2):
                assert datum(form, text, "input") == code, text
                named += 1
            else:
                assert "is not a value of" in refusal(form, text), text
                refused += 1
    assert min(named, refused) >= 10


def written_in_hex(code: int, form: Format) -> str:
    """The value of a pattern as a hexadecimal float, each time with a point elsewhere."""
    number = exact.decode(form, code)
    assert isinstance(number, exact.Number)
    places = code % 4
    digits = f"{number.significand:0{places + 1}x}"
    at = len(digits) - places
    power = number.exponent + 4 * places
    return f"{'-' * number.sign}0x{digits[:at]}{'.' * (places > 0)}{digits[at:]}p{power}"


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize("name", NARROW)
def test_each_hexadecimal_float_is_read_as_its_pattern(name: str) -> None:
    form = format_named(name)
    for code in finite(form):
        text = written_in_hex(code, form)
        assert datum(form, text, "input") == code, text
        assert datum(form, text.upper(), "input") == code, text


@given(st.integers(0, 2**64 - 1))
@example(1)
@example(0x7FEFFFFFFFFFFFFF)
def test_the_hexadecimal_float_that_python_prints_names_it(code: int) -> None:
    [number] = struct.unpack("<d", code.to_bytes(8, "little"))
    if math.isfinite(number):
        assert datum(format_named("float64"), number.hex(), "input") == code


def test_a_hexadecimal_float_is_never_taken_for_a_pattern() -> None:
    for text in ("0x1.8p-126", "0x3f8p0000"):
        assert len(text) == len("0x00400000")
        assert not is_full_pattern(format_named("float32"), text)


SPECIAL: dict[str, dict[str, int]] = {
    "float64": {
        "inf": 0x7FF0000000000000, "nan": 0x7FF8000000000000, "4.9e-324": 1,
        "1.7976931348623157e308": 0x7FEFFFFFFFFFFFFF,
    },
    "float32": {
        "inf": 0x7F800000, "+inf": 0x7F800000, "-inf": 0xFF800000, "-Infinity": 0xFF800000,
        "nan": 0x7FC00000, "+NaN": 0x7FC00000, "-nan": 0xFFC00000, "-0": 0x80000000,
        "-0.0e5": 0x80000000, "+0": 0, ".5": 0x3F000000, "5.": 0x40A00000, "65520": 0x477FF000,
        "0.1": 0x3DCCCCCD, "1e-3": 0x3A83126F, "1E+3": 0x447A0000, "3.4028235e38": 0x7F7FFFFF,
        "1e-45": 1, "0e999999999999": 0,
        "0x1p-24": 0x33800000, "-0x1.8p3": 0xC1400000, "+0X.8P+1": 0x3F800000, "0x1.p0": 0x3F800000,
        "0x0p999999999999": 0, "-0x0.0p0": 0x80000000, "0x3f800000": 0x3F800000,
        "0x3f800000p0": 0x4E7E0000, "0x1.fffffep127": 0x7F7FFFFF, "0x1p-149": 1,
    },
    "float16": {"inf": 0x7C00, "nan": 0x7E00, "6e-8": 1},
    "bfloat16": {"-nan": 0xFFC0, "3.14": 0x4049},
    "float8e4m3fn": {"nan": 0x7F, "-nan": 0xFF},
    "float8e4m3fnuz": {"nan": 0x80},
    "float8e5m2": {"-inf": 0xFC, "nan": 0x7E},
    "float8e5m2fnuz": {"nan": 0x80},
    "float8e8m0": {"nan": 0xFF, "1.0": 0x7F},
    "float4e2m1": {"-0": 0x8},
    "int8": {
        "-128": 0x80, "+5": 0x05, "-0": 0, "007": 7, "0x5": 5, "0x0005": 5, "0x1p3": 8,
        "-0x1p7": 0x80,
    },
    "int16": {"0xff": 0xFF},
    "int4": {"-1": 0xF},
    "uint4": {"0x0f": 0xF},
    "uint64": {"18446744073709551615": 2**64 - 1},
    "bool": {"0x1": 1, "0x01": 1, "0x00": 0, "1": 1, "0": 0, "true": 1, "False": 0, "0x1p0": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "text"), [(dtype, text) for dtype, texts in SPECIAL.items() for text in texts]
)
def test_known_spellings(dtype: str, text: str) -> None:
    assert read(format_named(dtype), text) == SPECIAL[dtype][text]


def test_json_true_and_false_are_bools_alone() -> None:
    assert datum(format_named("bool"), True, "input") == 1
    assert datum(format_named("bool"), False, "input") == 0
    with pytest.raises(CastigateError, match="`input` `true` is not a value of float32"):
        datum(format_named("float32"), True, "input")


REFUSED = [
    ("float32", "16777217", "write 0x4b800000 (16777216) or 0x4b800001 (16777218)"),
    ("float32", "-16777217", "write 0xcb800000 (-16777216) or 0xcb800001 (-16777218)"),
    ("float32", "0.10000000000000001", "write 0x3dcccccc (about "),
    ("float16", "65510", "is not a value of float16; write 0x7bff (65504)"),
    ("float16", "65520", "is outside the range of float16, -65504 to 65504"),
    ("float16", "-1e9", "is outside the range of float16, -65504 to 65504"),
    ("float16", "1e-8", "write 0x0000 (0) or 0x0001 (about "),
    ("float16", "-1e-8", "write 0x8000 (-0) or 0x8001 (about -"),
    ("float16", "1e-999999999999999", "write 0x0000 (0) or 0x0001"),
    ("float16", "1e999999999999999", "is outside the range of float16"),
    ("float32", "0x1.000001p0", "write 0x3f800000 (1) or 0x3f800001 (about "),
    ("float32", "-0x1.000001p0", "write 0xbf800000 (-1) or 0xbf800001 (about "),
    ("float32", "0x1p-150", "write 0x00000000 (0) or 0x00000001 (about "),
    ("float32", "0x1p-999999999999", "write 0x00000000 (0) or 0x00000001 (about "),
    ("float32", "0x1p128", "is outside the range of float32"),
    ("float32", "-0x1p999999999999", "is outside the range of float32"),
    ("float8e4m3fn", "0x1.c2p8", "write 0x7e (448)"),
    ("float8e8m0", "0x0p0", "float8e8m0 has no zero"),
    ("int8", "0x1p-1", "is not a value of int8; write an integer such as 5"),
    ("int8", "0x1p7", "`0x1p7` is outside the range of int8, -128 to 127"),
    ("int8", "0x1p999999999999", "is outside the range of int8, -128 to 127"),
    ("bool", "0x1p1", "`0x1p1` is outside the range of bool, 0 to 1"),
    ("float64", "1.7976931348623158e308", "write 0x7fefffffffffffff (about "),
    ("float64", "1e309", "is outside the range of float64"),
    ("float8e4m3fn", "17", "write 0x58 (16) or 0x59 (18)"),
    ("float8e4m3fn", "1e2", "write 0x6c (96) or 0x6d (104)"),
    ("float8e4m3fn", "450", "write 0x7e (448)"),
    ("float8e4m3fn", "inf", "float8e4m3fn has no infinity; write a number or nan"),
    ("float8e4m3fnuz", "-nan", "the NaN of float8e4m3fnuz has no sign; write nan"),
    ("float8e4m3fnuz", "-0", "`-0`: float8e4m3fnuz has no -0; write 0"),
    ("float8e8m0", "0", "float8e8m0 has no zero; its smallest is 0x00"),
    ("float8e8m0", "-1", "is outside the range of float8e8m0"),
    ("float8e8m0", "3", "write 0x80 (2) or 0x81 (4)"),
    ("float8e8m0", "1e-45", "write 0x00 ("),
    ("float4e2m1", "nan", "float4e2m1 has no NaN; write a number"),
    ("float4e2m1", "5", "write 0x6 (4) or 0x7 (6)"),
    ("float4e2m1", "7", "is outside the range of float4e2m1, -6 to 6"),
    ("float16", "0x3c", "has 2 digits, a pattern of float16 has 4"),
    ("float16", "0x03c00", "has 5 digits, a pattern of float16 has 4"),
    ("int8", "300", "`300` is outside the range of int8, -128 to 127"),
    ("uint8", "-1", "`-1` is outside the range of uint8, 0 to 255"),
    ("int2", "2", "is outside the range of int2, -2 to 1"),
    ("int8", "0x0ff", "has 3 digits, a pattern of int8 has 2"),
    ("int8", "0x100", "has 3 digits, a pattern of int8 has 2"),
    ("int4", "0x0f", "has 2 digits, a pattern of int4 has 1"),
    ("int2", "0x7", "wider than the 2 bits of int2"),
    ("int8", "5.0", "is not a value of int8; write an integer such as 5, or 0x and 2 hex digits"),
    ("int8", "true", "is not a value of int8"),
    ("int8", "3e2", "`3e2` is outside the range of int8, -128 to 127"),
    ("int8", "3e-1", "is not a value of int8"),
    ("bool", "0xff", "0xff is no bool; write true, false, 1, 0, 0x1 or 0x0"),
    ("bool", "2", "`2` is outside the range of bool, 0 to 1"),
    ("bool", "yes", "is not a value of bool; write true, false, 1, 0, 0x1 or 0x0"),
    ("complex64", "1+1", "complex64; write a number such as 1.5-2j, or 0x and 16 hex digits"),
    *(
        ("float32", text, "is not a value of float32; write a number such as 1.5, -inf or nan")
        for text in (
            "", ".", "+", "e5", ".e5", "1e", "1e+", "--1", "1_0", "1,5", "1.5f", "１", " 1", "1\n",
            "ınf", "inf ", "nan(1)", "true", "0x", "0x3f80000g", "0x3f80_000", "3f800000",
            "-0x3f800000", "0xp1", "0x.p1", "0x1.8", "0x1p", "0x1p0f", "0x1pf", "0x1.8.0p1",
        )
    ),
]  # fmt: skip


def test_an_integer_may_have_an_exponent() -> None:
    assert read(format_named("uint32"), "3e9") == 3_000_000_000
    assert read(format_named("int16"), "-1E+4") == 0x1_0000 - 10_000


@pytest.mark.parametrize(("dtype", "text", "says"), REFUSED)
def test_what_names_no_value_is_refused(dtype: str, text: str, says: str) -> None:
    message = refusal(format_named(dtype), text)
    assert message.startswith("`input`")
    assert says in message


def test_an_endless_number_is_refused() -> None:
    for text in ("1" * 5_000, "0." + "0" * 900_000 + "1", "1e" + "9" * 5_000):
        for dtype in ("float64", "int64", "bool"):
            assert "characters; a number has 1200 at most" in refusal(format_named(dtype), text)


@given(st.sampled_from([*NUMERIC, format_named("complex64")]), st.text(max_size=30))
def test_any_text_is_a_value_or_one_line(form: Format, text: str) -> None:
    try:
        code = int(datum(form, text, "output"))
    except CastigateError:
        assert refusal(form, text)
    else:
        assert 0 <= code <= form.mask


@given(st.lists(st.integers(0, 3), max_size=4), st.data())
def test_a_tensor_is_the_same_nested_and_with_its_shape(
    shape: list[int], data: st.DataObject
) -> None:
    count = 1
    for length in shape:
        count *= length
    form = format_named("int8")
    codes = data.draw(st.lists(st.integers(0, 255), min_size=count, max_size=count))
    shaped = TensorDatum(shape=shape, bits=[form.hexadecimal(code) for code in codes])
    assert tensor(form, shaped, "input").shape == tuple(shape)
    assert tensor(form, shaped, "input").reshape(-1).tolist() == codes
    nested = tensor(form, shaped, "input").tolist()
    if shape and 0 not in shape[:-1]:
        found = tensor(form, NestedDatum.model_validate(in_hex(nested)), "input")
        assert (found.shape, found.tolist()) == (tuple(shape), nested)


def in_hex(nested: object) -> object:
    return [*map(in_hex, nested)] if isinstance(nested, list) else f"0x{nested:02x}"


@pytest.mark.parametrize(
    ("spelled", "real", "imaginary"),
    [
        ("1-2j", 0x3F800000, 0xC0000000),
        ("0+1j", 0x00000000, 0x3F800000),
        ("1j", 0x00000000, 0x3F800000),
        ("-1.5e0", 0xBFC00000, 0x00000000),
        ("inf-nanj", 0x7F800000, 0xFFC00000),
        ("1e1+1e-1i", 0x41200000, 0x3DCCCCCD),
    ],
)
def test_a_complex_number_is_spelled_by_its_parts(spelled: str, real: int, imaginary: int) -> None:
    found = datum(format_named("complex64"), spelled, "input")
    assert found == real | imaginary << 32


@pytest.mark.parametrize("spelled", ["", "j", "1+2", "1+2j3", "1 + 2j", "1e400j", "0.1.2j"])
def test_what_is_no_complex_number_is_refused(spelled: str) -> None:
    with pytest.raises(CastigateError, match="`input`"):
        datum(format_named("complex64"), spelled, "input")
