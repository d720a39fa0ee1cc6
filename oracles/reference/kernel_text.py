"""Casts from and to text by the kernels: scan a number, convert it, write shortest digits.

Whether a text that a backend answered has the value of a pattern is decided here too, if comparing
one double is enough for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.kernels import (
    MASK,
    OFFSET,
    TOP,
    WIDTH,
    Converted,
    Unpacked,
    Word,
    convert,
    rounded,
    select_arrays,
    select_words,
    unpack,
)
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Rounding
from specs.outcomes import Either, Exactly, Nan

DIGITS = "0123456789"
HIGHEST_EXPONENT = 2_000
"""Replaces larger exponents: it is beyond every format, and codes up to it fit into 64 bits."""
TEXTS_KEPT = 1 << 11
"""How many scanned texts are cached: all modes and most targets use the same texts."""
LARGEST_POWER = 6_000
"""Numbers from ``10**6000`` on overflow every format; those below ``10**-6000`` are tiny."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A number read from text: ``digits * 10**power``, negated if ``negative``.

    ``plain_whole`` means that the text has neither a point nor an exponent.
    """

    negative: bool
    digits: int
    power: int
    plain_whole: bool


@lru_cache(maxsize=TEXTS_KEPT)
def scan(text: str) -> Scanned | None:
    """Read a number with digits on both sides of its point, if any; return None for other texts."""
    rest = text
    negative = rest.startswith("-")
    rest = rest[1:] if rest[:1] in ("+", "-") else rest
    whole, rest = _leading_digits(rest)
    fraction = ""
    has_point = rest.startswith(".")
    if has_point:
        fraction, rest = _leading_digits(rest[1:])
        if not fraction:
            return None
    power = 0
    has_exponent = rest[:1] in ("e", "E")
    if has_exponent:
        tail = rest[1:]
        sign = -1 if tail.startswith("-") else 1
        exponent, rest = _leading_digits(tail[1:] if tail[:1] in ("+", "-") else tail)
        if not exponent:
            return None
        power = sign * min(_integer(exponent), LARGEST_POWER * 100)
    if not whole or rest:
        return None
    digits = _integer(whole + fraction)
    return Scanned(negative, digits, power - len(fraction), not has_point and not has_exponent)


def _leading_digits(text: str) -> tuple[str, str]:
    rest = text.lstrip(DIGITS)
    return text[: len(text) - len(rest)], rest


@lru_cache(maxsize=1 << 11)
def ten_to(power: int) -> int:
    """Compute ``10**power`` as an int; ``power`` must not be negative."""
    return int(10**power)


def _integer(digits: str) -> int:
    """Convert decimal digits of any length, which ``int`` refuses from 4,301 digits on."""
    if len(digits) <= 1000:
        return int(digits)
    middle = len(digits) // 2
    low = digits[middle:]
    return _integer(digits[:middle]) * ten_to(len(low)) + _integer(low)


def unpack_number(number: Scanned) -> Unpacked:
    """Convert a number to the kernels' input: 64 significant bits, the lowest of them sticky.

    An exponent outside of every format's range may be replaced by another one outside.
    """
    size = number.digits.bit_length() * 3 // 10
    power = number.power if number.digits else 0
    if size + power > LARGEST_POWER:
        numerator, denominator = 1 << 16_000, 1
    elif number.digits and size + power < -LARGEST_POWER:
        numerator, denominator = 1, 1 << 16_000
    elif power >= 0:
        numerator, denominator = number.digits * ten_to(power), 1
    else:
        numerator, denominator = number.digits, ten_to(-power)
    exponent = numerator.bit_length() - denominator.bit_length()
    scaled, rest = _divide(numerator, denominator, TOP - exponent)
    if scaled > MASK:
        exponent += 1
        scaled, rest = _divide(numerator, denominator, TOP - exponent)
    elif numerator and scaled < 1 << TOP:
        exponent -= 1
        scaled, rest = _divide(numerator, denominator, TOP - exponent)
    return Unpacked(
        sign=Word(int(number.negative)),
        nan=False,
        infinity=False,
        zero=numerator == 0,
        subnormal=False,
        significand=Word(scaled | (rest != 0)),
        exponent=Word(min(max(exponent, -OFFSET), HIGHEST_EXPONENT) + OFFSET),
    )


def _divide(numerator: int, denominator: int, shift: int) -> tuple[int, int]:
    if shift >= 0:
        return divmod(numerator << shift, denominator)
    return divmod(numerator, denominator << -shift)


def read_number(
    target: Format, number: Scanned, rounding: Rounding = "nearest-even"
) -> tuple[int, Converted]:
    """Round a number to a target; return the target's pattern and the kernels' full result."""
    parts = unpack_number(number)
    converted = convert(target, rounding, parts, select_words)
    return int(rounded(target, parts, rounding, select_words, converted)), converted


def answer_text(ruling: Ruling, text: str) -> int | str:
    """Return one pattern that a ruling allows for a text.

    If the target is not numeric, return the text itself. If no branch names the text's class, the
    document leaves the input open: return 0.
    """
    if not ruling.target.is_numeric:
        return text
    # Some letters beyond ASCII have an ASCII upper case: "ı".upper() is "I".
    upper = text.upper() if text.isascii() else ""
    classes = {"infinity-literal"} if upper in ("INF", "+INF") else set()
    if upper == "-INF":
        classes = {"minus-infinity-literal" + ("" if text == "-INF" else "-other-case")}
    if upper == "NAN":
        classes = {"nan-literal"}
    number = scan(text)
    code = 0
    if number is not None:
        code, converted = read_number(ruling.target, number, ruling.rounding)
        classes = set(_number_classes(ruling.target, number, converted))
    for branch in ruling.branches:
        if branch.input_class in classes:
            match branch.outcome:
                case Exactly(code=constant) | Either(options=[Exactly(code=constant), Exactly()]):
                    return constant
                case Nan():
                    return ruling.target.nan_codes[0][-1]
            return code
    return 0


def _number_classes(target: Format, number: Scanned, converted: Converted) -> Iterator[str]:
    """Yield the documents' input classes to which a number that was read from a text belongs."""
    if number.digits == 0:
        is_in_range, is_value = True, not number.negative and target.has_zero
    else:
        is_in_range = not converted.overflow
        is_value = not (converted.overflow or converted.beyond or converted.inexact)
        yield from _zone_classes(number.negative, converted)
        if not (number.negative or converted.overflow or converted.beyond or converted.tiny):
            yield "positive-literal-in-range"
    if is_in_range:
        yield "number-literal-in-range"
        yield "representable" if is_value else "inexact-literal-in-range"
        if number.plain_whole:
            yield "whole-literal-in-range"


