"""llvm-casts allows what the examples of LLVM's reference yield, and clamps where asked."""

from __future__ import annotations

import struct

import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.outcomes import Anything, Nan
from specs.ruling import ruling

Answers = set[int] | str


def allowed(source: str, target: str, code: int, modes: tuple[tuple[str, str], ...]) -> Answers:
    case = Case("llvm-casts", "22", source, target, modes)
    found = exact_rulings.allow(ruling(case), code)
    match found.branch.outcome:
        case Anything():
            return "open"
        case Nan():
            return "a NaN"
    return set(found.codes)


def double(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


INSTRUCTIONS: list[tuple[str, str, int, Answers]] = [
    ("int32", "int8", 257, {1}),
    ("int32", "int64", 257, {257}),
    ("uint32", "int64", 0xFFFFFFFF, {0xFFFFFFFF}),
    ("int8", "int16", 0xFF, {0xFFFF}),
    ("int8", "uint16", 0xFF, {0xFFFF}),
    ("uint8", "int16", 0xFF, {0x00FF}),
    ("float64", "float32", double(16777217.0), {0x4B800000}),
    ("float64", "float32", double(16777219.0), {0x4B800002}),
    ("float64", "float16", double(1.0e300), {0x7C00}),
    ("float64", "float16", double(float("nan")), "a NaN"),
    ("float32", "float64", 0x40480000, {double(3.125)}),
    ("float32", "bfloat16", 0x3F818000, {0x3F82}),
    ("float16", "bfloat16", 0x3C00, "open"),
    ("int32", "float32", 257, {0x43808000}),
    ("uint8", "float64", 0xFF, {double(255.0)}),
    ("int8", "float64", 0xFF, {double(-1.0)}),
    ("uint64", "float32", 0xFFFFFF8000000000, {0x5F800000}),
    ("uint16", "float16", 65519, {0x7BFF}),
    ("uint16", "float16", 65520, {0x7C00}),
    ("int32", "float16", 0x80000000, {0xFC00}),
    ("float64", "float32", 1, {0}),
    ("float64", "float32", double(2.0**-149), {1}),
]
WITHIN: list[tuple[str, str, int, Answers]] = [
    ("float64", "uint32", double(123.0), {123}),
    ("float64", "int32", double(-123.0), {0xFFFFFF85}),
    ("float64", "uint8", double(-0.5), {0}),
    ("float64", "uint8", double(255.5), {255}),
]
BEYOND: list[tuple[str, str, int, int]] = [
    ("float32", "int8", 0x5BB8BE4C, 0x7F),
    ("float32", "int8", 0xDBB8BE4C, 0x80),
    ("float32", "uint8", 0xBF800000, 0),
    ("float32", "uint8", 0x7F800000, 0xFF),
    ("float32", "int32", 0xFF800000, 0x80000000),
    ("float16", "int64", 0x7E00, 0),
    ("bfloat16", "uint16", 0xFFC0, 0),
]
"""Inputs that the integer cannot hold, and what they are clamped to."""


@pytest.mark.parametrize(("source", "target", "code", "expected"), INSTRUCTIONS)
def test_instructions(source: str, target: str, code: int, expected: Answers) -> None:
    assert allowed(source, target, code, ()) == expected


@pytest.mark.parametrize(
    ("source", "target", "code", "level"),
    [
        ("float64", "float16", double(1.0e300), "required"),
        ("int32", "float16", 65520, "required"),
        ("float64", "bfloat16", double(1.0e300), "recommended"),
        ("float32", "bfloat16", 0x3F818000, "required"),
    ],
)
def test_beyond_the_range_of_bfloat_infinity_is_implied(
    source: str, target: str, code: int, level: str
) -> None:
    found = exact_rulings.allow(ruling(Case("llvm-casts", "22", source, target, ())), code)
    assert found.branch.level == level


@pytest.mark.parametrize(("source", "target", "code", "expected"), WITHIN)
@pytest.mark.parametrize("instruction", ["poison", "saturating"])
def test_floats_within_the_range_are_truncated(
    source: str, target: str, code: int, expected: Answers, instruction: str
) -> None:
    assert allowed(source, target, code, (("range", instruction),)) == expected


@pytest.mark.parametrize(("source", "target", "code", "clamped"), BEYOND)
def test_floats_beyond_the_range_are_poison_or_clamped(
    source: str, target: str, code: int, clamped: int
) -> None:
    assert allowed(source, target, code, (("range", "poison"),)) == "open"
    assert allowed(source, target, code, (("range", "saturating"),)) == {clamped}
