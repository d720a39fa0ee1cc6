"""An independent definition of every behavior, by name, in plain integers and fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from math import floor

from specs.formats import Format, format_named, value_of

ANY_NAN = -1
"""Stands for any NaN as an answer."""

Definition = Callable[["Value", Format], int | None]


@dataclass(frozen=True, eq=False)
class Value:
    """The meaning of a pattern; ``number`` is None for a NaN and an infinity.

    Compared by identity, so that caches keyed by a value are fast.
    """

    negative: bool
    number: Fraction | None
    is_nan: bool = False
    subnormal: bool = False
    has_signed_zero: bool = True
    any_bit: bool = True

    @cached_property
    def truncated(self) -> int | None:
        return None if self.number is None else int(self.number)

    @cached_property
    def half_even(self) -> int | None:
        return None if self.number is None else round(self.number)

    @cached_property
    def half_away(self) -> int | None:
        if self.number is None:
            return None
        return floor(abs(self.number) + Fraction(1, 2)) * (-1 if self.negative else 1)


@cache
def meaning(source: Format, code: int) -> Value:
    negative = bool(code & source.sign_bit)
    if any(code in nans for nans in source.nan_codes):
        return Value(negative, None, is_nan=True)
    if source.entry.infinity and code & ~source.sign_bit == source.infinity_code:
        return Value(negative, None)
    number = value_of(source, code)
    smallest_normal = power(source.lowest_exponent) if source.kind == "float" else 0
    subnormal = 0 < abs(number) < smallest_normal
    signed_zero = source.entry.zero == "signed"
    return Value(
        negative, number, subnormal=subnormal, has_signed_zero=signed_zero, any_bit=code != 0
    )


# Integers


def ends(target: Format) -> tuple[int, int]:
    high = (1 << (target.bits - target.is_signed)) - 1
    return (-high - 1 if target.is_signed else 0), high


def clamp(number: int, target: Format) -> int:
    low, high = ends(target)
    return max(low, min(high, number))


def or_minimum(bits: int, number: int | None) -> int:
    fits = number is not None and -(1 << (bits - 1)) <= number < 1 << (bits - 1)
    return number if fits and number is not None else -(1 << (bits - 1))


def clamped(value: Value, number: int | None, target: Format) -> int | None:
    if value.is_nan:
        return None
    if number is None:
        return ends(target)[0 if value.negative else 1]
    return clamp(number, target)


def or_zero(value: Value, target: Format) -> int:
    return 0 if value.is_nan else clamped(value, value.truncated, target) or 0


def if_inside(value: Value) -> int:
    inside = value.number is not None and -(1 << 31) <= value.number <= (1 << 31) - 1
    return or_minimum(32, value.truncated) if inside else -(1 << 31)


def or_ends(value: Value) -> int:
    number = value.truncated
    if value.is_nan or number is None:
        return 0 if number is None and not value.is_nan and not value.negative else -(1 << 63)
    return 0 if number >= 1 << 64 else max(number, -(1 << 63))


def packed(value: Value, target: Format) -> int:
    short = max(0, min(65535, or_minimum(32, value.truncated)))
    return clamp(short - 65536 if short > 32767 else short, target)


INT32, INT64 = format_named("int32"), format_named("int64")
INTEGERS: dict[str, Definition] = {
    "saturate": lambda v, t: clamped(v, v.truncated, t),
    "wrap": lambda v, t: v.truncated,
    "via-int32": lambda v, t: or_minimum(32, v.truncated),
    "via-int64": lambda v, t: or_minimum(64, v.truncated),
    "clamp-int32": lambda v, t: or_zero(v, INT32),
    "clamp-int64": lambda v, t: or_zero(v, INT64),
    "via-int64-or-uint64": lambda v, t: or_ends(v),
    "via-int32-saturate": lambda v, t: clamp(or_minimum(32, v.truncated), t),
    "via-int64-saturate": lambda v, t: clamp(or_minimum(64, v.truncated), t),
    "via-int32-if-inside": lambda v, t: if_inside(v),
    "packed-via-uint16": packed,
    "via-float32-via-int32": lambda v, t: or_minimum(32, via_float32(v).truncated),
    "via-float32-via-int64": lambda v, t: or_minimum(64, via_float32(v).truncated),
    "half-even-saturate": lambda v, t: clamped(v, v.half_even, t),
    "half-even-wrap": lambda v, t: v.half_even,
    "half-even-via-int32": lambda v, t: or_minimum(32, v.half_even),
    "half-even-via-int64": lambda v, t: or_minimum(64, v.half_even),
    "half-away-saturate": lambda v, t: clamped(v, v.half_away, t),
    "half-away-wrap": lambda v, t: v.half_away,
    "half-away-via-int32": lambda v, t: or_minimum(32, v.half_away),
    "via-float32-half-even-via-int32": lambda v, t: or_minimum(32, via_float32(v).half_even),
}
BOOLEANS: dict[str, Definition] = {
    "nonzero": lambda v, t: int(v.number != 0),
    "any-bit": lambda v, t: int(v.any_bit),
    "lowest-bit": lambda v, t: v.truncated,
    "truncated-nonzero": lambda v, t: int(or_minimum(32, v.truncated) != 0),
}


# Floats

ROUND: dict[str, Callable[[Fraction, bool], int]] = {
    "half-even": lambda places, negative: round(places),
    "half-away": lambda places, negative: floor(places + Fraction(1, 2)),
    "truncate": lambda places, negative: floor(places),
    "ceil": lambda places, negative: floor(places) if negative else -floor(-places),
}


@cache
def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@cache
def to_float(value: Value, target: Format, how: str, beyond: str) -> int | None:
    """The pattern of a value in a float; ``beyond`` says what overflow becomes."""
    any_nan = ANY_NAN if target.nan_codes else None
    if value.is_nan:
        return any_nan
    sign = target.sign_bit if value.negative else 0
    if value.number == 0:
        return sign if target.entry.zero == "signed" else 0
    magnitude = None
    if value.number is not None:
        magnitude = rounded(value, target, how)
    if (
        magnitude is None
        or magnitude > value_of(target, target.max_code)
        or (value.negative and not target.is_signed)
    ):
        if beyond == "clamp":
            return target.lowest_code if value.negative else target.max_code
        return (
            target.infinity_code | sign
            if beyond == "infinity" and target.entry.infinity
            else any_nan
        )
    if magnitude == 0:
        return sign if target.entry.zero == "signed" else 0
    exponent = max(_exponent(magnitude), target.lowest_exponent)
    places = int(magnitude / power(exponent - target.entry.mantissa))
    hidden = 1 << target.entry.mantissa
    field = exponent + target.entry.bias if places >= hidden else 0
    return sign | field << target.entry.mantissa | places % hidden


def _exponent(magnitude: Fraction) -> int:
    """The exponent of a value's leading bit."""
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if power(guess) <= magnitude else guess - 1


