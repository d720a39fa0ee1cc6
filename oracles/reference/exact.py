"""The definition: one value at a time, in Python integers only.

A finite value is ``(-1)**sign * significand * 2**exponent``. Nothing here shares code or method
with ``kernels``: the two are kept apart on purpose, so that one can catch the other.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from oracles.reference.expectations import Allowed
from specs.formats import Format
from specs.model.vocabulary import HAS_REPRESENTABLE, Atom, AtomKind, Rounding, Sign, Zone
from specs.outcomes import Either, Exactly, Outcome, Round, Same, Value, Wrap
from specs.ruling import Ruling


class Number(NamedTuple):
    """A finite value; zero keeps its sign."""

    sign: int
    significand: int
    exponent: int


class Infinity(NamedTuple):
    """An infinite value."""

    sign: int


class NotANumber(NamedTuple):
    """A NaN; ``sign`` is None in formats whose NaN has none."""

    sign: int | None


Datum = Number | Infinity | NotANumber


def decode(form: Format, code: int) -> Datum:
    """The value of a bit pattern."""
    if form.is_integral:
        negative = bool(code & form.sign_bit)
        return Number(int(negative), (form.mask + 1 - code) if negative else code, 0)
    entry = form.entry
    sign = 1 if code & form.sign_bit else 0
    for codes in form.nan_codes:
        if code in codes:
            return NotANumber(sign if form.has_signed_nan else None)
    magnitude = code & ~form.sign_bit
    if entry.infinity and magnitude == form.infinity_code:
        return Infinity(sign)
    exponent, mantissa = divmod(magnitude, 1 << entry.mantissa)
    if exponent == 0 and entry.zero != "none":
        return Number(sign, mantissa, 1 - entry.bias - entry.mantissa)
    return Number(sign, (1 << entry.mantissa) | mantissa, exponent - entry.bias - entry.mantissa)


def unit_of(target: Format, number: Number) -> int:
    """The exponent of the target's last place for a value: its subnormals are gradual."""
    if target.is_integral:
        return 0
    leading = number.exponent + number.significand.bit_length() - 1
    return max(leading, target.lowest_exponent) - target.entry.mantissa


def round_magnitude(number: Number, unit: int, rounding: Rounding) -> int:
    """The value's magnitude in multiples of 2**unit, rounded."""
    drop = unit - number.exponent
    if drop <= 0:
        return number.significand << -drop
    kept = number.significand >> drop
    rest = number.significand - (kept << drop)
    if rest == 0:
        return kept
    half = 1 << (drop - 1)
    match rounding:
        case "nearest-even":
            up = rest > half or (rest == half and kept % 2 == 1)
        case "nearest-away":
            up = rest >= half
        case "toward-zero":
            up = False
        case "floor":
            up = number.sign == 1
        case "ceil":
            up = number.sign == 0
        case "odd":
            up = kept % 2 == 0
    return kept + up


def encode(target: Format, sign: int, multiple: int, unit: int) -> int:
    """The pattern of ``multiple * 2**unit``, which the target must hold."""
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
    """The largest value, the lowest, the smallest positive and the smallest normal one."""
    largest = _finite(target, target.max_code)
    lowest = _finite(target, target.lowest_code) if target.is_signed else Number(1, 0, 0)
    if target.is_integral:
        return largest, lowest, Number(0, 1, 0), Number(0, 1, 0)
    smallest_unit = target.lowest_exponent - target.entry.mantissa
    return largest, lowest, Number(0, 1, smallest_unit), Number(0, 1, target.lowest_exponent)


def _finite(form: Format, code: int) -> Number:
    number = decode(form, code)
    assert isinstance(number, Number)
    return number


def exceeds(significand: int, exponent: int, bound: Number) -> bool:
    """Whether ``significand * 2**exponent`` is larger than the bound's magnitude."""
    shift = exponent - bound.exponent
    if shift >= 0:
        return significand << shift > bound.significand
    return significand > bound.significand << -shift


