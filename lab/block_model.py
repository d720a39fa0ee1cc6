"""Block quantization once more, by shifts and divisions of the integers in a float's fields.

A number is ``m * 2**e`` with ``m`` of exactly 24 bits, or zero. The formats are defined here once
more, and the model uses nothing of the reference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Source(NamedTuple):
    exponent: int
    mantissa: int
    bias: int


class Coded(NamedTuple):
    """A target format of rounding: mantissa bits, lowest exponent, code of the largest value."""

    mantissa: int
    lowest: int
    last: int


SOURCES = {
    "float32": Source(8, 23, 127),
    "bfloat16": Source(8, 7, 127),
    "float16": Source(5, 10, 15),
}
ELEMENTS = {
    "float8e4m3fn": Coded(3, -6, 0x7E),
    "float8e5m2": Coded(2, -14, 0x7B),
    "float6e2m3": Coded(3, 0, 0x1F),
    "float6e3m2": Coded(2, -2, 0x1F),
    "float4e2m1": Coded(1, 0, 0x7),
    "int8": Coded(6, 0, 0x7F),
}
SIGN_BITS = {
    "float8e4m3fn": 0x80, "float8e5m2": 0x80, "float6e2m3": 0x20, "float6e3m2": 0x20,
    "float4e2m1": 0x8,
}  # fmt: skip
LARGEST = {  # 24 bits and the exponent of the first
    "float8e4m3fn": (0xE00000, 8),
    "float8e5m2": (0xE00000, 15),
    "float6e2m3": (0xF00000, 2),
    "float6e3m2": (0xE00000, 4),
    "float4e2m1": (0xC00000, 2),
    "int8": (0xFE0000, 0),
}
UE4M3 = Coded(3, -6, 0x7E)


def bit_length(numbers: Ints) -> Ints:
    left, found = numbers.copy(), np.zeros_like(numbers)
    for step in (32, 16, 8, 4, 2, 1):
        is_wide = left >= 1 << step
        found += np.where(is_wide, step, 0)
        left = np.where(is_wide, left >> step, left)
    return found + (left > 0)


def fields(source: str, words: NDArray[Any]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The 24 bits of each number, the exponent of the first of them, and the sign."""
    exponent_bits, mantissa_bits, bias = SOURCES[source]
    words = words.astype(np.int64)
    mantissa = words & ((1 << mantissa_bits) - 1)
    field = words >> mantissa_bits & ((1 << exponent_bits) - 1)
    m = np.where(field, mantissa | 1 << mantissa_bits, mantissa)
    missing = 24 - bit_length(m)
    exponent = np.maximum(field, 1) - bias - mantissa_bits + 23 - missing
    return m << missing, exponent, (words >> (exponent_bits + mantissa_bits)).astype(np.bool_)


def power_of(rule: str, element: str, m: Ints, e: Ints) -> Ints:
    """Return the exponents of blocks' scales by a rule; ``m * 2**e`` are the largest magnitudes."""
    at, emax = LARGEST[element]
    is_below = m < at
    match rule:
        case "floor":
            return e - emax
        case "ceil":
            return e - emax + (m & 0x7FFFFF > 0)
        case "round-up":
            return e - emax + (m > at)
        case "round-down":
            return e - emax - is_below
        case "even":
            return e - emax + (m + (1 << (22 - ELEMENTS[element].mantissa)) >> 24)
        case "nearest":
            return e - emax - is_below + (2 * np.where(is_below, 2 * m, m) >= 3 * at)
        case "nearest-log":
            return e - emax - is_below + (np.where(is_below, 2 * m, m) ** 2 >= 2 * at * at)
    assert rule == "round-up-7.25"
    return e - 2 + (m > 0xE80000)


def rounded(m: Ints, e: Ints, d: Any, de: Any, to: Coded, mode: str) -> Ints:
    """The code of ``m * 2**e / (d * 2**de)``, rounded by ``mode``; ``to.last + 1`` if too large."""
    d = np.broadcast_to(np.asarray(d, np.int64), m.shape)
    shift = bit_length(d) - 24
    scaled, divisor = m << np.maximum(shift, 0), d << np.maximum(-shift, 0)
    leading = e - de - shift - (scaled < divisor)
    unit = np.maximum(leading, to.lowest) - to.mantissa
    up = np.clip(e - de - unit, -34, 30)
    top, bottom = m << np.maximum(up, 0), d << np.maximum(-up, 0)
    quotient, rest = top // bottom, top % bottom
    match mode:
        case "up":
            goes_up = rest > 0
        case "down":
            goes_up = rest < 0
        case "half-down":
            goes_up = 2 * rest > bottom
        case "even":
            goes_up = (2 * rest > bottom) | ((2 * rest == bottom) & (quotient & 1 == 1))
        case _:
            goes_up = 2 * rest >= bottom
    code = quotient + goes_up + (np.maximum(leading, to.lowest) - to.lowest << to.mantissa)
    return np.minimum(np.where(m == 0, 0, code), to.last + 1)


def top_of(source: str, words: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the 24 bits and the exponent of the largest magnitude of each row."""
    m, e, _ = fields(source, words)
    at = np.argmax(np.where(m > 0, (e + 200 << 24) + m, 0), axis=-1)
    rows = np.arange(len(words))
    return m[rows, at], e[rows, at]


def scales(
    source: str, element: str, rule: str, words: NDArray[Any], whole: int | None = None
) -> Ints:
    """Return the code of each row's scale: a power of two, or with ``whole`` a number of NVFP4.

    ``whole`` is the word of the global scale, a float32. Rows without finite numbers besides zeros
    get arbitrary scales.
    """
    m, e = top_of(source, words)
    if whole is None:
        return np.clip(power_of(rule, element, m, e), -127, 127) + 127
    g, ge = one_number(whole)
    mode = {"round-up": "up", "nearest-even": "even", "round-down": "down"}.get(rule, "away")
    return np.clip(rounded(m, e - 23, 6 * g, ge, UE4M3, mode), 1, 0x7E)


def codes(
    source: str,
    element: str,
    words: NDArray[Any],
    scale: Ints,
    whole: int | None = None,
    mode: str = "even",
    beyond: int | None = None,
) -> Ints:
    """The codes of rows with these scales; values out of range get ``beyond``, or the last code."""
    m, e, is_negative = fields(source, words)
    to = ELEMENTS[element]
    if whole is None:
        divisor: tuple[Any, Any] = (1, scale[:, np.newaxis] - 127)
    else:
        g, ge = one_number(whole)
        field = scale >> 3
        factor = np.where(field, scale & 7 | 8, scale & 7) * g
        divisor = (factor[:, np.newaxis], (np.maximum(field, 1) - 10 + ge)[:, np.newaxis])
    found = rounded(m, e - 23, *divisor, to, mode)
    found = np.where(found > to.last, to.last if beyond is None else beyond, found)
    return signed(element, found, is_negative)


def signed(element: str, places: Ints, is_negative: NDArray[np.bool_]) -> Ints:
    if element == "int8":
        return np.where(is_negative, -places, places) & 0xFF
    return places | np.where(is_negative, SIGN_BITS[element], 0)


def one_number(word: int) -> tuple[int, int]:
    """The 24 bits of a float32, and the exponent of the last of them."""
    m, e, _ = fields("float32", np.array([word]))
    return int(m[0]), int(e[0]) - 23