@cache
def rounded(value: Value, target: Format, how: str) -> Fraction:
    """The magnitude of a nonzero number, rounded to the target's precision."""
    assert value.number is not None
    exact, lowest = abs(value.number), target.lowest_exponent
    unit = power(max(_exponent(exact), lowest) - target.entry.mantissa)
    result = ROUND[how](exact / unit, value.negative) * unit
    # Without a zero, underflow gives the smallest value.
    return max(result, power(lowest)) if target.entry.zero == "none" else result


@cache
def via_float32(value: Value) -> Value:
    single = format_named("float32")
    code = to_float(value, single, "half-even", "infinity")
    assert code is not None
    same = code == ANY_NAN or (value.number is not None and value_of(single, code) == value.number)
    return value if same else meaning(single, code)


@cache
def magnitude(value: Value) -> Value:
    if not value.negative:
        return value
    number = None if value.number is None else abs(value.number)
    return replace(value, negative=False, number=number)


@cache
def without_subnormal(value: Value) -> Value:
    if not value.subnormal:
        return value
    return replace(value, number=Fraction(0), negative=value.negative and value.has_signed_zero)


def flushed(code: int | None, target: Format) -> int | None:
    if code in (None, ANY_NAN) or not meaning(target, code or 0).subnormal:
        return code
    return (code or 0) & (target.sign_bit if target.entry.zero == "signed" else 0)


