"""triton-cast rounds casts to fewer bits as the page says of ``fp_downcast_rounding``."""

from __future__ import annotations

import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.outcomes import Anything
from specs.ruling import ruling

Answers = set[int] | str


def allowed(source: str, target: str, code: int, rounding: str = "") -> Answers:
    modes = (("fp_downcast_rounding", rounding),) if rounding else ()
    found = exact_rulings.allow(ruling(Case("triton-cast", "3.9", source, target, modes)), code)
    return "open" if isinstance(found.branch.outcome, Anything) else set(found.codes)


@pytest.mark.parametrize(
    ("code", "nearest", "truncated"),
    [
        (0x3F880000, 0x38, 0x38),  # 1.0625, a tie
        (0x3F880001, 0x39, 0x38),
        (0x3F980000, 0x3A, 0x39),  # 1.1875, another
        (0xBF880001, 0xB9, 0xB8),
        (0x3FF80000, 0x40, 0x3F),  # 1.9375: the mantissa carries
        (0x3C100001, 0x05, 0x04),  # below the smallest normal number
    ],
)
def test_downcasts_round_as_asked(code: int, nearest: int, truncated: int) -> None:
    pair = "float32", "float8e4m3fn"
    assert allowed(*pair, code, "rtne") == allowed(*pair, code, "unset") == {nearest}
    assert allowed(*pair, code, "rtz") == {truncated}


@pytest.mark.parametrize("code", [0x7FC00000, 0x7F800000, 0x44000000])
def test_what_is_no_number_of_the_target_is_open(code: int) -> None:
    assert allowed("float32", "float8e4m3fn", code, "rtne") == "open"


def test_the_default_is_implied() -> None:
    found = exact_rulings.allow(
        ruling(
            Case("triton-cast", "3.9", "float32", "float16", (("fp_downcast_rounding", "unset"),))
        ),
        0x3F801000,
    )
    assert found.branch.level == "recommended"


@pytest.mark.parametrize(
    ("target", "code", "expected"),
    [
        ("int32", 0x40200000, {2}),
        ("int8", 0xC02CCCCD, {0xFE}),  # -2.7
        ("uint8", 0xBF000000, {0}),  # -0.5
        ("int8", 0x43FF0000, "open"),  # 510
        ("int8", 0x7FC00000, "open"),
        ("int8", 0x7F800000, "open"),
    ],
)
def test_fractions_are_cut_where_the_rest_fits(target: str, code: int, expected: Answers) -> None:
    assert allowed("float32", target, code) == expected
    if expected != "open":
        found = exact_rulings.allow(ruling(Case("triton-cast", "3.9", "float32", target, ())), code)
        assert found.branch.level == "recommended"


@pytest.mark.parametrize(
    ("source", "target", "code", "expected"),
    [
        ("int32", "bfloat16", 2, {0x4000}),
        ("int32", "bfloat16", 257, "open"),
        ("bfloat16", "float64", 0x4000, {0x4000000000000000}),
        ("bfloat16", "int32", 0x4000, {2}),
        ("int32", "int8", 300, "open"),
        ("float8e5m2", "float8e5m2fnuz", 0x80, {0}),
        ("bool", "float16", 1, {0x3C00}),
        ("float16", "bool", 0x4000, "open"),
    ],
)
def test_a_value_that_the_target_has_is_kept(
    source: str, target: str, code: int, expected: Answers
) -> None:
    assert allowed(source, target, code) == expected
