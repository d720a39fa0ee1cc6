"""Reads hexadecimal floats such as ``-0x1.8p3``, as C and Python print them."""

from __future__ import annotations

import re
from fractions import Fraction

from oracles.reference.exact import Number
from oracles.reference.exact_text import FAR, MOST_DIGITS

HEXADECIMAL_FLOAT = re.compile(
    r"([+-]?)0[xX](?=\.?[0-9a-fA-F])([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)", re.ASCII
)
"""The power is not optional: without it the digits are a bit pattern."""
DIGIT_BITS = 4


def hexadecimal_float(text: str) -> Number | None:
    """The exact value of a hexadecimal float; None if the text is not one.

    A magnitude that is far beyond every format becomes a nearer one that is beyond them too.
    """
    found = HEXADECIMAL_FLOAT.fullmatch(text)
    if found is None:
        return None
    sign, digits, fraction = int(found[1] == "-"), found[2] + (found[3] or ""), found[3] or ""
    significand = int(digits, 16)
    if significand == 0:
        return Number(sign, 0, 0)
    is_small = found[4].startswith("-")
    power_digits = found[4].lstrip("+-").lstrip("0") or "0"
    power = int(power_digits) if len(power_digits) < MOST_DIGITS else FAR * MOST_DIGITS
    exponent = (-power if is_small else power) - DIGIT_BITS * len(fraction)
    magnitude = exponent + significand.bit_length()
    if abs(magnitude) > FAR:
        return Number(sign, 1, FAR if magnitude > 0 else -FAR)
    return Number(sign, significand, exponent)


def signed_value(number: Number) -> Fraction:
    """The value of a number, in which a zero has no sign."""
    magnitude = number.significand * Fraction(2) ** number.exponent
    return -magnitude if number.sign else magnitude
