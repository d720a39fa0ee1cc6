"""Numbers, patterns and casts to small floats as the pages have them, in integers alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

ANY_NAN = -1
"""Stands for every NaN of a wide target."""

Patterns = frozenset[int]
NOTHING: Patterns = frozenset()


class Answer(NamedTuple):
    """The patterns that a page admits and prefers for one element; None where it is silent."""

    admitted: Patterns | None = None
    """Patterns that some reading of the words gives."""
    preferred: Patterns | None = None
    """Patterns that related text, a later version, or plain IEEE arithmetic gives."""
    why: str = ""
    """The kind of input, and what decides it."""
    is_implied: bool = False
    """Whether the page only implies this, or a sister page says it."""


@dataclass(frozen=True)
class Layout:
    """A float format as its page lists it."""

    mantissa: int
    lowest: int
    """Exponent of the least normal number."""
    largest: int
    """Pattern of the largest finite number."""
    sign: int
    """The sign bit."""
    infinity: int | None
    nans: tuple[int, ...]
    """Patterns of NaN without the sign; the pattern itself where NaN has no sign."""
    is_unsigned_zero: bool = False


LAYOUTS = {
    "float32": Layout(23, -126, 0x7F7FFFFF, 1 << 31, 0x7F800000, (0x7FC00000,)),
    "float16": Layout(10, -14, 0x7BFF, 1 << 15, 0x7C00, (0x7E00,)),
    "bfloat16": Layout(7, -126, 0x7F7F, 1 << 15, 0x7F80, (0x7FC0,)),
    # F8 50-100
    "float8e4m3fn": Layout(3, -6, 0x7E, 0x80, None, (0x7F,)),
    "float8e5m2": Layout(2, -14, 0x7B, 0x80, 0x7C, (0x7D, 0x7E, 0x7F)),
    # F8 112-156
    "float8e4m3fnuz": Layout(3, -7, 0x7F, 0x80, None, (0x80,), is_unsigned_zero=True),
    "float8e5m2fnuz": Layout(2, -15, 0x7F, 0x80, None, (0x80,), is_unsigned_zero=True),
    # F4 25-92
    "float4e2m1": Layout(1, 0, 7, 8, None, ()),
    # The other elements of MX blocks.
    "float6e2m3": Layout(3, 0, 31, 32, None, ()),
    "float6e3m2": Layout(2, -2, 31, 32, None, ()),
}
WIDE = frozenset({"float32", "float16", "bfloat16"})
MANY = frozenset({"float32", "int32", "uint32", "int64", "uint64"})
"""Dtypes with too many patterns to keep what they stand for."""


class Number(NamedTuple):
    """An extended real: ``numerator / denominator``, an infinity, or a NaN; each with a sign."""

    kind: str
    negative: bool
    numerator: int = 0
    denominator: int = 1

    @property
    def is_zero(self) -> bool:
        return self.kind == "finite" and not self.numerator


def finite(numerator: int, denominator: int = 1, *, zero_negative: bool = False) -> Number:
    """A ratio with a signed numerator and a positive denominator."""
    negative = numerator < 0 or (not numerator and zero_negative)
    return Number("finite", negative, abs(numerator), denominator)


def power(numerator: int, exponent: int, *, negative: bool) -> Number:
    """A magnitude times a power of two."""
    if exponent >= 0:
        return Number("finite", negative, numerator << exponent, 1)
    return Number("finite", negative, numerator, 1 << -exponent)


def signed(number: Number) -> int:
    """The numerator with its sign."""
    return -number.numerator if number.negative else number.numerator


# Integers


@cache
def is_integer(dtype: str) -> bool:
    return "int" in dtype


@cache
def width(dtype: str) -> int:
    """The bits of an integer dtype."""
    return int(dtype.rpartition("int")[2])


@cache
def ends(dtype: str) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    bits = int(dtype.rpartition("int")[2])
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def integer_pattern(dtype: str, whole: int) -> int:
    return whole & ((1 << width(dtype)) - 1)


# Patterns to numbers


def decode(dtype: str, code: int) -> Number:
    """Return the number that a pattern of a dtype stands for."""
    return (_decode if dtype in MANY else _cached)(dtype, code)


def _decode(dtype: str, code: int) -> Number:
    if is_integer(dtype):
        low, high = ends(dtype)
        return finite(code if code <= high else code - (high - low + 1))
    if dtype == "float8e8m0":  # F8 201-224
        return Number("nan", False) if code == 0xFF else power(1, code - 127, negative=False)
    layout = LAYOUTS[dtype]
    negative = bool(code & layout.sign)
    magnitude = code & (layout.sign - 1)
    if layout.is_unsigned_zero and code == layout.sign:
        return Number("nan", False)
    if magnitude > layout.largest:
        return Number("inf" if magnitude == layout.infinity else "nan", negative)
    field, fraction = magnitude >> layout.mantissa, magnitude & ((1 << layout.mantissa) - 1)
    if field:
        fraction |= 1 << layout.mantissa
    exponent = max(field, 1) - 1 + layout.lowest - layout.mantissa
    return power(fraction, exponent, negative=negative)


_cached = cache(_decode)


# Numbers to patterns


def exponent_of(numerator: int, denominator: int) -> int:
    """The exponent of the power of two at or below a positive ratio."""
    found = numerator.bit_length() - denominator.bit_length()
    is_below = numerator < denominator << found if found >= 0 else numerator << -found < denominator
    return found - 1 if is_below else found


def below(layout: Layout, number: Number) -> tuple[int, int]:
    """The pattern at or below a magnitude, and what is left: 0, 1 under half, 2 half, 3 above.

    Patterns go on beyond the largest one as if there were no end.
    """
    numerator, denominator = number.numerator, number.denominator
    if not numerator:
        return 0, 0
    exponent = max(exponent_of(numerator, denominator), layout.lowest)
    shift = exponent - layout.mantissa
    if shift > 0:
        denominator <<= shift
    else:
        numerator <<= -shift
    units, rest = divmod(numerator, denominator)
    code = ((exponent - layout.lowest) << layout.mantissa) + units
    if not rest:
        return code, 0
    twice = 2 * rest
    return code, 1 if twice < denominator else 2 if twice == denominator else 3


def nearest_code(layout: Layout, number: Number) -> int:
    """The magnitude's pattern, rounded to nearest, ties to even; it may pass the largest one."""
    code, rest = below(layout, number)
    return code + (rest == 3 or (rest == 2 and code & 1))


