"""c-conversions allows what C11 says, with Annex F and with GCC's choices, worked out by hand."""

from __future__ import annotations

import struct

import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.outcomes import Anything, Nan
from specs.questions import read_question
from specs.ruling import ruling

Answers = set[int] | str
VERSIONS = ("C11", "C11-F", "C11-gcc")


def double(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def single(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def allowed(version: str, source: str, target: str, code: int) -> tuple[Answers, str]:
    """Return the answers to an input, and the level at which they are wanted."""
    case = Case("c-conversions", version, source, target, ())
    found = exact_rulings.allow(ruling(case), code)
    level = found.branch.level
    match found.branch.outcome:
        case Anything():
            return "open", level
        case Nan():
            return "a NaN", level
    return set(found.codes), level


INF, NAN = float("inf"), float("nan")
SIGNALING_NAN = 0x7F800001

IN_EVERY_VERSION: list[tuple[str, str, int, Answers]] = [
    # 6.3, paragraph 2
    ("float32", "float32", single(-0.0), {0x80000000}),
    ("int8", "int8", 0x80, {0x80}),
    ("bool", "bool", 1, {1}),
    # 6.3.1.2
    ("float32", "bool", single(0.5), {1}),
    ("float32", "bool", single(-0.0), {0}),
    ("float64", "bool", 1, {1}),
    ("float64", "bool", double(NAN), {1}),
    ("int64", "bool", 1 << 32, {1}),
    ("uint8", "bool", 0, {0}),
    # 6.3.1.3
    ("bool", "int8", 1, {1}),
    ("int8", "int64", 0xFF, {(1 << 64) - 1}),
    ("uint8", "int16", 0xFF, {0x00FF}),
    ("uint64", "int64", (1 << 63) - 1, {(1 << 63) - 1}),
    ("int8", "uint8", 0xFF, {0xFF}),
    ("int32", "uint16", 65537, {1}),
    ("int16", "uint64", 0x8000, {(1 << 64) - (1 << 15)}),
    # 6.3.1.4, paragraph 1
    ("float32", "int8", single(127.75), {127}),
    ("float32", "int8", single(-128.75), {0x80}),
    ("float64", "uint8", double(-0.75), {0}),
    ("float64", "uint64", double(2.0**63), {1 << 63}),
    ("float32", "int8", single(128.0), "open"),
    ("float32", "uint8", single(-1.0), "open"),
    ("float64", "int32", double(NAN), "open"),
    ("float64", "uint32", double(INF), "open"),
    ("float64", "int64", double(-INF), "open"),
    # 6.3.1.4, paragraph 2, and 6.3.1.5
    ("bool", "float32", 1, {single(1.0)}),
    ("int64", "float32", 1 << 62, {single(2.0**62)}),
    ("uint32", "float64", 0xFFFFFFFF, {double(4294967295.0)}),
    ("float32", "float64", 1, {double(2.0**-149)}),
    ("float64", "float32", double(2.0**-149), {1}),
    ("float32", "float64", single(-INF), {double(-INF)}),
    ("float64", "float32", double(INF), {single(INF)}),
]

BETWEEN_NEIGHBORS: list[tuple[str, str, int, set[int], int]] = [
    # Ties of three types, and a number that is nearer to one of its neighbors.
    ("int32", "float32", 16777217, {0x4B800000, 0x4B800001}, 0x4B800000),
    (
        "uint64",
        "float64",
        (1 << 53) + 3,
        {0x4340000000000001, 0x4340000000000002},
        0x4340 << 48 | 2,
    ),
    ("float64", "float32", double(2.0**-150), {0, 1}, 0),
    ("float64", "float32", double(0.1), {0x3DCCCCCC, 0x3DCCCCCD}, 0x3DCCCCCD),
    ("float64", "float32", double(-(2.0**-151)), {0x80000000, 0x80000001}, 0x80000000),
    # Every real number is in range, as the type has infinities.
    ("float64", "float32", double(1e300), {0x7F7FFFFF, 0x7F800000}, 0x7F800000),
    ("float64", "float32", double(-1e300), {0xFF7FFFFF, 0xFF800000}, 0xFF800000),
    ("float64", "float32", 0x47EFFFFFEFFFFFFF, {0x7F7FFFFF, 0x7F800000}, 0x7F7FFFFF),
    ("float64", "float32", 0xC7EFFFFFEFFFFFFF, {0xFF7FFFFF, 0xFF800000}, 0xFF7FFFFF),
    ("float64", "float32", 0xC7EFFFFFF0000000, {0xFF7FFFFF, 0xFF800000}, 0xFF800000),
]
"""Inputs, the neighbors that C11 leaves to the implementation, and the one that Annex F wants."""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("source", "target", "code", "expected"), IN_EVERY_VERSION)
def test_what_every_version_says(
    version: str, source: str, target: str, code: int, expected: Answers
) -> None:
    level = "unspecified" if expected == "open" else "required"
    assert allowed(version, source, target, code) == (expected, level)


@pytest.mark.parametrize(("source", "target", "code", "either", "nearest"), BETWEEN_NEIGHBORS)
def test_annex_f_rounds_where_the_implementation_may_choose(
    source: str, target: str, code: int, either: set[int], nearest: int
) -> None:
    assert allowed("C11", source, target, code)[0] == either
    for version in VERSIONS[1:]:
        assert allowed(version, source, target, code) == ({nearest}, "required")


@pytest.mark.parametrize(
    ("source", "target", "code", "wrapped"),
    [
        ("uint8", "int8", 200, 200),
        ("int64", "int32", (1 << 32) + (1 << 31), 1 << 31),
        ("uint64", "int64", (1 << 64) - 1, (1 << 64) - 1),
        ("int16", "int8", 0xFF7F, 0x7F),
    ],
)
def test_gcc_says_what_a_signed_type_cannot_represent_becomes(
    source: str, target: str, code: int, wrapped: int
) -> None:
    for version in VERSIONS[:2]:
        assert allowed(version, source, target, code)[0] == "open"
    assert allowed("C11-gcc", source, target, code) == ({wrapped}, "required")


@pytest.mark.parametrize(("source", "target"), [("float32", "float64"), ("float64", "float32")])
def test_the_sign_of_a_zero_is_required_by_annex_f(source: str, target: str) -> None:
    code, expected = (0x80000000, 1 << 63) if source == "float32" else (1 << 63, 0x80000000)
    assert allowed("C11", source, target, code)[0] == {expected, 0}
    for version in VERSIONS[1:]:
        assert allowed(version, source, target, code) == ({expected}, "required")


@pytest.mark.parametrize("version", VERSIONS)
def test_nans_are_recommended_as_signaling_ones_are_undefined(version: str) -> None:
    assert allowed(version, "float32", "float64", SIGNALING_NAN) == ("a NaN", "recommended")
    assert allowed(version, "float64", "float32", double(NAN)) == ("a NaN", "recommended")
    kept = ({SIGNALING_NAN}, "recommended")
    assert allowed(version, "float32", "float32", SIGNALING_NAN) == kept


def test_a_question_that_names_no_document_is_not_about_c() -> None:
    asked = [case.document for case in read_question(["float32", "int8", "300"]).cases]
    assert "c-conversions" not in asked
    named = read_question(["c-conversions", "float32", "int8", "300"]).cases
    assert [case.id for case in named] == ["c-conversions:C11-F/float32/int8"]