FLOATS: dict[str, Definition] = {
    "nearest": lambda v, t: to_float(v, t, "half-even", "infinity"),
    "nearest-clamp": lambda v, t: to_float(v, t, "half-even", "clamp"),
    "nearest-nan": lambda v, t: to_float(v, t, "half-even", "nan"),
    "half-away-infinity": lambda v, t: to_float(v, t, "half-away", "infinity"),
    "half-away-clamp": lambda v, t: to_float(v, t, "half-away", "clamp"),
    "truncate-infinity": lambda v, t: to_float(v, t, "truncate", "infinity"),
    "truncate-clamp": lambda v, t: to_float(v, t, "truncate", "clamp"),
    "ceil-clamp": lambda v, t: to_float(v, t, "ceil", "clamp"),
    "via-float32-nearest": lambda v, t: to_float(via_float32(v), t, "half-even", "infinity"),
    "via-float32-nearest-clamp": lambda v, t: to_float(via_float32(v), t, "half-even", "clamp"),
    "via-float32-nearest-nan": lambda v, t: to_float(via_float32(v), t, "half-even", "nan"),
    "flush-nearest": lambda v, t: to_float(without_subnormal(v), t, "half-even", "infinity"),
    "nearest-flush": lambda v, t: flushed(to_float(v, t, "half-even", "infinity"), t),
    "flush-nearest-flush": lambda v, t: flushed(
        to_float(without_subnormal(v), t, "half-even", "infinity"), t
    ),
    "magnitude-nearest-clamp": lambda v, t: to_float(magnitude(v), t, "half-even", "clamp"),
    "magnitude-half-away-clamp": lambda v, t: to_float(magnitude(v), t, "half-away", "clamp"),
    "magnitude-ceil-clamp": lambda v, t: to_float(magnitude(v), t, "ceil", "clamp"),
    "magnitude-truncate-clamp": lambda v, t: to_float(magnitude(v), t, "truncate", "clamp"),
    "magnitude-nearest-nan": lambda v, t: to_float(magnitude(v), t, "half-even", "nan"),
    "via-float32-magnitude-nearest-nan": lambda v, t: to_float(
        magnitude(via_float32(v)), t, "half-even", "nan"
    ),
}


CONSTANTS: dict[str, Callable[[Format], int]] = {
    "zero": lambda t: 0,
    "one": lambda t: 1 if t.is_integral else t.entry.bias << t.entry.mantissa,
    "maximum": lambda t: ends(t)[1] if t.is_integral else t.max_code,
    "minimum": lambda t: ends(t)[0] if t.is_integral else t.lowest_code,
    "infinity": lambda t: t.infinity_code,
    "minus-infinity": lambda t: t.infinity_code | t.sign_bit,
    "nan": lambda t: ANY_NAN,
}
KINDS = {"integer": INTEGERS, "boolean": BOOLEANS, "float": FLOATS}


def defined(name: str, value: Value, target: Format) -> int | None:
    """A behavior's answer to a value: a pattern, ``ANY_NAN``, or None where it is undefined."""
    if name in CONSTANTS:
        answer: int | None = CONSTANTS[name](target)
    else:
        answer = KINDS[target.kind][name](value, target)
    if answer is None or target.kind == "float":
        return answer
    return answer & target.mask
