"""Every format agrees with its public definition: IEEE 754, OCP FP8 and MX, FNUZ."""

from __future__ import annotations

import json
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from oracles.reference import exact
from specs.formats import (
    FORMATS_FILE,
    SMALL_FLOATS_FILE,
    SPELLINGS,
    Format,
    FormatEntry,
    format_named,
    formats,
    value_of,
)
from specs.model.yaml_file import read_yaml

NAMES = [
    "float64", "float32", "float16", "bfloat16",
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e4m3", "float8e3m4", "float8e4m3b11fnuz", "float8e8m0",
    "float6e2m3", "float6e3m2", "float4e2m1",
    "int64", "int32", "int16", "int8", "int4", "int2",
    "uint64", "uint32", "uint16", "uint8", "uint4", "uint2",
    "bool", "complex64", "complex128", "string",
]  # fmt: skip
TWO = Fraction(2)
# name: bits, bias, largest finite value, smallest positive value, code of infinity, NaN codes
FLOATS: dict[str, tuple[int, int, Fraction, Fraction, int | None, list[tuple[int, int]]]] = {
    "float64": (64, 1023, (2 - TWO**-52) * TWO**1023, TWO**-1074, 0x7FF0000000000000,
        [(0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF), (0xFFF0000000000001, 0xFFFFFFFFFFFFFFFF)]),
    "float32": (32, 127, (2 - TWO**-23) * TWO**127, TWO**-149, 0x7F800000,
        [(0x7F800001, 0x7FFFFFFF), (0xFF800001, 0xFFFFFFFF)]),
    "float16": (16, 15, Fraction(65504), TWO**-24, 0x7C00, [(0x7C01, 0x7FFF), (0xFC01, 0xFFFF)]),
    "bfloat16": (16, 127, (2 - TWO**-7) * TWO**127, TWO**-133, 0x7F80,
        [(0x7F81, 0x7FFF), (0xFF81, 0xFFFF)]),
    "float8e4m3fn": (8, 7, Fraction(448), TWO**-9, None, [(0x7F, 0x7F), (0xFF, 0xFF)]),
    "float8e4m3fnuz": (8, 8, Fraction(240), TWO**-10, None, [(0x80, 0x80)]),
    "float8e5m2": (8, 15, Fraction(57344), TWO**-16, 0x7C, [(0x7D, 0x7F), (0xFD, 0xFF)]),
    "float8e5m2fnuz": (8, 16, Fraction(57344), TWO**-17, None, [(0x80, 0x80)]),
    "float8e4m3": (8, 7, Fraction(240), TWO**-9, 0x78, [(0x79, 0x7F), (0xF9, 0xFF)]),
    "float8e3m4": (8, 3, Fraction(31, 2), TWO**-6, 0x70, [(0x71, 0x7F), (0xF1, 0xFF)]),
    "float8e4m3b11fnuz": (8, 11, Fraction(30), TWO**-13, None, [(0x80, 0x80)]),
    "float8e8m0": (8, 127, TWO**127, TWO**-127, None, [(0xFF, 0xFF)]),
    "float6e2m3": (6, 1, Fraction(15, 2), Fraction(1, 8), None, []),
    "float6e3m2": (6, 3, Fraction(28), Fraction(1, 16), None, []),
    "float4e2m1": (4, 1, Fraction(6), Fraction(1, 2), None, []),
}  # fmt: skip
STORAGE = {
    "uint8": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e4m3 float8e3m4"
    " float8e4m3b11fnuz float8e8m0 float6e2m3"
    " float6e3m2 float4e2m1 int8 int4 int2 uint8 uint4 uint2 bool",
    "uint16": "float16 bfloat16 int16 uint16",
    "uint32": "float32 int32 uint32",
    "uint64": "float64 int64 uint64 complex64",
    "V16": "complex128",
    "O": "string",
}
IEEE = {"float64": "<d", "float32": "<f", "float16": "<e"}
NARROW = [fmt for fmt in formats().values() if fmt.is_numeric and fmt.bits <= 16]


def is_finite(fmt: Format, code: int) -> bool:
    return not any(code in codes for codes in fmt.nan_codes) and not (
        fmt.entry.infinity and code & ~fmt.sign_bit == fmt.infinity_code
    )


def round_trips(fmt: Format, code: int) -> bool:
    """Whether ``exact`` decodes a pattern to its value and encodes the value to the pattern."""
    number = exact.decode(fmt, code)
    assert isinstance(number, exact.Number)
    value = (-1) ** number.sign * number.significand * TWO**number.exponent
    encoded = exact.encode(fmt, number.sign, number.significand, number.exponent)
    return value == value_of(fmt, code) and encoded == code


