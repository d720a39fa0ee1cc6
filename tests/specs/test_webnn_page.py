"""webnn-cast has the types of the page, and allows what its table of four cells says."""

from __future__ import annotations

import struct
from itertools import product

import numpy as np
import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.outcomes import Anything, Exactly, Nan
from specs.ruling import ruling

FLOATS = ("float32", "float16")
BITS_OF_INTEGERS = {"int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "int8": 8, "uint8": 8}
TYPES = (*FLOATS, *BITS_OF_INTEGERS)
REQUIRED_TYPES = ("float32", "float16", "int32", "int8", "uint8")
Answers = set[int] | str

NAN, INFINITY, MINUS_INFINITY = 0x7FC00000, 0x7F800000, 0xFF800000
TO_FLOAT16: list[tuple[float, Answers]] = [
    (1.0, {0x3C00}),
    (1 + 2**-11, {0x3C00, 0x3C01}),  # a tie
    (1 + 3 * 2**-11, {0x3C02}),  # another: the even value is the one away from zero
    (1 + 2**-11 + 2**-20, {0x3C01}),
    (2**-24, {0x0001}),
    (3 * 2**-25, {0x0002}),
    (65504.0, {0x7BFF}),
    (65519.0, {0x7BFF, 0x7C00}),
    (-65519.0, {0xFBFF, 0xFC00}),
    (65520.0, {0x7C00}),
    (-65520.0, {0xFC00}),
    (1e30, {0x7C00}),
    (0.0, {0x0000}),
    (-0.0, {0x8000, 0x0000}),
    (2**-26, {0x0000}),
    (-(2**-26), {0x8000}),
]
INTEGERS_TO_FLOAT16: dict[int, Answers] = {
    2048: {0x6800},
    2049: {0x6800, 0x6801},
    65504: {0x7BFF},
    65519: {0x7BFF, 0x7C00},
    65520: {0x7C00},
    -2049: {0xE800, 0xE801},
    -65519: {0xFBFF, 0xFC00},
    -65520: {0xFC00},
}


def case_of(source: str, target: str) -> Case:
    return Case("webnn-cast", "draft", source, target)


def allowed(source: str, target: str, code: int) -> Answers:
    found = exact_rulings.allow(ruling(case_of(source, target)), code)
    match found.branch.outcome:
        case Anything():
            return "open"
        case Nan():
            return "a NaN"
    return set(found.codes)


def float32_code(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def integer_code(dtype: str, value: int) -> int:
    return value & (1 << BITS_OF_INTEGERS[dtype]) - 1


def limits(dtype: str) -> tuple[int, int]:
    bits = BITS_OF_INTEGERS[dtype]
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def test_the_cases_are_all_pairs_of_the_enumeration_and_the_note() -> None:
    cases = list(edition(document_named("webnn-cast"), "draft").cases())
    pairs = [(case.source, case.target) for case in cases if case.example is None]
    assert sorted(pairs) == sorted(product(TYPES, TYPES))
    assert [case.id for case in cases if case.example] == [
        "webnn-cast:draft/int8/uint8/example:minus-one"
    ]


@pytest.mark.parametrize(("source", "target"), [*product(TYPES, TYPES)])
def test_only_casts_of_required_types_must_be_answered(source: str, target: str) -> None:
    due = ruling(case_of(source, target)).answer_due
    assert (due is not None) == (source in REQUIRED_TYPES and target in REQUIRED_TYPES)


@pytest.mark.parametrize(("value", "answers"), TO_FLOAT16)
def test_float32_to_float16_is_the_nearest_value_or_an_infinity(
    value: float, answers: Answers
) -> None:
    assert allowed("float32", "float16", float32_code(value)) == answers


def test_65504_is_recommended_where_only_rounding_brings_a_value_back_into_range() -> None:
    rules = ruling(case_of("float32", "float16"))
    for value, code in ((65519.0, 0x7BFF), (-65519.0, 0xFBFF)):
        branch = exact_rulings.allow(rules, float32_code(value)).branch
        assert (branch.level, branch.recommended) == ("required", Exactly(code))


@pytest.mark.parametrize(("source", "target"), [*product(FLOATS, FLOATS)])
def test_floats_keep_infinities_and_nans_and_a_wider_one_keeps_values(
    source: str, target: str
) -> None:
    dtype = np.dtype(source)
    storage = f"u{dtype.itemsize}"
    codes = {"inf": np.inf, "minus": -np.inf, "nan": np.nan, "one and a half": 1.5}
    given = {name: int(np.array(value, dtype).view(storage)[()]) for name, value in codes.items()}
    infinity = 0x7F800000 if target == "float32" else 0x7C00
    sign = 0x80000000 if target == "float32" else 0x8000
    assert allowed(source, target, given["inf"]) == {infinity}
    assert allowed(source, target, given["minus"]) == {infinity | sign}
    assert allowed(source, target, given["nan"]) == "a NaN"
    answer = 0x3FC00000 if target == "float32" else 0x3E00
    assert allowed(source, target, given["one and a half"]) == {answer}


@pytest.mark.parametrize("target", BITS_OF_INTEGERS)
def test_floats_are_truncated_in_range_and_open_out_of_it(target: str) -> None:
    lowest, largest = limits(target)
    truncated = [(0.0, 0), (-0.0, 0), (0.5, 0), (1.5, 1), (2.999999, 2), (100.75, 100)]
    if lowest < 0:
        truncated += [(-0.5, 0), (-1.5, -1), (float(lowest), lowest)]
    for value, whole in truncated:
        expected = {integer_code(target, whole)}
        assert allowed("float32", target, float32_code(value)) == expected, value
    beyond = [float(largest + 1), lowest - 1.0 if target == "int8" else 2.0 * lowest - 1]
    beyond += [127.5, -128.5] if target == "int8" else []
    beyond += [-0.5, -1.0] if lowest == 0 else []
    for value in beyond:
        assert allowed("float32", target, float32_code(value)) == "open", value
    for code in (NAN, INFINITY, MINUS_INFINITY):
        assert allowed("float32", target, code) == "open"


@pytest.mark.parametrize(("source", "target"), [*product(BITS_OF_INTEGERS, BITS_OF_INTEGERS)])
def test_integers_keep_their_lowest_bits(source: str, target: str) -> None:
    lowest, largest = limits(source)
    for value in {lowest, -1, 0, 1, 127, 128, 255, 256, 2**31, 2**32 + 5, largest}:
        if lowest <= value <= largest:
            expected = {integer_code(target, value)}
            assert allowed(source, target, integer_code(source, value)) == expected, value


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_to_float16_are_the_nearest_value_or_an_infinity(source: str) -> None:
    for value, answers in INTEGERS_TO_FLOAT16.items():
        if value >= limits(source)[0]:
            code = integer_code(source, value)
            assert allowed(source, "float16", code) == answers, value


@pytest.mark.parametrize("source", BITS_OF_INTEGERS)
@pytest.mark.parametrize("sign", [1, -1])
def test_integers_to_float32_are_the_nearest_value(source: str, sign: int) -> None:
    expected = {100: {float32_code(sign * 100.0)}}
    if BITS_OF_INTEGERS[source] > 8:
        below, above = float32_code(sign * 2.0**24), float32_code(sign * (2.0**24 + 2))
        expected |= {2**24 + 1: {below, above}, 2**24 + 2: {above}}
    for magnitude, answers in expected.items():
        if sign * magnitude >= limits(source)[0]:
            code = integer_code(source, sign * magnitude)
            assert allowed(source, "float32", code) == answers, magnitude
