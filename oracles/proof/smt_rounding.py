"""What it means that a target's pattern, or an integer, is a value's rounding; where values lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from oracles.proof.bit_vectors import Truth, Vector
from oracles.proof.smt_values import (
    POWER_BITS,
    POWER_OFFSET,
    Comparison,
    Magnitude,
    Parts,
    bounded,
    compare,
    constant,
)
from oracles.reference.exact import limits
from specs.formats import Format
from specs.model.vocabulary import Rounding, Zone


def is_rounding(value: Parts, code: Parts, rounding: Rounding) -> Truth:
    """Whether a float pattern is a value's rounding: no neighbour is nearer, or on the right side.

    The value is not zero, and the format's range has no end: past the largest value stands the
    next one of the same unit.
    """
    entry, exact = code.form.entry, code.magnitude
    # In quarters of the pattern's unit, which the step below a power of two halves.
    here = exact.significand.wide(exact.size + 3) << 2
    first = exact.significand == 1 << entry.mantissa
    narrow = first & (code.field > (0 if entry.zero == "none" else 1))
    half = narrow.select((here ^ here) + 1, (here ^ here) + 2)
    nothing = exact.significand == 0

    def against(point: Vector) -> Comparison:
        quarters = Magnitude(point, exact.power - 2, exact.size + 3)
        return compare(value.magnitude, quarters)

    def down(steps: Vector) -> Vector:
        return nothing.select(here, here - steps)

    even = ~(code.pattern.bits(0, 0) == 1) if entry.mantissa else code.solving.truth(False)
    match rounding:
        case "nearest-even":
            lower, upper = against(down(half)), against(here + 2)
            inside = lower.more & upper.less
            # Where a significand has one bit only, it is odd: the next power of two is even.
            tie = lower.equal if not entry.mantissa else even & (lower.equal | upper.equal)
            magnitude = inside | tie
        case "nearest-away":
            magnitude = against(down(half)).at_least & against(here + 2).less
        case "odd":
            between = against(down(half << 1)).more & against(here + 4).less
            magnitude = against(here).equal | (~even & between)
        case "toward-zero" | "floor" | "ceil":
            toward = against(here).at_least & against(here + 4).less
            away = against(down(half << 1)).more & against(here).at_most
            magnitude = _outward(value, rounding).choose(away, toward)
    return magnitude & _has_sign(value, code)


def _outward(value: Parts, rounding: Rounding) -> Truth:
    """Whether a directed rounding leads away from zero."""
    if rounding == "toward-zero":
        return value.solving.truth(False)
    return value.negative if rounding == "floor" else ~value.negative


def _has_sign(value: Parts, code: Parts) -> Truth:
    """Whether a pattern is finite and has a value's sign; a zero only where zeros have signs."""
    form = code.form
    magnitude = code.pattern & (form.mask ^ form.sign_bit)
    finite = magnitude <= form.max_code
    if not form.is_signed:
        return finite & ~value.negative
    sign = value.negative
    if form.entry.zero == "unsigned":
        sign = sign & (magnitude != 0)
    return finite & ~(code.negative ^ sign)


def rounded_integer(value: Parts, target: Format, rounding: Rounding) -> Vector:
    """A value's magnitude rounded to an integer; exact below twice the target's range.

    Beyond, it stays there, and its low bits are those of the exact integer.
    """
    exact, solving = value.magnitude, value.solving
    units = solving.vector(POWER_OFFSET, POWER_BITS)
    up = bounded(exact.power, units, target.bits + 1)
    drop = bounded(units, exact.power, exact.size + 1)
    width = exact.size + target.bits + 3
    significand = exact.significand.wide(width)
    whole = significand >> drop
    unit = solving.vector(1, width) << drop
    twice = (significand - (whole << drop)) << 1
    odd = whole.bits(0, 0) == 1
    match rounding:
        case "nearest-even":
            more = (twice > unit) | ((twice == unit) & odd)
        case "nearest-away":
            more = twice >= unit
        case "odd":
            more = (twice != 0) & ~odd
        case "toward-zero" | "floor" | "ceil":
            more = (twice != 0) & _outward(value, rounding)
    return more.select(whole + 1, whole) << up


@dataclass(frozen=True)
class Zones:
    """Where a finite value that is not zero lies among a target's values."""

    value: Parts
    target: Format
    rounding: Rounding

    def holds(self, zone: Zone) -> Truth:
        """Whether the value lies in a zone."""
        match zone:
            case "overflow":
                return self.overflow
            case "beyond":
                return self.beyond & ~self.overflow
            case "tiny":
                return self.tiny & ~self.outside
            case "subnormal":
                return self.subnormal & ~self.outside
        return ~(self.tiny | self.subnormal | self.outside)

    @cached_property
    def representable(self) -> Truth:
        """Whether a value inside the range is one of the target's.

        It is a multiple of the smallest step, and from its first set bit to its last it has no
        more bits than a significand.
        """
        exact = self.value.magnitude
        significand = exact.significand
        last = significand & ((significand ^ significand) - significand)
        step = 0 if self.target.is_integral else limits(self.target)[2].exponent
        steps = compare(
            Magnitude(last, exact.power, exact.size), constant(last.solving, 1, step)
        ).at_least
        if self.target.is_integral:
            return steps
        width = exact.size + self.target.precision
        return steps & (significand.wide(width) < last.wide(width) << self.target.precision)

    @cached_property
    def outside(self) -> Truth:
        return self.overflow | self.beyond

    @cached_property
    def tiny(self) -> Truth:
        smallest = limits(self.target)[2]
        return self._against(smallest.significand, smallest.exponent).less

    @cached_property
    def subnormal(self) -> Truth:
        smallest = limits(self.target)[3]
        return self._against(smallest.significand, smallest.exponent).less & ~self.tiny

    @cached_property
    def beyond(self) -> Truth:
        """Past the largest value, or the lowest."""
        largest, lowest, _, _ = limits(self.target)
        above = self._against(largest.significand, largest.exponent).more
        if not self.value.form.is_signed:
            return above
        below = self._against(lowest.significand, lowest.exponent).more
        return self.value.negative.choose(below, above)

    @cached_property
    def overflow(self) -> Truth:
        """Nearer to the value that would follow the largest one, or on the right side of it."""
        largest, lowest, _, _ = limits(self.target)
        above = self._past(largest.significand, largest.exponent, False)
        if not self.value.form.is_signed:
            return above
        if not self.target.is_integral and not self.target.is_signed:
            return self.value.negative | above
        below = self._past(lowest.significand, lowest.exponent, True)
        return self.value.negative.choose(below, above)

    def _past(self, significand: int, power: int, negative: bool) -> Truth:
        at = self._against(significand, power)
        middle = self._against(2 * significand + 1, power - 1)
        after = self._against(significand + 1, power)
        odd = significand % 2 == 1
        outward = self.rounding == ("floor" if negative else "ceil")
        match self.rounding:
            case "nearest-even":
                return middle.at_least if odd else middle.more
            case "nearest-away":
                return middle.at_least
            case "odd":
                return after.at_least if odd else at.more
            case "toward-zero" | "floor" | "ceil":
                return at.more if outward else after.at_least

    def _against(self, significand: int, power: int) -> Comparison:
        bound = constant(self.value.solving, significand, power)
        return compare(self.value.magnitude, bound)