def _zone_classes(negative: bool, converted: Converted) -> Iterator[str]:
    """Yield the input class of a number out of the target's range, if there is one."""
    if converted.overflow:
        yield "-overflow" if negative else "overflow"
    elif converted.beyond:
        yield "rounds-to-lowest" if negative else "rounds-to-max"
    elif converted.tiny:
        yield "-below-smallest" if negative else "below-smallest"


@lru_cache(maxsize=1 << 18)
def shortest_text(source: Format, code: int) -> str:
    """Write a pattern's value in plain notation, with the fewest digits that round back to it.

    An integer has all its digits. A NaN is written ``NaN``, an infinity ``INF`` or ``-INF``, and
    any zero ``0``.
    """
    parts = unpack(source, Word(code), select_words)
    if parts.nan:
        return "NaN"
    minus = "-" if parts.sign == 1 else ""
    if parts.infinity:
        return minus + "INF"
    if parts.zero:
        return "0"
    power_of_two = int(parts.exponent) - OFFSET - TOP
    significand = int(parts.significand)
    if source.is_integral:
        return f"{minus}{significand >> -power_of_two}"
    numerator = significand << max(power_of_two, 0)
    denominator = 1 << max(-power_of_two, 0)
    reads_back = _reading_back(source, code, int(parts.exponent), significand)
    leading = _leading_power(numerator, denominator)
    for count in range(1, WIDTH):
        power = leading - count + 1
        digits = _nearest_multiple(numerator, denominator, power)
        if reads_back(digits, power):
            return minus + _plain(digits, power)
    raise AssertionError(f"{source.name} {code:#x} needs more than {WIDTH} digits")


def _reading_back(
    source: Format, code: int, exponent: int, significand: int
) -> Callable[[int, int], bool]:
    """Return a function of digits and a power: whether ``digits * 10**power`` rounds to a pattern.

    It rounds to nearest, ties to even: so the number must lie between the midpoints to both
    neighbors. These are whole numbers of quarters of the distance to the next value; below a power
    of two the distance is half as large.
    """
    lowest = source.lowest_exponent + OFFSET
    quarter = max(exponent, lowest) - OFFSET - source.entry.mantissa - 2
    shift = exponent - OFFSET - TOP - quarter
    value = significand << shift if shift >= 0 else significand >> -shift
    is_power = significand == 1 << TOP and exponent > lowest
    lower, upper, is_even = value - (1 if is_power else 2), value + 2, code & 1 == 0

    def reads_back(digits: int, power: int) -> bool:
        number = digits * ten_to(max(power, 0)) << max(-quarter, 0)
        unit = ten_to(max(-power, 0)) << max(quarter, 0)
        is_inside = lower * unit < number < upper * unit
        return is_inside or (is_even and number in (lower * unit, upper * unit))

    return reads_back


