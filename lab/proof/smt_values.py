"""Patterns and exact values as solver terms, stated as properties of integers.

An input's magnitude is an integer times a power of two, and so is every value of the target. Two
of them are compared by shifting the one with the larger power to the left. The shift is bounded:
once the shifted integer exceeds all bits of the other one, shifting further changes no comparison.
Numbers of some 130 bits therefore suffice; from float64's smallest subnormal to its largest value
it would be 2,100.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lab.proof.bit_vectors import Solving, Truth, Vector
from specs.formats import Format

POWER_BITS = 16
POWER_OFFSET = 8192
"""The bias that keeps powers of two positive."""


@dataclass(frozen=True)
class Magnitude:
    """``significand * 2**(power - POWER_OFFSET)``; the significand has at most ``size`` bits."""

    significand: Vector
    power: Vector
    size: int


@dataclass(frozen=True)
class Comparison:
    """Statements about how one magnitude compares with another."""

    less: Truth
    equal: Truth

    @property
    def more(self) -> Truth:
        return ~(self.less | self.equal)

    @property
    def at_most(self) -> Truth:
        return self.less | self.equal

    @property
    def at_least(self) -> Truth:
        return ~self.less


def constant(solving: Solving, significand: int, power: int) -> Magnitude:
    """The constant magnitude ``significand * 2**power``."""
    size = max(1, significand.bit_length())
    return Magnitude(
        solving.vector(significand, size),
        solving.vector(power + POWER_OFFSET, POWER_BITS),
        size,
    )


def compare(left: Magnitude, right: Magnitude) -> Comparison:
    """Compare two exact values; the left one must not be zero."""
    up = bounded(left.power, right.power, right.size + 1)
    down = bounded(right.power, left.power, left.size + 1)
    width = left.size + right.size + 1
    left_aligned = left.significand.wide(width) << up
    right_aligned = right.significand.wide(width) << down
    return Comparison(left_aligned < right_aligned, left_aligned == right_aligned)


def bounded(power: Vector, other: Vector, most: int) -> Vector:
    """``power - other``, clamped to the range from 0 to ``most``."""
    excess = power - other
    zero, bound = excess ^ excess, excess.solving.vector(most, POWER_BITS)
    return (power <= other).select(zero, (excess > most).select(bound, excess)).low(8)


@dataclass(frozen=True)
class DecodedPattern:
    """A pattern of a format, decoded as the format's entry describes."""

    fmt: Format
    pattern: Vector

    @property
    def solving(self) -> Solving:
        return self.pattern.solving

    @cached_property
    def negative(self) -> Truth:
        """Whether the sign bit is set."""
        if not self.fmt.is_signed:
            return self.solving.truth(False)
        return self.pattern.bits(self.fmt.bits - 1, self.fmt.bits - 1) == 1

    @cached_property
    def nan(self) -> Truth:
        return self.solving.any_of(
            [
                (self.pattern >= codes.start) & (self.pattern <= codes.stop - 1)
                for codes in self.fmt.nan_codes
            ]
        )

    @cached_property
    def infinite(self) -> Truth:
        if self.fmt.is_integral or not self.fmt.entry.infinity:
            return self.solving.truth(False)
        code = self.fmt.infinity_code
        return (self.pattern == code) | (self.pattern == code | self.fmt.sign_bit)

    @cached_property
    def zero(self) -> Truth:
        return ~self.nan & (self.magnitude.significand == 0)

    @cached_property
    def subnormal(self) -> Truth:
        """Nonzero, and below the smallest normal float."""
        if self.fmt.is_integral or self.fmt.entry.zero == "none":
            return self.solving.truth(False)
        return (self.field == 0) & (self.magnitude.significand != 0)

    @cached_property
    def field(self) -> Vector:
        """The exponent field of a float."""
        entry = self.fmt.entry
        return self.pattern.bits(entry.mantissa + entry.exponent - 1, entry.mantissa)

    @cached_property
    def magnitude(self) -> Magnitude:
        """The value without its sign."""
        if self.fmt.is_integral:
            negated = self.solving.vector(0, self.fmt.bits) - self.pattern
            significand = self.negative.select(negated, self.pattern)
            power = self.solving.vector(POWER_OFFSET, POWER_BITS)
            return Magnitude(significand, power, self.fmt.bits)
        entry = self.fmt.entry
        significand = self.solving.vector(0, self.fmt.precision)
        if entry.mantissa:
            significand = self.pattern.low(entry.mantissa).wide(self.fmt.precision)
        hidden = significand | 1 << entry.mantissa
        field = self.field.wide(POWER_BITS)
        if entry.zero != "none":
            empty = self.field == 0
            hidden = empty.select(significand, hidden)
            field = empty.select(field | 1, field)
        power = field + (POWER_OFFSET - entry.bias - entry.mantissa)
        return Magnitude(hidden, power, self.fmt.precision)

    @cached_property
    def whole(self) -> Truth:
        """Whether a finite, nonzero value is an integer."""
        exact = self.magnitude
        units = self.solving.vector(POWER_OFFSET, POWER_BITS)
        drop = bounded(units, exact.power, exact.size)
        below = (self.solving.vector(1, exact.size + 1) << drop) - 1
        return exact.significand & below == 0
