"""Properties of a pair of formats that a rule's `pair` condition can test."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from specs.formats import Format


@cache
def value_of(target: Format, code: int) -> Fraction:
    """Return the value of a finite pattern of a numeric format."""
    if target.is_integral:
        return Fraction(code - (target.mask + 1) if code & target.sign_bit else code)
    magnitude = code & ~target.sign_bit
    exponent, mantissa = divmod(magnitude, 1 << target.entry.mantissa)
    hidden = exponent > 0 or target.entry.zero == "none"
    significand = mantissa + (1 << target.entry.mantissa if hidden else 0)
    power = max(exponent - target.entry.bias, target.lowest_exponent) - target.entry.mantissa
    value = significand * Fraction(2) ** power
    return -value if code & target.sign_bit else value


@cache
def is_exact(source: Format, target: Format) -> bool:
    """Return whether the target has every finite value of the source.

    If one of them is not numeric, return whether they are the same format.
    """
    if not (source.is_numeric and target.is_numeric):
        return source == target
    return (
        not rounds(source, target)
        and value_of(source, source.max_code) <= value_of(target, target.max_code)
        and value_of(source, source.lowest_code) >= value_of(target, target.lowest_code)
    )


@cache
def rounds(source: Format, target: Format) -> bool:
    """Return whether the target's range has some value of the source that the target lacks.

    Return False if one of the formats is not numeric.
    """
    if not (source.is_numeric and target.is_numeric):
        return False
    # A value in the target's range has no more bits than its largest one, in units of the source.
    in_range = int(value_of(target, target.max_code) / Fraction(2) ** _quantum(source)).bit_length()
    return _quantum(source) < _quantum(target) or min(
        _significant_bits(source), in_range
    ) > _capacity(target)


def _quantum(fmt: Format) -> int:
    """Return the exponent of the power of two that is the smallest distance between two values."""
    return 0 if fmt.is_integral else fmt.lowest_exponent - fmt.entry.mantissa


def _significant_bits(fmt: Format) -> int:
    """Return the most significant bits that a value has: for integers, all bits but a sign bit."""
    return fmt.bits - fmt.is_signed if fmt.is_integral else fmt.precision


def _capacity(fmt: Format) -> float:
    """Return the most significant bits that a value in range can have: for integers, any number."""
    return float("inf") if fmt.is_integral else fmt.precision