def _leading_power(numerator: int, denominator: int) -> int:
    """Return ``floor(log10(numerator / denominator))``, the power of ten of the first digit."""
    power = (numerator.bit_length() - denominator.bit_length()) * 30_103 // 100_000
    while numerator * ten_to(max(-power - 1, 0)) >= denominator * ten_to(max(power + 1, 0)):
        power += 1
    while numerator * ten_to(max(-power, 0)) < denominator * ten_to(max(power, 0)):
        power -= 1
    return power


def _nearest_multiple(numerator: int, denominator: int, power: int) -> int:
    """Return ``numerator / denominator / 10**power``, rounded to nearest, ties away from zero."""
    upper = numerator * ten_to(max(-power, 0))
    lower = denominator * ten_to(max(power, 0))
    return (2 * upper + lower) // (2 * lower)


def _plain(digits: int, power: int) -> str:
    if power >= 0:
        return f"{digits}{'0' * power}"
    text = str(digits).rjust(1 - power, "0")
    return f"{text[:power]}.{text[power:]}".rstrip("0").rstrip(".")


FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
MOST_PRECISION = 50
"""The most bits of a significand for which midpoints, with up to two bits more, are doubles."""
LEAST_EXPONENT = -1000
ENDS_KEPT = 8
"""The most arrays of patterns whose neighborhoods are cached: many texts are read for each."""


def surely_read_back(source: Format, codes: NDArray[Any], texts: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the texts that certainly round to the value of their pattern; others may do so too.

    ``float`` rounds a text to the nearest double and never past one: if its result lies between two
    doubles, so does the text. Sources are floats or integers.
    """
    if source.is_integral:
        rows = zip(whole_numbers(source, codes), texts.tolist(), strict=True)
        found = (INTEGER.fullmatch(text) is not None and int(text) == each for each, text in rows)
        return np.fromiter(found, bool, codes.size)
    low, high = _ends_of(source, codes.tobytes())
    numbers = (float(each) if FLOAT.fullmatch(each) else nan for each in texts.tolist())
    read = np.fromiter(numbers, np.float64, codes.size)
    return (low < read) & (read < high)


def whole_numbers(source: Format, codes: NDArray[Any]) -> list[int]:
    """Return the values of the patterns of an integer format."""
    sign = source.sign_bit
    return [code - ((code & sign) << 1) for code in codes.tolist()]


def finite_doubles(source: Format, codes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values of patterns as doubles, rounded to nearest; NaN where there is none.

    Only integers of more than 53 bits are rounded.
    """
    if source.is_integral:
        return np.array(whole_numbers(source, codes), np.float64)
    significands, exponents = _decoded(source, codes)
    values = np.ldexp(significands, exponents)
    return np.where(codes & codes.dtype.type(source.sign_bit), -values, values)


def _decoded(source: Format, codes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the significands and exponents of the magnitudes of floats; NaN without a value.

    A significand counts units of its pattern's last place, so that no float has more than 53 bits.
    """
    wide = codes.astype(np.uint64)
    parts = unpack(source, wide, select_arrays)
    fields = (wide & np.uint64(source.mask ^ source.sign_bit)) >> np.uint64(source.entry.mantissa)
    is_lowest = (fields == 0) & (source.entry.zero != "none")
    mantissas = wide & np.uint64((1 << source.entry.mantissa) - 1)
    hidden = np.where(is_lowest, 0, 1 << source.entry.mantissa)
    significands = (mantissas.astype(np.int64) | hidden).astype(np.float64)
    significands[parts.nan | parts.infinity] = nan
    units = np.maximum(fields.astype(np.int32), is_lowest)
    return significands, (units - source.entry.bias - source.entry.mantissa).astype(np.int32)


@lru_cache(ENDS_KEPT)
def _ends_of(source: Format, codes: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two doubles for each pattern, between which every number rounds to its value.

    They are NaN for zeros, infinities, NaNs, formats of too many bits, and very small values.
    """
    patterns = np.frombuffer(codes, source.storage)
    significands, exponents = _decoded(source, patterns)
    is_unknown = (significands == 0) | (exponents < LEAST_EXPONENT)
    significands[is_unknown | (source.precision > MOST_PRECISION)] = nan
    # The unit of the binade below is half as large.
    finer = np.where(significands == 1 << source.entry.mantissa, 2, 1).astype(np.int32)
    inner = np.ldexp(np.ldexp(significands, finer) - 1, exponents - finer)
    outer = np.ldexp(2 * significands + 1, exponents - 1)
    is_negative = (patterns & patterns.dtype.type(source.sign_bit)) != 0
    return np.where(is_negative, -outer, inner), np.where(is_negative, -inner, outer)
