"""Decimals of 19 digits that lie nearer a float's tie than a parser's first product can tell.

A fast parser multiplies the digits by a power of ten of which it has 64 or 128 bits. Where the
exact product lies this near a tie, those bits do not say on which side, and the parser must notice
it and go on with more. Random digits are never this near, so this module computes the nearest
decimals for a power of ten, one on each side of a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, log10

import numpy as np

from oracles.reference.exact import Number, decode
from specs.formats import Format

POWERS = 16
"""Number of powers of ten, evenly spaced over a float's whole range, that decimals have."""
LEAST_DIGITS = 10**18
"""The smallest number of 19 digits, which is as many as every word of 64 bits holds."""
NARROWINGS = 80
"""Halvings of the distance from the tie; 64 bits of digits bring it to about 2^-64 of a unit."""


def decimals_by_ties(target: Format) -> Iterator[str]:
    """For powers of ten over all of a float's range, the decimals just below and above a tie."""
    least, largest = decode(target, 1), decode(target, target.max_code)
    assert isinstance(least, Number)
    assert isinstance(largest, Number)
    top = largest.exponent + largest.significand.bit_length()
    digits = log10(LEAST_DIGITS)
    # Two digits fewer at either end, so that the whole binade of a decimal is inside the range.
    lowest, highest = (
        ceil(least.exponent * log10(2) - digits + 2),
        floor(top * log10(2) - digits - 2),
    )
    for power in np.linspace(lowest, highest, POWERS).astype(int).tolist():
        scale = Fraction(10) ** power
        binade = _exponent_of(LEAST_DIGITS * scale) + 1
        start = ceil(Fraction(2) ** binade / scale)
        unit = max(binade - target.precision + 1, least.exponent)
        for is_above in (False, True):
            yield f"{_nearest_half(scale / Fraction(2) ** unit, start, is_above)}e{power}"


def _exponent_of(value: Fraction) -> int:
    """The largest integer ``e`` with ``2**e <= value``."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def _nearest_half(step: Fraction, start: int, is_above: bool) -> int:
    """The number from ``start`` up to twice it whose multiple of ``step`` is nearest a half.

    Its fraction lies on one side of the half: the window there is halved until no number is in it.
    """
    # One is ``2 * step.denominator`` units, so that a half is a whole number of them.
    modulus, half = 2 * step.denominator, step.denominator
    factor = 2 * step.numerator
    found, width = start, half
    for _ in range(NARROWINGS):
        width //= 2
        window = half + 1 if is_above else half - width
        first = (window - factor * start) % modulus
        ahead = _first_within(factor % modulus, modulus, first, width - 1)
        if ahead is None or ahead >= start:
            break
        found = start + ahead
    return found


def _first_within(factor: int, modulus: int, first: int, width: int) -> int | None:
    """The smallest ``x`` for which ``factor * x % modulus`` is in ``first`` to ``first + width``.

    If no multiple of the factor itself is in that range, one minus ``y`` times the modulus is.
    Modulo the factor, finding ``y`` is the same problem with smaller numbers, as in Euclid's
    algorithm.
    """
    last = first + width
    if first == 0 or last >= modulus:
        return 0
    if factor == 0:
        return None
    ahead = -(-first // factor)
    if ahead * factor <= last:
        return ahead
    turns = _first_within(modulus % factor, factor, -last % factor, width)
    return None if turns is None else -(-(first + modulus * turns) // factor)
