"""A second definition of quantization, in integers: numerators and denominators, and nothing else.

It states each formula as the pages do, and the layout of formats once more; it shares nothing with
the reference. ``python -m tests.proof.test_quantization_model 1000000`` compares both on a million
random elements, and on all telling ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

FLOATS = {
    "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7),
    "float8e4m3fn": (4, 3), "float8e4m3fnuz": (4, 3),
    "float8e5m2": (5, 2), "float8e5m2fnuz": (5, 2),
    "float4e2m1": (2, 1), "float8e8m0": (8, 0),
}  # fmt: skip
"""Exponent and mantissa bits."""
BIASES = {
    "float32": 127, "float16": 15, "bfloat16": 127, "float8e4m3fn": 7, "float8e4m3fnuz": 8,
    "float8e5m2": 15, "float8e5m2fnuz": 16, "float4e2m1": 1, "float8e8m0": 127,
}  # fmt: skip
LARGEST_CODES = {
    "float32": 0x7F7FFFFF, "float16": 0x7BFF, "bfloat16": 0x7F7F, "float8e4m3fn": 0x7E,
    "float8e4m3fnuz": 0x7F, "float8e5m2": 0x7B, "float8e5m2fnuz": 0x7F, "float4e2m1": 7,
    "float8e8m0": 0xFE,
}  # fmt: skip
ANY_NAN = -1
OUT = "out"
Ratio = tuple[int, int]
"""A value as numerator and positive denominator, not reduced."""


@dataclass(frozen=True)
class Expected:
    """Right patterns, and those that only break a recommendation; both are empty if all is open."""

    strong: frozenset[int] = frozenset()
    weaker: frozenset[int] = frozenset()
    is_open: bool = False


OPEN = Expected(is_open=True)


def is_integer(dtype: str) -> bool:
    return "int" in dtype


def width(dtype: str) -> int:
    return int(dtype.partition("int")[2])


def ends(dtype: str) -> tuple[int, int]:
    bits = width(dtype)
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def value(dtype: str, code: int) -> Ratio | str:
    """A pattern's value, or "inf", "-inf" or "nan"."""
    if is_integer(dtype):
        return (code - 2 ** width(dtype) if code > ends(dtype)[1] else code, 1)
    exponent_bits, mantissa_bits = FLOATS[dtype]
    bias = BIASES[dtype]
    if dtype == "float8e8m0":
        return "nan" if code == 0xFF else scaled(1, code - bias)
    sign_bit = 1 << (exponent_bits + mantissa_bits)
    if dtype.endswith("fnuz") and code == sign_bit:
        return "nan"
    magnitude, is_negative = code % sign_bit, code >= sign_bit
    if magnitude > LARGEST_CODES[dtype]:
        has_infinity = dtype in ("float32", "float16", "bfloat16", "float8e5m2")
        if has_infinity and magnitude == LARGEST_CODES[dtype] + 1:
            return "-inf" if is_negative else "inf"
        return "nan"
    field, mantissa = magnitude >> mantissa_bits, magnitude % (1 << mantissa_bits)
    if field:
        mantissa += 1 << mantissa_bits
    top, bottom = scaled(mantissa, max(field, 1) - bias - mantissa_bits)
    return (-top if is_negative else top, bottom)


def scaled(number: int, power: int) -> Ratio:
    return (number << power, 1) if power >= 0 else (number, 1 << -power)


def halfway_even(top: int, bottom: int) -> int:
    """The integer nearest to a ratio; the even one at a tie."""
    twice = 2 * top + bottom
    found = twice // (2 * bottom)
    return found - 1 if twice % (2 * bottom) == 0 and found % 2 else found


@cache
def largest(dtype: str) -> Ratio:
    if is_integer(dtype):
        return (ends(dtype)[1], 1)
    found = value(dtype, LARGEST_CODES[dtype])
    assert isinstance(found, tuple)
    return found


def unit(dtype: str, ratio: Ratio) -> int:
    """The power of two that is one unit in the last place of a value."""
    mantissa_bits = FLOATS[dtype][1]
    lowest = (0 if dtype == "float8e8m0" else 1) - BIASES[dtype]
    top, bottom = abs(ratio[0]), ratio[1]
    power = lowest
    if top:
        power = max(power, top.bit_length() - bottom.bit_length() - 1)
        while top * scaled(1, -power - 1)[0] >= bottom * scaled(1, -power - 1)[1]:
            power += 1
    return power - mantissa_bits


