"""The definition as a solver reads it: properties of exact integers, none of them a recipe.

An input's magnitude is an integer times a power of two, and so is every value of the target. Two
such are compared by shifting the one with the larger power to the left. The shift is bounded: once
it has carried an integer past all bits of the other one, further steps change no comparison, so
numbers of some 130 bits say what would otherwise take the 2,100 bits from float64's smallest
subnormal to its largest value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from oracles.proof.bit_vectors import Solving, Truth, Vector
from specs.formats import Format

POWER_BITS = 16
POWER_OFFSET = 8192
"""Powers of two are kept positive by adding this."""


@dataclass(frozen=True)
class Magnitude:
    """``significand * 2**power``; ``size`` bounds the significand's bits."""

    significand: Vector
    power: Vector
    size: int


@dataclass(frozen=True)
class Comparison:
    """How a magnitude lies to another."""

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
    """A known magnitude."""
    size = max(1, significand.bit_length())
    return Magnitude(
        solving.vector(significand, size),
        solving.vector(power + POWER_OFFSET, POWER_BITS),
        size,
    )


def compare(left: Magnitude, right: Magnitude) -> Comparison:
    """Compare two exact values, of which the left one is not zero."""
    up = bounded(left.power, right.power, right.size + 1)
    down = bounded(right.power, left.power, left.size + 1)
    width = left.size + right.size + 1
    here = left.significand.wide(width) << up
    there = right.significand.wide(width) << down
    return Comparison(here < there, here == there)


def bounded(power: Vector, other: Vector, most: int) -> Vector:
    """By how much one power exceeds another: not less than 0, not more than ``most``."""
    more = power - other
    nothing, bound = more ^ more, more.solving.vector(most, POWER_BITS)
    return (power <= other).select(nothing, (more > most).select(bound, more)).low(8)


@dataclass(frozen=True)
class Parts:
    """A pattern of a format as the format's entry describes it."""

    form: Format
    pattern: Vector

    @property
    def solving(self) -> Solving:
        return self.pattern.solving

    @cached_property
    def negative(self) -> Truth:
        """Whether the sign bit is set."""
        if not self.form.is_signed:
            return self.solving.truth(False)
        return self.pattern.bits(self.form.bits - 1, self.form.bits - 1) == 1

    @cached_property
    def nan(self) -> Truth:
        return self.solving.any_of(
            [
                (self.pattern >= codes.start) & (self.pattern <= codes.stop - 1)
                for codes in self.form.nan_codes
            ]
        )

    @cached_property
    def infinite(self) -> Truth:
        if self.form.is_integral or not self.form.entry.infinity:
            return self.solving.truth(False)
        code = self.form.infinity_code
        return (self.pattern == code) | (self.pattern == code | self.form.sign_bit)

    @cached_property
    def zero(self) -> Truth:
        return ~self.nan & (self.magnitude.significand == 0)

    @cached_property
    def subnormal(self) -> Truth:
        """A float below its smallest normal number, and not zero."""
        if self.form.is_integral or self.form.entry.zero == "none":
            return self.solving.truth(False)
        return (self.field == 0) & (self.magnitude.significand != 0)

    @cached_property
    def field(self) -> Vector:
        """The exponent's field."""
        entry = self.form.entry
        return self.pattern.bits(entry.mantissa + entry.exponent - 1, entry.mantissa)

    @cached_property
    def magnitude(self) -> Magnitude:
        """The value without its sign."""
        if self.form.is_integral:
            minus = self.solving.vector(0, self.form.bits) - self.pattern
            significand = self.negative.select(minus, self.pattern)
            power = self.solving.vector(POWER_OFFSET, POWER_BITS)
            return Magnitude(significand, power, self.form.bits)
        entry = self.form.entry
        significand = self.solving.vector(0, self.form.precision)
        if entry.mantissa:
            significand = self.pattern.low(entry.mantissa).wide(self.form.precision)
        hidden = significand | 1 << entry.mantissa
        field = self.field.wide(POWER_BITS)
        if entry.zero != "none":
            empty = self.field == 0
            hidden = empty.select(significand, hidden)
            field = empty.select(field | 1, field)
        power = field + (POWER_OFFSET - entry.bias - entry.mantissa)
        return Magnitude(hidden, power, self.form.precision)

    @cached_property
    def whole(self) -> Truth:
        """Whether a finite value that is not zero has no fraction."""
        exact = self.magnitude
        units = self.solving.vector(POWER_OFFSET, POWER_BITS)
        drop = bounded(units, exact.power, exact.size)
        below = (self.solving.vector(1, exact.size + 1) << drop) - 1
        return exact.significand & below == 0
