"""Texts and numbers of the tier quick lie where parsers and writers switch to another path."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from sys import float_info

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference.exact_text import NUMBER

SEEDS = pytest.mark.parametrize("seed", [0, 1])


def numbers(target: str, seed: int) -> list[str]:
    return [text for text in quick_inputs("string", target, seed, 20) if NUMBER.fullmatch(text)]


def digits_of(text: str) -> str:
    found = NUMBER.fullmatch(text)
    assert found is not None
    return (found[2] + (found[3] or "")).lstrip("0")


def value_of(text: str) -> Fraction | None:
    """The exact value of a number; None if it is too large or too small to be computed quickly."""
    exponent = text.lower().partition("e")[2] or "0"
    return Fraction(text) if len(text) < 4_000 and abs(int(exponent)) < 2_000 else None


def is_tie(value: Fraction) -> bool:
    """Whether a positive value lies halfway between two doubles."""
    near = float(value)
    lower = near if Fraction(near) < value else nextafter(near, -inf)
    upper = nextafter(lower, inf)
    return upper < inf and 2 * value == Fraction(lower) + Fraction(upper)


@SEEDS
def test_ties_of_float64_of_every_magnitude_are_asked_in_full(seed: int) -> None:
    ties = {}
    for text in numbers("float64", seed):
        value = value_of(text)
        if value is not None and 0 < value <= float_info.max and is_tie(value):
            ties[text] = value
    # The longest tie has 767 digits behind its first, and stands before the least normal value.
    assert max(len(digits_of(text).rstrip("0")) for text in ties) == 768
    assert min(ties.values()) == Fraction(1, 2**1075)
    binades = sorted({value.numerator.bit_length() - value.denominator.bit_length()
                      for value in ties.values()})  # fmt: skip
    assert max(np.diff(binades)) <= 200
    assert binades[-1] >= 1000


@SEEDS
@pytest.mark.parametrize("most", [16, 17, 18, 19, 20, 40, 100, 308, 500, 767, 768, 769, 800, 1_000])
def test_a_digit_behind_any_number_of_digits_decides(most: int, seed: int) -> None:
    """A parser that reads only ``most`` digits is wrong on some text; Python's own is right."""
    wrong = 0
    for text in numbers("float64", seed):
        digits = digits_of(text)
        value = value_of(text)
        if value is None or len(digits) <= most:
            continue
        rest = abs(value) / int(digits)
        cut = int(digits[:most]) * 10 ** (len(digits) - most) * rest
        wrong += cut < Fraction(2) ** 1024 and float(cut) != abs(float(text))
    assert wrong


@SEEDS
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "bfloat16", "float8e5m2"])
def test_numbers_end_with_more_digits_than_are_converted_at_once(target: str, seed: int) -> None:
    lengths = {len(digits_of(text)) for text in numbers(target, seed)}
    assert any(1_100 < each < 4_300 for each in lengths)
    assert any(4_300 < each < 4_999 for each in lengths)


@SEEDS
@pytest.mark.parametrize(("target", "limit"), [("float32", 10), ("float64", 22)])
def test_significands_of_words_are_scaled_by_exact_powers_of_ten_and_by_the_next(
    target: str, limit: int, seed: int
) -> None:
    powers: dict[int, set[int]] = {}
    for text in numbers(target, seed):
        if (digits := digits_of(text)) and (value := value_of(text)):
            scale = abs(value) / int(digits)
            power = len(str(scale.numerator)) - len(str(scale.denominator))
            powers.setdefault(len(digits), set()).add(power)
    for count in range(15, 20):
        assert any(0 < each <= limit + 1 for each in powers[count]), count
        assert any(-limit - 1 <= each < 0 for each in powers[count]), count
    assert {limit, -limit, limit + 1, -limit - 1} <= powers[16]


@SEEDS
@pytest.mark.parametrize("target", ["int8", "int64", "float16", "float64"])
def test_a_point_stands_before_between_and_behind_the_digits_of_a_word(
    target: str, seed: int
) -> None:
    split = (text.partition(".") for text in numbers(target, seed))
    found = {(len(whole), len(whole + rest)) for whole, _, rest in split if rest.isdigit()}
    for count in range(18, 23):
        assert {(1, count), (count - 2, count), (count - 1, count)} <= found


def test_every_printable_character_of_ascii_is_copied() -> None:
    everywhere = "".join(map(chr, range(0x20, 0x7F)))
    assert everywhere in quick_inputs("string", "string", 0, 20)


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_small_integers_and_powers_of_ten_are_written(source: str) -> None:
    codes = quick_inputs(source, "string", 0, 0)
    asked = set(codes.view(source).tolist())
    assert {*range(257)} <= asked
    if "int" in source:
        most = np.iinfo(source).max
        near = {10**power + step for power in range(20) for step in (-1, 0, 1)}
        assert {each for each in near if each <= most} <= asked
        assert {-each for each in near if each <= most} <= asked or source.startswith("u")
    else:
        kind = np.dtype(source).type
        for power in range(-25, 26):
            exact = kind(f"1e{power}")
            beside = {float(np.nextafter(exact, kind(side))) for side in (0, np.inf)}
            assert {float(exact), *beside} <= asked, power
            assert {-each for each in (float(exact), *beside)} <= asked, power


@SEEDS
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [2, 3, 4, 8, 9])
def test_a_block_of_zeros_stands_at_each_place_of_an_integer(
    size: int, source: str, seed: int
) -> None:
    asked = quick_inputs(source, "string", seed, 0).view(source).tolist()
    length = len(str(np.iinfo(source).max))
    for low in range(size, length - size, size):
        block, unit = 10**size, 10**low
        found = [each for each in asked if each // unit > block and each // unit % block == 0]
        assert any(each % unit for each in found), low
        assert any(each % unit == 0 for each in found), low


@SEEDS
@pytest.mark.parametrize(("source", "most"), [("float32", 9), ("float64", 17)])
def test_floats_have_shortest_decimals_of_every_number_of_digits(
    source: str, most: int, seed: int
) -> None:
    codes = quick_inputs(source, "string", seed, 0)
    values = codes.view(source)
    near = values[(np.abs(values) > 1e-20) & (np.abs(values) < 1e20)]
    counts = {len(digits_of(np.format_float_scientific(each, trim="-")).rstrip("0"))
              for each in near}  # fmt: skip
    assert {*range(1, most + 1)} <= counts
    last = 2.0 ** (np.finfo(source).nmant + 1)
    assert np.count_nonzero((values > last) & (values < last * 2**11)) >= 30