def test_the_dtypes_are_those_of_the_design_in_its_order() -> None:
    assert list(formats()) == NAMES
    assert len(NAMES) == 31


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_agrees_with_its_definition(name: str) -> None:
    fmt = format_named(name)
    bits, bias, largest, smallest, infinity, nans = FLOATS[name]
    assert (fmt.bits, fmt.entry.bias) == (bits, bias)
    assert value_of(fmt, fmt.max_code) == largest
    assert value_of(fmt, fmt.lowest_code) == (-largest if fmt.is_signed else smallest)
    has_zero = name != "float8e8m0"
    assert value_of(fmt, 1 if has_zero else 0) == smallest
    assert value_of(fmt, 0) == (0 if has_zero else smallest)
    assert value_of(fmt, fmt.one_code) == 1
    assert (fmt.infinity_code if fmt.entry.infinity else None) == infinity
    assert [(codes[0], codes[-1]) for codes in fmt.nan_codes] == nans


@pytest.mark.parametrize("name", [name for name in NAMES if "int" in name] + ["bool"])
def test_an_integer_has_the_range_of_its_width(name: str) -> None:
    fmt = format_named(name)
    bits = 1 if name == "bool" else int(name.removeprefix("u").removeprefix("int"))
    signed = name.startswith("int")
    assert fmt.bits == bits
    assert value_of(fmt, fmt.max_code) == 2 ** (bits - signed) - 1
    assert value_of(fmt, fmt.lowest_code) == (-(2 ** (bits - 1)) if signed else 0)
    assert value_of(fmt, fmt.one_code) == 1
    assert (fmt.nan_codes, fmt.entry.infinity) == ((), False)


def test_a_pattern_is_stored_in_the_smallest_unsigned_dtype() -> None:
    expected = {name: dtype for dtype, names in STORAGE.items() for name in names.split()}
    assert {fmt.name: fmt.storage for fmt in formats().values()} == expected


@pytest.mark.parametrize(
    ("name", "written"),
    [("int2", "0x1"), ("float6e2m3", "0x01"), ("float16", "0x0001"), ("int64", f"0x{1:016x}")],
)
def test_a_pattern_is_written_with_all_its_digits(name: str, written: str) -> None:
    assert format_named(name).hexadecimal(1) == written


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
def test_every_finite_pattern_round_trips_through_its_value(fmt: Format) -> None:
    finite = [code for code in range(fmt.mask + 1) if is_finite(fmt, code)]
    assert all(round_trips(fmt, code) for code in finite)
    zeros = 2 if fmt.entry.zero == "signed" else 1
    assert len({value_of(fmt, code) for code in finite}) == len(finite) - zeros + 1


@given(st.data())
def test_finite_wide_patterns_round_trip_through_their_values(data: st.DataObject) -> None:
    wide = [fmt for fmt in formats().values() if fmt.is_numeric and fmt.bits > 16]
    fmt = data.draw(st.sampled_from(wide), label="format")
    code = data.draw(st.integers(0, fmt.mask), label="code")
    assert not is_finite(fmt, code) or round_trips(fmt, code)


@pytest.mark.parametrize("name", IEEE)
@given(data=st.data())
def test_ieee_patterns_have_the_values_that_struct_unpacks(name: str, data: st.DataObject) -> None:
    fmt = format_named(name)
    code = data.draw(st.integers(0, fmt.mask).filter(lambda one: is_finite(fmt, one)))
    (value,) = struct.unpack(IEEE[name], code.to_bytes(fmt.bits // 8, "little"))
    assert value_of(fmt, code) == Fraction(value)


ENTRY = TypeAdapter(validated(FormatEntry, frozen=True, config={"extra": "forbid"}))


@pytest.mark.parametrize("path", [FORMATS_FILE, SMALL_FLOATS_FILE], ids=lambda path: path.stem)
def test_the_entries_of_a_file_have_the_types_of_their_fields(path: Path) -> None:
    data = read_yaml(path).data
    assert data[SPELLINGS]
    for name, fields in data.items():
        if name != SPELLINGS:
            assert (
                vars(ENTRY.validate_json(json.dumps(fields), strict=True)).items() >= fields.items()
            )


@pytest.mark.parametrize(
    "wrong", [{"kind": "flaot"}, {"kind": "float", "bias": "7"}, {"kind": "float", "basis": 7}, {}]
)
def test_an_entry_with_a_wrong_field_is_found(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ENTRY.validate_json(json.dumps(wrong), strict=True)
