"""The definition of a cast: one value at a time, in Python integers only.

A finite value is ``(-1)**sign * significand * 2**exponent``. This module shares neither code nor
method with ``kernels``, so that an error in one of them shows as a disagreement.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from specs.formats import Format
from specs.model.vocabulary import REPRESENTABLE_ZONES, Atom, AtomKind, Rounding, Sign, Zone


class Number(NamedTuple):
    """A finite value, ``(-1)**sign * significand * 2**exponent``; zero keeps its sign."""

    sign: int
    significand: int
    exponent: int


class Infinity(NamedTuple):
    """An infinite value."""

    sign: int


class NotANumber(NamedTuple):
    """A NaN; ``sign`` is None in formats whose NaN has no sign."""

    sign: int | None


Datum = Number | Infinity | NotANumber


def decode(fmt: Format, code: int) -> Datum:
    """Decode a bit pattern.

    Float with exponent field ``e`` and mantissa field ``m`` of ``p`` bits: ``2**(e - bias) *
    (1 + m / 2**p)``; where ``e`` is 0 and the format has a zero, ``2**(1 - bias) * m / 2**p``.
    Integer: two's complement if signed.
    """
    if fmt.is_integral:
        negative = bool(code & fmt.sign_bit)
        return Number(int(negative), (fmt.mask + 1 - code) if negative else code, 0)
    entry = fmt.entry
    sign = 1 if code & fmt.sign_bit else 0
    for codes in fmt.nan_codes:
        if code in codes:
            return NotANumber(sign if fmt.has_signed_nan else None)
    magnitude = code & ~fmt.sign_bit
    if entry.infinity and magnitude == fmt.infinity_code:
        return Infinity(sign)
    exponent, mantissa = divmod(magnitude, 1 << entry.mantissa)
    if exponent == 0 and entry.zero != "none":
        return Number(sign, mantissa, 1 - entry.bias - entry.mantissa)
    return Number(sign, (1 << entry.mantissa) | mantissa, exponent - entry.bias - entry.mantissa)


def unit_of(target: Format, number: Number) -> int:
    """Return the exponent of one ulp of the target (its last place) at a value's magnitude.

    Float: ``max(floor(log2(|x|)), lowest normal exponent) - mantissa bits``, so that all subnormals
    share the ulp of the lowest binade. Integer: 0.
    """
    if target.is_integral:
        return 0
    leading = number.exponent + number.significand.bit_length() - 1
    return max(leading, target.lowest_exponent) - target.entry.mantissa


def round_magnitude(number: Number, unit: int, rounding: Rounding) -> int:
    """Round ``|x| / 2**unit`` to an integer, as if the exponent range had no end.

    With ``q = floor(|x| / 2**unit)``, ``r = |x| / 2**unit - q`` and ``s`` the sign bit of ``x``,
    the result is ``q`` where ``r == 0``. Otherwise it is ``q + 1`` where the following holds, else
    ``q``:

    - ``nearest-even``: ``r > 1/2``, or ``r == 1/2`` and ``q`` is odd
    - ``nearest-away``: ``r >= 1/2``
    - ``toward-zero``: never
    - ``floor``: ``s == 1``
    - ``ceil``: ``s == 0``
    - ``odd``: ``q`` is even
    """
    drop = unit - number.exponent
    if drop <= 0:
        return number.significand << -drop
    quotient = number.significand >> drop
    remainder = number.significand - (quotient << drop)
    if remainder == 0:
        return quotient
    half = 1 << (drop - 1)
    match rounding:
        case "nearest-even":
            up = remainder > half or (remainder == half and quotient % 2 == 1)
        case "nearest-away":
            up = remainder >= half
        case "toward-zero":
            up = False
        case "floor":
            up = number.sign == 1
        case "ceil":
            up = number.sign == 0
        case "odd":
            up = quotient % 2 == 0
    return quotient + up


def encode(target: Format, sign: int, multiple: int, unit: int) -> int:
    """Encode ``(-1)**sign * multiple * 2**unit``, which must be a value of the target.

    Two kinds of values may be out of range. Of an integer the low bits remain. In a format with
    infinities, the value that would be next after the largest gets the pattern of infinity.
    """
    if target.is_integral:
        return (-multiple if sign else multiple) & target.mask
    entry = target.entry
    if multiple == 0:
        return target.sign_bit if sign and entry.zero == "signed" else 0
    leading = unit + multiple.bit_length() - 1
    shift = unit - (max(leading, target.lowest_exponent) - entry.mantissa)
    significand = multiple << shift if shift >= 0 else multiple >> -shift
    normal = leading >= target.lowest_exponent
    field = (leading + entry.bias) << entry.mantissa if normal else 0
    code = field | (significand & ((1 << entry.mantissa) - 1))
    return code | target.sign_bit if sign else code


@cache
def limits(target: Format) -> tuple[Number, Number, Number, Number]:
    """Return the largest value, the lowest, the smallest positive and the smallest normal one.

    The lowest value of an unsigned target is -0. For an integer target the last two are 1.
    """
    largest = _finite(target, target.max_code)
    lowest = _finite(target, target.lowest_code) if target.is_signed else Number(1, 0, 0)
    if target.is_integral:
        return largest, lowest, Number(0, 1, 0), Number(0, 1, 0)
    smallest_unit = target.lowest_exponent - target.entry.mantissa
    return largest, lowest, Number(0, 1, smallest_unit), Number(0, 1, target.lowest_exponent)


def _finite(fmt: Format, code: int) -> Number:
    number = decode(fmt, code)
    assert isinstance(number, Number)
    return number


def exceeds(significand: int, exponent: int, bound: Number) -> bool:
    """Return whether ``significand * 2**exponent > |bound|``."""
    shift = exponent - bound.exponent
    if shift >= 0:
        return significand << shift > bound.significand
    return significand > bound.significand << -shift


def zone_of(target: Format, number: Number, multiple: int, unit: int) -> Zone:
    """Return the zone of a finite, nonzero value that rounds to ``multiple * 2**unit``.

    It is the first that holds. ``overflow``: the rounded value is out of the target's range.
    ``beyond``: the value itself is, but rounds back into it. ``tiny``: ``|x|`` is below the
    smallest positive value. ``subnormal``: ``|x|`` is below the smallest normal value. ``inside``:
    everything else.
    """
    largest, lowest, smallest, smallest_normal = limits(target)
    bound = lowest if number.sign else largest
    if number.sign and target.entry.zero == "none":
        return "overflow"
    if exceeds(multiple, unit, bound):
        return "overflow"
    if exceeds(number.significand, number.exponent, bound):
        return "beyond"
    if not exceeds(smallest.significand, smallest.exponent, number):
        if exceeds(smallest_normal.significand, smallest_normal.exponent, number):
            return "subnormal"
        return "inside"
    return "tiny"


def is_whole(number: Number) -> bool:
    """Return whether a value is an integer."""
    return is_multiple(number, 0)


def is_multiple(number: Number, unit: int) -> bool:
    """Return whether a value is a multiple of ``2**unit``."""
    return number.exponent >= unit or number.significand % (1 << (unit - number.exponent)) == 0


def _atom_sign(source: Format, sign: int) -> Sign:
    if not source.is_signed:
        return "none"
    return "-" if sign else "+"


def atom_of(source: Format, target: Format, rounding: Rounding, datum: Datum) -> Atom:
    """Return the atom of a source value, which has all that rules can distinguish about it."""
    match datum:
        case NotANumber(sign=None):
            return Atom("nan", "none")
        case NotANumber(sign=int(sign)):
            return Atom("nan", "-" if sign else "+")
        case Infinity(sign=sign):
            return Atom("infinity", "-" if sign else "+")
        case Number(sign=sign, significand=0):
            return _zero_atom("zero", _atom_sign(source, sign), target)
        case Number():
            atom_sign = _atom_sign(source, datum.sign)
            subnormal = source.kind == "float" and datum.significand < 1 << source.entry.mantissa
            return number_atom("finite", atom_sign, target, rounding, datum, subnormal)
    raise AssertionError(datum)


def number_atom(
    kind: AtomKind,
    sign: Sign,
    target: Format,
    rounding: Rounding,
    number: Number,
    subnormal: bool = False,
) -> Atom:
    """Return the atom of a finite value, which comes from a pattern or a text.

    ``subnormal`` says whether the pattern is a subnormal of the source.
    """
    if number.significand == 0:
        return _zero_atom(kind, sign, target)
    if not target.is_numeric:
        return Atom(kind, sign, "inside", is_whole(number), subnormal)
    unit = unit_of(target, number)
    multiple = round_magnitude(number, unit, rounding)
    zone = zone_of(target, number, multiple, unit)
    representable = zone in REPRESENTABLE_ZONES and is_multiple(number, unit)
    return Atom(kind, sign, zone, is_whole(number), subnormal, representable)


def _zero_atom(kind: AtomKind, sign: Sign, target: Format) -> Atom:
    representable = sign != "-" and target.is_numeric and target.has_zero
    return Atom(kind, sign, representable=representable)
