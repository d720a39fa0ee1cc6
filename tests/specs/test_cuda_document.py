"""cuda-convert gives what the comments of CUDA's headers say, worked out here by hand."""

from __future__ import annotations

import pytest

from oracles.reference.exact_rulings import allow
from specs.cases import Case
from specs.outcomes import Anything, Nan
from specs.ruling import ruling

SAT, NOSAT = ("saturation", "SATFINITE"), ("saturation", "NOSAT")


def case_of(source: str, target: str, *modes: tuple[str, str]) -> Case:
    return Case("cuda-convert", "13.5", source, target, modes)


def rounding(name: str) -> tuple[str, str]:
    return ("rounding", f"cudaRound{name}")


@pytest.mark.parametrize(
    ("case", "answers"),
    [
        # 448 and 464, the tie above it, 465, and 1.0625, a tie that goes to the even 1.
        (
            case_of("float32", "float8e4m3fn", SAT),
            {0x43E00000: 0x7E, 0x43E80000: 0x7E, 0x43E88000: 0x7E, 0x3F880000: 0x38},
        ),
        (case_of("float32", "float8e4m3fn", NOSAT), {0x43E80000: 0x7E}),
        (case_of("float32", "float8e5m2", SAT), {0x7F800000: 0x7B, 0xFF800000: 0xFB}),
        (case_of("float32", "float8e5m2", NOSAT), {0x7F800000: 0x7C, 0x47700000: 0x7C}),
        # 2.25 is nearest to 2; NaN is the largest value, of either sign.
        (
            case_of("float32", "float4e2m1", rounding("Nearest")),
            {0x40100000: 0x4, 0xFFC00000: 0x7, 0xFF800000: 0xF},
        ),
        (case_of("float32", "float4e2m1", rounding("PosInf")), {0x40200000: 0x5, 0xC0200000: 0xC}),
        (case_of("float32", "float4e2m1", rounding("MinInf")), {0x40200000: 0x4, 0xC0200000: 0xD}),
        # The middle between 1 and 2 is rounded up; 2^-149 and zero are clipped to 2^-127.
        (
            case_of("float32", "float8e8m0", SAT, rounding("Nearest")),
            {0x3FC00000: 0x80, 0x3FBFFFFF: 0x7F, 1: 0x00, 0: 0x00, 0x7F7FFFFF: 0xFE},
        ),
        (
            case_of("float64", "float8e8m0", NOSAT, rounding("Zero")),
            {0x47EFFFFFFFFFFFFF: 0xFE},
        ),
        (case_of("float16", "int32"), {0x7C00: 0x7FFFFFFF, 0x7E00: 0, 0xBE00: 0xFFFFFFFF}),
        (case_of("float16", "int64"), {0x7E00: 1 << 63}),
        (case_of("bfloat16", "uint64"), {0x7FC0: 1 << 63, 0xBF80: 0}),
        (case_of("float8e4m3fn", "uint8"), {0x7E: 0xFF, 0xB8: 0, 0x7F: 0}),
        (case_of("int32", "float16", rounding("Zero")), {2049: 0x6800, 2051: 0x6801}),
        (case_of("int32", "bfloat16"), {257: 0x4380, 259: 0x4382}),
    ],
    ids=str,
)
def test_values_worked_out_by_hand(case: Case, answers: dict[int, int]) -> None:
    found = {pattern: allow(ruling(case), pattern).codes for pattern in answers}
    assert found == {pattern: (code,) for pattern, code in answers.items()}


@pytest.mark.parametrize("target", ["float8e4m3fn", "float8e5m2"])
def test_what_becomes_of_nan_in_fp8_is_open(target: str) -> None:
    assert allow(ruling(case_of("float32", target, SAT)), 0x7FC00000).branch.outcome == Anything()


@pytest.mark.parametrize(
    ("case", "pattern"),
    [
        (case_of("float32", "float8e4m3fn", NOSAT), 0x43E88000),
        (case_of("float64", "float8e8m0", NOSAT, rounding("Zero")), 0x47F0000000000000),
        (case_of("float32", "float8e8m0", NOSAT, rounding("Nearest")), 0x7F400000),
        (case_of("float32", "float8e8m0", SAT, rounding("PosInf")), 0xFFC00000),
    ],
    ids=str,
)
def test_what_becomes_nan(case: Case, pattern: int) -> None:
    assert allow(ruling(case), pattern).branch.outcome == Nan("any")


@pytest.mark.parametrize("target", ["float4e2m1", "float6e3m2"])
def test_ties_in_fp6_and_fp4_are_open(target: str) -> None:
    tie = {"float4e2m1": 0x40200000, "float6e3m2": 0x40100000}[target]
    low, high = {"float4e2m1": (4, 5), "float6e3m2": (16, 17)}[target]
    case = case_of("float32", target, rounding("Nearest"))
    assert allow(ruling(case), tie).codes == (low, high)


@pytest.mark.parametrize(
    ("case", "pattern", "level"),
    [
        (case_of("float32", "float8e5m2", SAT), 0xFF800000, "required"),
        (case_of("float32", "float8e4m3fn", NOSAT), 0x7F800000, "required"),
        (case_of("float32", "float8e4m3fn", NOSAT), 0xFF800000, "recommended"),
        (case_of("float32", "float8e8m0", SAT, rounding("Zero")), 1, "required"),
        (case_of("float32", "float8e8m0", SAT, rounding("Zero")), 0, "recommended"),
        (case_of("float32", "float16", rounding("Nearest")), 0x7F7FFFFF, "recommended"),
        (case_of("float8e8m0", "bfloat16"), 0xFF, "required"),
        (case_of("float8e8m0", "float32"), 0xFF, "recommended"),
        (case_of("float8e5m2", "uint8"), 0xC0, "required"),
        (case_of("float8e5m2", "int8"), 0xF7, "recommended"),
        (case_of("float8e5m2", "int8"), 0x77, "required"),
    ],
    ids=str,
)
def test_what_the_comments_only_imply_is_recommended(case: Case, pattern: int, level: str) -> None:
    assert allow(ruling(case), pattern).branch.level == level


def test_a_negative_scale_is_open() -> None:
    case = case_of("float32", "float8e8m0", SAT, rounding("PosInf"))
    assert allow(ruling(case), 0xBF800000).branch.outcome == Anything()
