"""stablehlo-reduce-precision gives the page's answers, which are worked out here from its text."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import few_inputs
from oracles.reference.exact_rulings import allow
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.outcomes import Anything, Nan
from specs.ruling import ruling
from tests.reference.thinned import thinned

WIDTHS = {"float64": (11, 52), "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}
"""The operand's types, each with its exponent and mantissa bits."""
REDUCED = ((5, 10), (8, 7), (5, 2), (4, 3), (3, 4), (8, 23), (11, 52))
INFINITY = "infinity"
Answer = Fraction | str

CASES = [
    case
    for case in edition(document_named("stablehlo-reduce-precision"), "1.20").cases()
    if case.example is None and case.source == case.target
]


def rounded(value: Fraction, mantissa: int, lowest: int | None) -> Fraction:
    """Round to ``mantissa`` bits after the first, ties to even; ``lowest`` ends the exponents."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > value
    last = (exponent if lowest is None else max(exponent, lowest)) - mantissa
    return round(value / Fraction(2) ** last) * Fraction(2) ** last


def formal(value: Fraction, reduced: tuple[int, int], own: tuple[int, int]) -> Answer:
    """The page's formal rules: round the mantissa, then check whether the exponent fits."""
    (exponent, mantissa), bias = reduced, (1 << (reduced[0] - 1)) - 1
    own_lowest = 2 - (1 << (own[0] - 1))
    result = rounded(value, min(mantissa, own[1]), own_lowest)
    if exponent < own[0]:
        if result >= Fraction(2) ** (bias + 1):
            return INFINITY
        if result < Fraction(2) ** (1 - bias):
            return Fraction(0)
    return ended(result, own)


def converted(value: Fraction, reduced: tuple[int, int], own: tuple[int, int]) -> Answer:
    """The page's first sentence: a conversion to a type that has subnormals, and back."""
    bias = (1 << (reduced[0] - 1)) - 1
    result = rounded(value, reduced[1], 1 - bias)
    if result >= Fraction(2) ** (bias + 1):
        return INFINITY
    return ended(rounded(result, own[1], 2 - (1 << (own[0] - 1))) if result else result, own)


def ended(value: Fraction, own: tuple[int, int]) -> Answer:
    return INFINITY if value >= Fraction(2) ** (1 << (own[0] - 1)) else value


def number(dtype: str, code: int) -> float:
    match dtype:
        case "float64":
            return struct.unpack("<d", struct.pack("<Q", code))[0]  # type: ignore[no-any-return]
        case "float16":
            return struct.unpack("<e", struct.pack("<H", code))[0]  # type: ignore[no-any-return]
        case "bfloat16":
            code <<= 16
    return struct.unpack("<f", struct.pack("<I", code))[0]  # type: ignore[no-any-return]


def signed(answer: Answer, value: float) -> tuple[str, bool]:
    """An answer in words, with the sign of the input."""
    return str(answer), str(value).startswith("-")


def seen(value: float) -> tuple[str, bool]:
    exact = INFINITY if abs(value) == float("inf") else str(abs(Fraction(value)))
    return exact, str(value).startswith("-")


def test_the_cases_are_four_types_by_seven_precisions() -> None:
    found = {(case.source, case.mode["bits"]) for case in CASES}
    assert found == {(dtype, f"e{e}m{m}") for dtype in WIDTHS for e, m in REDUCED}
    assert len(CASES) == len(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_answers_are_those_of_the_page(case: Case) -> None:
    rules, own = ruling(case), WIDTHS[case.source]
    exponent, mantissa = map(int, case.mode["bits"].removeprefix("e").split("m"))
    inputs = few_inputs(case, rules, 1_000)
    if inputs.size > 2_000:
        inputs = np.unique(np.concatenate([thinned(inputs, 800), inputs[:150], inputs[-150:]]))
    open_ones = 0
    for code in inputs.tolist():
        value, allowed = number(case.source, code), allow(rules, code)
        if value != value:
            assert isinstance(allowed.branch.outcome, Nan)
            assert allowed.branch.level == "recommended"
            continue
        if isinstance(allowed.branch.outcome, Anything):
            # A subnormal of float16 that has more digits than a mantissa of seven bits.
            assert (case.source, exponent, mantissa) == ("float16", 8, 7)
            assert 0 < abs(value) < 2.0**-14
            open_ones += 1
            continue
        assert allowed.branch.level == "required"
        found = {seen(number(case.source, each)) for each in allowed.codes}
        if value in (0, float("inf"), -float("inf")):
            assert found == {seen(value)}
            continue
        magnitude = abs(Fraction(value))
        answers = (reading(magnitude, (exponent, mantissa), own) for reading in (formal, converted))
        assert found == {signed(answer, value) for answer in answers}, hex(code)
    assert bool(open_ones) == ((case.source, exponent, mantissa) == ("float16", 8, 7))


def float64_code(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (0x7FF0000000000000, 0x7FF0000000000000),
        (0x0000000000000001, 0x0000000000000000),
        (float64_code(0.0), float64_code(0.0)),
        (float64_code(65519.0), float64_code(65504.0)),
        (float64_code(65520.0), 0x7FF0000000000000),
    ],
)
def test_the_example_of_the_page_follows_from_the_rules(given: int, answer: int) -> None:
    rules = ruling(case_of("float64", "e5m10"))
    assert allow(rules, given).codes == (answer,)


def test_the_printed_nan_is_kept_by_the_example_alone() -> None:
    printed = 0x7FFFFFFFFFFFFFFF
    examples = document_named("stablehlo-reduce-precision").entry.examples
    assert examples["nan"].table == {f"{printed:#018x}": f"{printed:#018x}"}
    assert examples["nan"].level == "recommended"
    allowed = allow(ruling(case_of("float64", "e5m10")), printed)
    assert (allowed.branch.outcome, allowed.branch.level) == (Nan("any"), "recommended")


def case_of(dtype: str, bits: str) -> Case:
    return Case("stablehlo-reduce-precision", "1.20", dtype, dtype, (("bits", bits),))


@pytest.mark.parametrize(
    ("dtype", "bits", "value", "answers"),
    [
        ("float64", "e5m10", 2.0**-14, {2.0**-14}),  # the smallest normal value of float16
        ("float64", "e5m10", 2.0**-15, {0.0, 2.0**-15}),  # a subnormal, or flushed
        ("float64", "e5m10", 2.0**-14 - 2.0**-25, {0.0, 2.0**-14}),  # rounded up as a subnormal
        ("float64", "e5m10", 2.0**-14 - 2.0**-26, {2.0**-14}),  # rounded up by the formal rules
        ("float64", "e5m10", 2.0**-14 - 2.0**-26 - 2.0**-60, {0.0, 2.0**-14}),
        ("float64", "e5m10", 1 + 2.0**-11, {1.0}),  # a tie, to even
        ("float64", "e5m10", 1 + 2.0**-11 + 2.0**-52, {1 + 2.0**-10}),
        ("float64", "e3m4", 15.75, {float("inf")}),  # 15.5 is the largest value
    ],
)
def test_values_worked_out_by_hand(
    dtype: str, bits: str, value: float, answers: set[float]
) -> None:
    codes = allow(ruling(case_of(dtype, bits)), float64_code(value)).codes
    assert {number(dtype, code) for code in codes} == answers


def test_conflicts_are_noted_where_the_sentences_disagree() -> None:
    rules = document_named("stablehlo-reduce-precision").entry.rules
    assert {name for name, rule in rules.items() if rule.conflict} == {
        "from-float64", "from-float32", "from-float16", "from-bfloat16",
        "from-float16-with-more-exponents",
    }  # fmt: skip
