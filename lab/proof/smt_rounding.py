"""Rounding and zones as statements: which target pattern is a value's rounding, where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lab.proof.bit_vectors import Truth, Vector
from lab.proof.smt_values import (
    POWER_BITS,
    POWER_OFFSET,
    Comparison,
    DecodedPattern,
    Magnitude,
    bounded,
    compare,
    constant,
)
from oracles.reference.exact import limits
from specs.formats import Format
from specs.model.vocabulary import Rounding, Zone


def is_rounding(value: DecodedPattern, code: DecodedPattern, rounding: Rounding) -> Truth:
    """State that a float pattern is the rounding of a nonzero value.

    Let ``c`` be the pattern's magnitude, ``c-`` and ``c+`` its neighbors, and ``|x|`` the value's
    magnitude. As the definition rounds, the range has no end: the largest value has a ``c+`` too.
    The pattern has the value's sign, and:

    - ``nearest-even``: ``(c- + c)/2 < |x| < (c + c+)/2``, ends included if the pattern is even (in
      formats without mantissa bits: always the lower end)
    - ``nearest-away``: ``(c- + c)/2 <= |x| < (c + c+)/2``
    - ``odd``: ``|x| == c``, or ``c- < |x| < c+`` and the pattern is odd
    - ``toward-zero``, and ``floor`` and ``ceil`` if they lead toward zero: ``c <= |x| < c+``
    - ``floor`` and ``ceil`` if they lead away from zero: ``c- < |x| <= c``
    """
    entry, exact = code.fmt.entry, code.magnitude
    # Count in quarter ulps: below a power of two the ulp halves, so that half an ulp is a quarter.
    center = exact.significand.wide(exact.size + 3) << 2
    is_power = exact.significand == 1 << entry.mantissa
    is_narrow_below = is_power & (code.field > (0 if entry.zero == "none" else 1))
    half = is_narrow_below.select((center ^ center) + 1, (center ^ center) + 2)
    is_zero = exact.significand == 0

    def against(point: Vector) -> Comparison:
        quarters = Magnitude(point, exact.power - 2, exact.size + 3)
        return compare(value.magnitude, quarters)

    def down(steps: Vector) -> Vector:
        return is_zero.select(center, center - steps)

    even = ~(code.pattern.bits(0, 0) == 1) if entry.mantissa else code.solving.truth(False)
    match rounding:
        case "nearest-even":
            lower, upper = against(down(half)), against(center + 2)
            inside = lower.more & upper.less
            # Without mantissa bits, a significand of one is odd and the next power of two is even.
            tie = lower.equal if not entry.mantissa else even & (lower.equal | upper.equal)
            magnitude = inside | tie
        case "nearest-away":
            magnitude = against(down(half)).at_least & against(center + 2).less
        case "odd":
            between = against(down(half << 1)).more & against(center + 4).less
            magnitude = against(center).equal | (~even & between)
        case "toward-zero" | "floor" | "ceil":
            toward = against(center).at_least & against(center + 4).less
            away = against(down(half << 1)).more & against(center).at_most
            magnitude = _outward(value, rounding).choose(away, toward)
    return magnitude & _has_sign(value, code)


def _outward(value: DecodedPattern, rounding: Rounding) -> Truth:
    """State that a directed rounding leads away from zero."""
    if rounding == "toward-zero":
        return value.solving.truth(False)
    return value.negative if rounding == "floor" else ~value.negative


def _has_sign(value: DecodedPattern, code: DecodedPattern) -> Truth:
    """State that a pattern is no NaN and has a value's sign; an unsigned zero has none.

    Infinity is the pattern after the largest value. It stands for the next value of a range that
    has no end.
    """
    fmt = code.fmt
    magnitude = code.pattern & (fmt.mask ^ fmt.sign_bit)
    number = magnitude <= (fmt.infinity_code if fmt.entry.infinity else fmt.max_code)
    if not fmt.is_signed:
        return number & ~value.negative
    sign = value.negative
    if fmt.entry.zero == "unsigned":
        sign = sign & (magnitude != 0)
    return number & ~(code.negative ^ sign)


def rounded_integer(value: DecodedPattern, target: Format, rounding: Rounding) -> Vector:
    """Round a value's magnitude to an integer; exact below twice the target's range.

    A larger result stays beyond that range, and its low bits are those of the exact integer.
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
    """Statements about where a finite, nonzero value lies among a target's values."""

    value: DecodedPattern
    target: Format
    rounding: Rounding

    def holds(self, zone: Zone) -> Truth:
        """State that the value lies in a zone."""
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
        """Whether the target has exactly this value, given that it lies in the target's range.

        It does if the value is a multiple of the target's smallest positive value, and has no more
        significant bits than the target.
        """
        exact = self.value.magnitude
        significand = exact.significand
        lowest_set = significand & ((significand ^ significand) - significand)
        step = 0 if self.target.is_integral else limits(self.target)[2].exponent
        is_multiple = compare(
            Magnitude(lowest_set, exact.power, exact.size), constant(lowest_set.solving, 1, step)
        ).at_least
        if self.target.is_integral:
            return is_multiple
        width = exact.size + self.target.precision
        return is_multiple & (
            significand.wide(width) < lowest_set.wide(width) << self.target.precision
        )

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
        """Above the largest value of the target, or below the lowest."""
        largest, lowest, _, _ = limits(self.target)
        above = self._against(largest.significand, largest.exponent).more
        if not self.value.fmt.is_signed:
            return above
        below = self._against(lowest.significand, lowest.exponent).more
        return self.value.negative.choose(below, above)

    @cached_property
    def overflow(self) -> Truth:
        """Rounds past the largest value of the target, or past the lowest."""
        largest, lowest, _, _ = limits(self.target)
        above = self._rounds_past(largest.significand, largest.exponent, False)
        if not self.value.fmt.is_signed:
            return above
        if not self.target.is_integral and not self.target.is_signed:
            return self.value.negative | above
        below = self._rounds_past(lowest.significand, lowest.exponent, True)
        return self.value.negative.choose(below, above)

    def _rounds_past(self, significand: int, power: int, negative: bool) -> Truth:
        """The value's magnitude, rounded, exceeds the bound ``significand * 2**power``."""
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