def zone_of(target: Format, number: Number, multiple: int, unit: int) -> Zone:
    """Where a finite, nonzero value lies among the target's values."""
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
    """Whether a value has no fraction."""
    return is_multiple(number, 0)


def is_multiple(number: Number, unit: int) -> bool:
    """Whether a value is a multiple of ``2**unit``."""
    return number.exponent >= unit or number.significand % (1 << (unit - number.exponent)) == 0


def _signed(form: Format, sign: int) -> Sign:
    if not form.is_signed:
        return "none"
    return "-" if sign else "+"


def atom_of(source: Format, target: Format, rounding: Rounding, datum: Datum) -> Atom:
    """The atom that a bit pattern's value falls into."""
    match datum:
        case NotANumber(sign=None):
            return Atom("nan", "none")
        case NotANumber(sign=int(sign)):
            return Atom("nan", "-" if sign else "+")
        case Infinity(sign=sign):
            return Atom("infinity", "-" if sign else "+")
        case Number(sign=sign, significand=0):
            return _zero_atom("zero", _signed(source, sign), target)
        case Number():
            sign_word = _signed(source, datum.sign)
            subnormal = source.kind == "float" and datum.significand < 1 << source.entry.mantissa
            return number_atom("finite", sign_word, target, rounding, datum, subnormal)
    raise AssertionError(datum)


def number_atom(
    kind: AtomKind,
    sign: Sign,
    target: Format,
    rounding: Rounding,
    number: Number,
    subnormal: bool = False,
) -> Atom:
    """The atom of a finite value."""
    if number.significand == 0:
        return _zero_atom(kind, sign, target)
    if not target.is_numeric:
        return Atom(kind, sign, "inside", is_whole(number), subnormal)
    unit = unit_of(target, number)
    multiple = round_magnitude(number, unit, rounding)
    zone = zone_of(target, number, multiple, unit)
    representable = zone in HAS_REPRESENTABLE and is_multiple(number, unit)
    return Atom(kind, sign, zone, is_whole(number), subnormal, representable)


def _zero_atom(kind: AtomKind, sign: Sign, target: Format) -> Atom:
    representable = sign != "-" and target.is_numeric and target.has_zero
    return Atom(kind, sign, representable=representable)


def allow(ruling: Ruling, code: int) -> Allowed:
    """What a case allows for one input, by the definition."""
    for place, (worked, _) in enumerate(ruling.worked):
        if worked == code:
            return resolve(ruling, place, Number(0, 0, 0), code)
    datum = decode(ruling.source, code)
    atom = atom_of(ruling.source, ruling.target, ruling.rounding, datum)
    return resolve(ruling, ruling.branch_of[atom], datum, code)


def resolve(ruling: Ruling, place: int, datum: Datum, code: int) -> Allowed:
    """A branch's outcome for one value as bit patterns, where it names any."""
    branch = ruling.branches[place]
    match branch.outcome:
        case Either(options=options):
            patterns = tuple(_pattern(ruling, option, datum, code) for option in options)
            return Allowed(place, branch, tuple(dict.fromkeys(patterns)))
        case Exactly() | Round() | Value() | Wrap() | Same():
            return Allowed(place, branch, (_pattern(ruling, branch.outcome, datum, code),))
    return Allowed(place, branch)


def _pattern(ruling: Ruling, outcome: Outcome, datum: Datum, code: int) -> int:
    if isinstance(outcome, Exactly):
        return outcome.code
    if isinstance(outcome, Same):
        return code
    assert isinstance(datum, Number), f"{outcome} cannot be taken of {datum}"
    target = ruling.target
    rounding = outcome.rounding if isinstance(outcome, Round) else ruling.rounding
    unit = unit_of(target, datum)
    multiple = round_magnitude(datum, unit, rounding)
    return encode(target, datum.sign, multiple, unit)
