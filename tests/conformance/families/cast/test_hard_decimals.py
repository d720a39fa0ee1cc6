"""Decimals of 19 digits beside ties: as near as claimed, and those that brute force finds."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from conformance.families.cast.text_inputs import _first_within, decimals_by_ties
from specs.formats import format_named


def test_the_first_multiple_within_a_window_is_the_one_that_trying_finds() -> None:
    chance = Random(1)
    for _ in range(5_000):
        modulus = chance.randrange(2, 60)
        factor, first, width = (chance.randrange(modulus) for _ in range(3))
        tried = (x for x in range(modulus) if (factor * x - first) % modulus <= width)
        found = _first_within(factor, modulus, first, width)
        assert found == next(tried, None), (factor, modulus, first, width)


@pytest.mark.parametrize(
    ("name", "digits", "least"), [("float64", 53, -1074), ("float32", 24, -149)]
)
def test_a_decimal_lies_on_each_side_of_a_tie(name: str, digits: int, least: int) -> None:
    """By numpy's formats and fractions, decimals lie on both sides of ties; half are very near."""
    found = [Fraction(text) for text in decimals_by_ties(format_named(name))]
    sides, nearest = set(), []
    for value in found:
        low = np.dtype(name).type(0)
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > value
        unit = Fraction(2) ** max(exponent - digits + 1, least)
        whole = value // unit
        low = np.ldexp(
            np.dtype(name).type(whole), unit.numerator.bit_length() - unit.denominator.bit_length()
        )
        assert (
            Fraction(float(low))
            <= value
            < Fraction(float(np.nextafter(low, low.dtype.type(np.inf))))
        )
        beyond = value / unit - whole - Fraction(1, 2)
        sides.add(beyond > 0)
        nearest.append(abs(beyond))
    assert sides == {False, True}
    assert len([each for each in nearest if each < Fraction(1, 2**55)]) >= len(found) // 2
    assert all(0 < each < Fraction(1, 2**8) for each in nearest)