def rounded(dtype: str, number: Number) -> Number:
    """A number in a float type of IEEE 754, rounded to nearest even; infinite beyond the end."""
    if number.kind != "finite":
        return number
    layout = LAYOUTS[dtype]
    return _at(layout, nearest_code(layout, number), negative=number.negative)


def around(dtype: str, number: Number) -> list[Number]:
    """The numbers of a float type next to a number, the nearest even one first."""
    if number.kind != "finite":
        return [number]
    layout = LAYOUTS[dtype]
    code, rest = below(layout, number)
    found = [_at(layout, code, negative=number.negative)]
    if rest:
        found.append(_at(layout, code + 1, negative=number.negative))
        if rest == 3 or (rest == 2 and code & 1):
            found.reverse()
    return found


def _at(layout: Layout, code: int, *, negative: bool) -> Number:
    if code > layout.largest:
        return Number("inf", negative)
    field, fraction = code >> layout.mantissa, code & ((1 << layout.mantissa) - 1)
    if field:
        fraction |= 1 << layout.mantissa
    return power(fraction, max(field, 1) - 1 + layout.lowest - layout.mantissa, negative=negative)


def whole_even(number: Number) -> int:
    """The nearest integer; the even one at a tie."""
    whole, rest = divmod(number.numerator, number.denominator)
    twice = 2 * rest
    whole += twice > number.denominator or (twice == number.denominator and whole & 1)
    return -whole if number.negative else whole


# Arithmetic of extended reals, as IEEE 754 has it, before rounding


def quotient(top: Number, bottom: Number) -> Number:
    negative = top.negative != bottom.negative
    if "nan" in (top.kind, bottom.kind):
        return Number("nan", top.negative if top.kind == "nan" else bottom.negative)
    if top.kind == "inf":
        return Number("nan" if bottom.kind == "inf" else "inf", negative)
    if bottom.kind == "inf":
        return Number("finite", negative)
    if not bottom.numerator:
        return Number("inf" if top.numerator else "nan", negative)
    return Number(
        "finite",
        negative,
        top.numerator * bottom.denominator,
        top.denominator * bottom.numerator,
    )


def product(left: Number, right: Number) -> Number:
    negative = left.negative != right.negative
    if "nan" in (left.kind, right.kind):
        return Number("nan", negative)
    if "inf" in (left.kind, right.kind):
        return Number("nan" if left.is_zero or right.is_zero else "inf", negative)
    return Number(
        "finite",
        negative,
        left.numerator * right.numerator,
        left.denominator * right.denominator,
    )


def total(left: Number, right: Number) -> Number:
    """A sum; a zero has the sign that rounding to nearest gives it."""
    if left.kind == "nan" or right.kind == "nan":
        return Number("nan", left.negative if left.kind == "nan" else right.negative)
    if left.kind == "inf" or right.kind == "inf":
        if left.kind == right.kind and left.negative != right.negative:
            return Number("nan", False)
        return left if left.kind == "inf" else right
    top = signed(left) * right.denominator + signed(right) * left.denominator
    both_negative = left.is_zero and right.is_zero and left.negative and right.negative
    return finite(top, left.denominator * right.denominator, zero_negative=both_negative)


def minus(number: Number) -> Number:
    return number._replace(negative=not number.negative)


# Casts to small floats