def round_to(dtype: str, ratio: Ratio) -> Ratio | str:
    """The nearest value of a dtype, or OUT if that exceeds the range."""
    top, bottom = ratio
    if is_integer(dtype):
        low, high = ends(dtype)
        found = halfway_even(top, bottom)
        return (found, 1) if low <= found <= high else OUT
    power = unit(dtype, ratio)
    numerator, denominator = scaled(1, -power)
    multiple = halfway_even(top * numerator, bottom * denominator)
    up, down = scaled(1, power)
    rounded = (multiple * up, down)
    high_top, high_bottom = largest(dtype)
    return rounded if abs(rounded[0]) * high_bottom <= high_top * down else OUT


def same(one: Ratio, other: Ratio) -> bool:
    return one[0] * other[1] == other[0] * one[1]


def has(dtype: str, ratio: Ratio) -> bool:
    if dtype == "float8e8m0" and ratio[0] <= 0:
        return False
    rounded = round_to(dtype, ratio)
    if dtype == "float8e8m0" and isinstance(rounded, tuple) and rounded[0] == 0:
        return False
    return isinstance(rounded, tuple) and same(rounded, ratio)


def code_of(dtype: str, ratio: Ratio, is_negative: bool) -> int:
    """The pattern of a value, which the dtype must represent exactly."""
    top, bottom = ratio
    if is_integer(dtype):
        return (top // bottom) % 2 ** width(dtype)
    exponent_bits, mantissa_bits = FLOATS[dtype]
    power = unit(dtype, ratio)
    numerator, denominator = scaled(1, -power)
    multiple = abs(top) * numerator // (bottom * denominator)
    field = power + mantissa_bits + BIASES[dtype]
    if multiple < 1 << mantissa_bits:
        code = multiple
    else:
        code = (field << mantissa_bits) + multiple - (1 << mantissa_bits)
    has_minus_zero = not dtype.endswith("fnuz")
    sign = 1 << (exponent_bits + mantissa_bits)
    return code + sign if is_negative and (code or has_minus_zero) else code


def divide(one: Ratio, other: Ratio) -> Ratio:
    top, bottom = one[0] * other[1], one[1] * other[0]
    return (top, bottom) if bottom > 0 else (-top, -bottom)


def multiply(one: Ratio, other: Ratio) -> Ratio:
    return one[0] * other[0], one[1] * other[1]


def quotients(
    version: int, source: str, scale: str, precision: str | None, x: Ratio, s: Ratio
) -> tuple[list[Ratio], list[Ratio]] | None:
    """The right quotients, and those that only break a recommendation; None if all is open."""
    exact = divide(x, s)
    fmt = precision or scale
    bounded = fmt != "float8e8m0"
    operands = [round_to(fmt, x), round_to(fmt, s)]
    if bounded:
        if OUT in operands or round_to(fmt, exact) == OUT:
            return None
        near_x, near_s = operands
        assert isinstance(near_x, tuple)
        assert isinstance(near_s, tuple)
        if near_s[0] == 0 or round_to(fmt, divide(near_x, near_s)) == OUT:
            return None
    if has(fmt, exact) and has(fmt, x) and has(fmt, s):
        return [exact], []
    if is_integer(fmt) or fmt == "float8e8m0":
        return ([exact], []) if version in (19, 21) and scale == "int32" else None
    once = round_to(fmt, exact)
    twice = round_to(fmt, divide(near_x, near_s))
    assert isinstance(once, tuple)
    assert isinstance(twice, tuple)
    return [once, twice], [exact] if version < 23 else []


def quantize(
    version: int,
    source: str,
    scale: str,
    precision: str | None,
    target: str,
    saturate: bool,
    x: int,
    s: int,
    z: int | None,
) -> Expected:
    """ONNX QuantizeLinear of one element."""
    given, divisor = value(source, x), value(scale, s)
    if isinstance(divisor, str) or divisor[0] <= 0:
        return OPEN
    if isinstance(given, str):
        if given != "nan" and round_to(precision or scale, divisor) == OUT:
            return OPEN
        if is_integer(target) or (z is not None and zero_is_other(target, z)):
            return OPEN
        if target.endswith("fnuz") and version < 24:
            return Expected(frozenset([ANY_NAN]))  # Cast's tables before version 24
        return Expected(frozenset([special(target, given, saturate)]))
    found = quotients(version, source, scale, precision, given, divisor)
    if found is None or (not is_integer(target) and z is not None and zero_is_other(target, z)):
        return OPEN
    strong, weaker = (
        {code for quotient in each for code in ends_of(target, saturate, quotient, z)}
        for each in found
    )
    return Expected(frozenset(strong), frozenset(weaker - strong))


def zero_is_other(dtype: str, z: int) -> bool:
    found = value(dtype, z)
    return isinstance(found, str) or found[0] != 0


def ends_of(target: str, saturate: bool, quotient: Ratio, z: int | None) -> list[int]:
    """The patterns of a quotient: rounded, with the zero point added, and limited."""
    if is_integer(target):
        offset = value(target, z or 0)
        assert isinstance(offset, tuple)
        low, high = ends(target)
        total = halfway_even(*quotient) + offset[0]
        return [min(max(total, low), high) % 2 ** width(target)]
    is_negative = quotient[0] < 0
    rounded = round_to(target, quotient)
    if isinstance(rounded, str):
        return [special(target, "-inf" if is_negative else "inf", saturate)]
    if quotient[0] == 0 and not target.endswith("fnuz"):
        return [code_of(target, rounded, False), code_of(target, rounded, True)]
    return [code_of(target, rounded, is_negative)]


def special(target: str, given: str, saturate: bool) -> int:
    """The pattern by Cast's tables and the page on float4 for NaN or a value out of range."""
    sign = 8 if target == "float4e2m1" else 0x80
    end = LARGEST_CODES[target] + (sign if given == "-inf" else 0)
    if given == "nan":
        return LARGEST_CODES[target] if target == "float4e2m1" else ANY_NAN
    if target == "float4e2m1" or saturate:
        return end
    if target == "float8e5m2":
        return 0xFC if given == "-inf" else 0x7C
    return ANY_NAN


def dequantize(source: str, scale: str, target: str, x: int, s: int, z: int | None) -> Expected:
    """ONNX DequantizeLinear of one code."""
    code, factor = value(source, x), value(scale, s)
    if isinstance(code, str) or isinstance(factor, str) or factor[0] <= 0:
        return OPEN
    offset = value(source, z or 0)
    if z is not None and zero_is_other(source, z) and (source == "int32" or not is_integer(source)):
        return OPEN
    assert isinstance(offset, tuple)
    difference = (code[0] * offset[1] - offset[0] * code[1], code[1] * offset[1])
    product = multiply(difference, factor)
    parts = [round_to(target, each) for each in (difference, factor, product)]
    if OUT in parts:
        return OPEN
    near_difference, near_factor, once = parts
    assert isinstance(near_difference, tuple)
    assert isinstance(near_factor, tuple)
    assert isinstance(once, tuple)
    twice = round_to(target, multiply(near_difference, near_factor))
    if near_factor[0] == 0 or isinstance(twice, str):
        return OPEN
    is_negative = product[0] < 0
    if product[0] == 0:
        zeros = (code_of(target, (0, 1), False), code_of(target, (0, 1), True))
        return Expected(frozenset(zeros))
    if all(has(target, each) for each in (difference, factor, product)):
        return Expected(frozenset([code_of(target, once, is_negative)]))
    strong = {code_of(target, each, is_negative) for each in (once, twice)}
    power = unit(target, product)
    top, bottom = product[0] * scaled(1, -power)[0], product[1] * scaled(1, -power)[1]
    below, up, down = top // bottom, *scaled(1, power)
    beside = [below] if top % bottom == 0 else [below, below + 1]
    high_top, high_bottom = largest(target)
    weaker = {
        code_of(target, (each * up, down), is_negative)
        for each in beside
        if abs(each * up) * high_bottom <= high_top * down
    }
    return Expected(frozenset(strong), frozenset(weaker - strong))
