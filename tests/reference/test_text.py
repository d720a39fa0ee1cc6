"""Text by the definition and by the kernels: two independent readers, and a writer."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.cast.text_inputs import texts
from oracles.reference import exact, exact_text, kernel_text
from oracles.reference.exact_text import exact_decimal
from specs.branches import Ruling
from specs.formats import Format, format_named, formats
from specs.outcomes import Nan, PlainText
from specs.ruling import ruling
from specs.selection import select

NUMERIC = [fmt for fmt in formats().values() if fmt.kind in ("float", "integer")]
TEXT_CASES = [
    case.id
    for case in select(["onnx-cast:25"])
    if case.source == "string" and not ruling(case).is_rejection and case.target != "string"
]
NUMBER = st.from_regex(r"\A[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\Z")
NEAR_NUMBERS = st.text(alphabet="0123456789+-.eE infINFaA\u0663", max_size=12)


def ruling_of(name: str) -> Ruling:
    return next(ruling(case) for case in select(["onnx-cast:25"]) if case.id == name)


def assert_readers_agree(rules: Ruling, literal: str) -> None:
    allowed = exact_text.allow_text(rules, literal)
    answer = kernel_text.answer_text(rules, literal)
    if allowed.codes:
        assert answer in allowed.codes, literal
    if isinstance(allowed.branch.outcome, Nan):
        assert any(answer in codes for codes in rules.target.nan_codes), literal


@pytest.mark.parametrize("name", TEXT_CASES)
def test_both_readers_agree_on_the_suites_texts(name: str) -> None:
    rules = ruling_of(name)
    for literal in texts(rules.target, np.random.default_rng(7), 200):
        assert_readers_agree(rules, literal)


LITERALS = ("inf", "INF", "+Inf", "-INF", "-inf", "nan", "NaN", "1.5e3", "-8", "+0E2")


END_OF_LETTERS = 0x20000
"""Only below this do code points fold to ASCII."""


@cache
def near_literals() -> list[str]:
    """Literals with letters replaced by non-ASCII ones that case or width folding maps to them."""
    texts = ["İNF", "i̇nf", "ɪɴꜰ", "ɴan", "ſ", "K", "∞", "-∞", "−1", "1‚5", "ｉｎｆ", "１．５"]
    for letter in map(chr, range(0x80, END_OF_LETTERS)):
        compatible = unicodedata.normalize("NFKC", letter)
        folded = {letter.upper(), letter.lower(), letter.casefold(), compatible}
        plain = {case for text in folded for case in (text.upper(), text.lower()) if case.isascii()}
        texts += [
            literal.replace(text, letter, 1)
            for text in plain
            for literal in LITERALS
            if text.strip() and text in literal
        ]
    return list(dict.fromkeys(texts))


def test_near_literals_include_the_known_traps() -> None:
    assert {"ınf", "-ıNF", "ⁿaN", "－8", "1.5ℯ3", "㏌f"} <= set(near_literals())


@pytest.mark.parametrize("name", TEXT_CASES)
def test_neither_reader_takes_letters_beyond_ascii_for_a_literal(name: str) -> None:
    rules = ruling_of(name)
    no_literal = kernel_text.answer_text(rules, "no literal")
    for literal in near_literals():
        assert exact_text.read_literal(literal).kind == "text-other", literal
        assert kernel_text.answer_text(rules, literal) == no_literal, literal


@given(st.sampled_from(TEXT_CASES[::3]), NUMBER | NEAR_NUMBERS)
def test_both_readers_agree_on_any_text(name: str, literal: str) -> None:
    assert_readers_agree(ruling_of(name), literal)


@given(NUMBER)
def test_both_scanners_read_the_same_number(literal: str) -> None:
    read, scanned = exact_text.read_literal(literal), kernel_text.scan(literal)
    assert scanned is not None
    assert read.number is not None
    assert (read.kind == "text-whole") == scanned.plain_whole
    assert bool(read.number.sign) == scanned.negative
    value = scanned.digits * Fraction(10) ** scanned.power
    if value.denominator == 1:
        assert read.number.significand * Fraction(2) ** read.number.exponent == value


@given(NEAR_NUMBERS)
def test_both_scanners_reject_the_same_texts(literal: str) -> None:
    assert (exact_text.read_literal(literal).number is None) == (kernel_text.scan(literal) is None)


@st.composite
def patterns(draw: st.DrawFn) -> tuple[Format, int]:
    fmt = draw(st.sampled_from(NUMERIC))
    return fmt, draw(st.integers(0, fmt.mask))


@given(patterns())
def test_the_shortest_text_is_plain_and_reads_back(pattern: tuple[Format, int]) -> None:
    fmt, code = pattern
    line = kernel_text.shortest_text(fmt, code)
    assert exact_text.reads_back(fmt, code, line)
    assert line in ("NaN", "INF", "-INF") or exact_text.PLAIN.fullmatch(line)


@pytest.mark.parametrize(
    ("dtype", "code", "line"),
    [
        ("float32", 0x3DCCCCCD, "0.1"),
        ("float64", 0x400921FB54442D18, "3.141592653589793"),
        ("float16", 0x7BFF, "65500"),
        ("float32", 0xFF800000, "-INF"),
        ("float8e4m3fn", 0x7F, "NaN"),
        ("int8", 0x80, "-128"),
        ("uint64", 2**64 - 1, "18446744073709551615"),
    ],
)
def test_known_shortest_texts(dtype: str, code: int, line: str) -> None:
    assert kernel_text.shortest_text(format_named(dtype), code) == line


@pytest.mark.parametrize(
    ("answer", "reads"),
    [("0.1", True), ("0.10000000149", True), ("0.2", False), ("1e-1", True), ("x", False)],
)
def test_a_text_reads_back_by_its_value(answer: str, reads: bool) -> None:
    assert exact_text.reads_back(format_named("float32"), 0x3DCCCCCD, answer) == reads


@pytest.mark.parametrize(
    ("answer", "allowed"),
    # The answer, and whether it is allowed if it need not read back, and if it must.
    [("1.5", (True, True)), ("1", (True, False)), ("2", (True, False)), ("1.4", (False, False))],
)
def test_a_plain_text_that_is_rounded_must_be_near_its_value(
    answer: str, allowed: tuple[bool, bool]
) -> None:
    source, code = format_named("float32"), 0x3FC00000
    assert allowed == tuple(
        exact_text.accepts(source, PlainText(must_read_back), code, answer)
        for must_read_back in (False, True)
    )


@given(st.integers(0, 2**60), st.integers(-80, 40))
def test_exact_decimals_are_exact(significand: int, exponent: int) -> None:
    assert Fraction(exact_decimal(significand, exponent)) == significand * Fraction(2) ** exponent


@given(patterns())
def test_wrong_values_do_not_read_back(pattern: tuple[Format, int]) -> None:
    fmt, code = pattern
    datum = exact.decode(fmt, code)
    if not isinstance(datum, exact.Number) or datum.significand == 0:
        return
    value = datum.significand * Fraction(2) ** datum.exponent * (-1) ** datum.sign
    wrong = [-value, value * Fraction(2) ** (2 ** max(fmt.entry.exponent, 1)), value * 2]
    if fmt.is_integral:
        wrong += [value + 2**fmt.bits, value - 2**fmt.bits, value + 1, value + Fraction(1, 2)]
    for other in wrong:
        digits = exact_decimal(abs(other.numerator), 1 - other.denominator.bit_length())
        assert not exact_text.reads_back(fmt, code, f"{'-' if other < 0 else ''}{digits}"), digits


@pytest.mark.parametrize("answer", ["+-nan", "--nan", "nan(1)", "1"])
def test_only_a_nan_reads_back_as_one(answer: str) -> None:
    assert not exact_text.reads_back(format_named("float32"), 0x7FC00000, answer)


@pytest.mark.parametrize("literal", ["1e" + "0" * 4100 + "1", "1e-" + "0" * 4100 + "1"])
def test_leading_zeros_of_an_exponent_are_ignored(literal: str) -> None:
    assert_readers_agree(ruling_of("onnx-cast:25/string/float32"), literal)
    number = exact_text.read_literal(literal).number
    assert number == exact_text.read_literal("1e-1" if "-" in literal else "1e1").number


@pytest.mark.parametrize("literal", ["1e400", "1e5000", "1e6001", "1e99999"])
def test_huge_numbers_overflow_in_the_kernels(literal: str) -> None:
    for dtype in ("float64", "float16", "float8e4m3fn", "int64"):
        scanned = kernel_text.scan(literal)
        assert scanned is not None
        _, converted = kernel_text.read_number(format_named(dtype), scanned)
        assert converted.overflow