@cache
def nan_patterns(dtype: str) -> Patterns:
    """Return all NaNs of a dtype; of a wide one ``ANY_NAN`` alone."""
    if dtype in WIDE:
        return frozenset({ANY_NAN})
    layout = LAYOUTS[dtype]
    if layout.is_unsigned_zero:
        return frozenset(layout.nans)
    return frozenset(layout.nans) | {layout.sign | each for each in layout.nans}


@cache
def nan_of_sign(dtype: str, *, negative: bool) -> Patterns:
    layout = LAYOUTS[dtype]
    if layout.is_unsigned_zero:
        return frozenset(layout.nans)
    return frozenset((layout.sign if negative else 0) | each for each in layout.nans)


def with_sign(dtype: str, magnitude: int, *, negative: bool) -> int:
    layout = LAYOUTS[dtype]
    if not magnitude and layout.is_unsigned_zero:
        return 0
    return magnitude | (layout.sign if negative else 0)


def cast_float8(dtype: str, number: Number, *, saturate: bool, version: int) -> Answer:
    """Answer with a cast to float8 by the two tables of Cast.

    C22767-22791, 24614-24638, 28434-28458, 30064-30088, 31737-31761.
    """
    layout = LAYOUTS[dtype]
    negative = number.negative
    any_nan = nan_patterns(dtype)
    end = frozenset({with_sign(dtype, layout.largest, negative=negative)})
    if number.kind == "nan":
        # Table 1 has one row; table 2 rows NaN and -NaN. The sign of a computed NaN is no page's.
        sign = any_nan if saturate else nan_of_sign(dtype, negative=negative)
        return Answer(any_nan, sign, "NaN", True)
    if number.kind == "inf":
        if saturate:
            is_nan = layout.is_unsigned_zero and version < 24
            found = any_nan if is_nan else end
            return Answer(found, found, "infinity, table 1", True)
        if dtype == "float8e5m2":
            infinite = frozenset({with_sign(dtype, 0x7C, negative=negative)})
            return Answer(infinite, infinite, "infinity, table 2", True)
        if negative:
            right = nan_of_sign(dtype, negative=True)
            return Answer(right, right, "infinity, table 2: -Inf is -NaN", True)
        return Answer(any_nan, nan_of_sign(dtype, negative=False), "infinity, table 2", True)
    code = nearest_code(layout, number)
    if code > layout.largest:
        if saturate:
            return Answer(end, end, "above the end, table 1")
        if dtype == "float8e5m2":
            infinite = frozenset({with_sign(dtype, 0x7C, negative=negative)})
            return Answer(infinite, infinite, "above the end, table 2", True)
        return Answer(any_nan, any_nan, "above the end, table 2: NaN without a sign", True)
    found = frozenset({with_sign(dtype, code, negative=negative)})
    if not code:
        return Answer(zeros(dtype, negative=negative), found, "zero")
    return Answer(found, found, "in range")


def cast_float4(number: Number) -> Answer:
    """Answer with a cast to float4e2m1 by the table F4 99-107."""
    if number.kind == "nan":
        return Answer(frozenset({7}), frozenset({7}), "NaN is 6", True)
    is_infinite = number.kind == "inf"
    code = 8 if is_infinite else nearest_code(LAYOUTS["float4e2m1"], number)
    found = frozenset({min(code, 7) | (8 if number.negative else 0)})
    if code > 7:
        return Answer(found, found, "above the end of float4", True)
    if not code:
        return Answer(zeros("float4e2m1", negative=number.negative), found, "zero")
    return Answer(found, found, "in range")


@cache
def zeros(dtype: str, *, negative: bool) -> Patterns:
    """The zeros that a result may be: no page says that a negative one keeps its sign."""
    layout = LAYOUTS[dtype]
    if layout.is_unsigned_zero or not negative:
        return frozenset({0})
    return frozenset({0, layout.sign})


def cast_wide(dtype: str, number: Number) -> int:
    """The pattern nearest to a number, as IEEE 754 rounds; ANY_NAN of NaN."""
    layout = LAYOUTS[dtype]
    assert layout.infinity is not None
    sign = layout.sign if number.negative else 0
    if number.kind == "nan":
        return ANY_NAN
    if number.kind == "inf":
        return layout.infinity | sign
    return min(nearest_code(layout, number), layout.infinity) | sign


def merged(admitted: list[Answer], preferred: list[Answer]) -> Answer:
    """Join answers of several readings: what some admit, and what others prefer.

    The result is ``SILENT`` if any of them is silent.
    """
    own: set[int] = set()
    better: set[int] = set()
    whys: dict[str, None] = {}
    is_implied = False
    for each in admitted:
        if each.admitted is None:
            return SILENT
        own |= each.admitted
        whys[each.why] = None
        is_implied |= each.is_implied
    for each in preferred:
        if each.preferred is None:
            return SILENT
        better |= each.preferred
    return Answer(frozenset(own | better), frozenset(better), " or ".join(whys), is_implied)


SILENT = Answer(why="a reading says nothing: silent")
