"""Texts to cast: every kind of literal the documents speak of, and numbers next to a tie."""

from __future__ import annotations

import numpy as np

from oracles.reference.exact import Number, decode
from oracles.reference.text import exact_decimal
from specs.formats import Format

LITERALS = (
    "0", "-0", "+0", "0.0", "-0.0", "00", "1", "-1", "+1", "7", "-8", "8", "15", "16", "36",
    "127", "128", "-128", "-129", "255", "256", "32767", "32768", "65535", "65536", "1000",
    "2147483647", "-2147483648", "2147483648", "4294967295", "4294967296",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "16777217", "9007199254740993",
    "3.14", "100.5", "2.718", "0.1", "0.5", "1.5", "2.5", "-0.5", "314.15926", "3.1415926459",
    "1e-5", "1E8", "1e5", "1E+5", "-1.5e-3", "1e38", "3.4028235e38", "65504", "65519", "448",
    "5.960464477539063e-8", "1e-45", "1e-46", "5e-324", "2e-324", "1.7976931348623157e308",
    "1e39", "-1e39", "1e309", "-1e309", "1e400", "1e-400", "0e999",
    "INF", "+INF", "-INF", "inf", "+inf", "-inf", "Inf", "+iNf", "-Inf", "NaN", "nan", "NAN",
    "nAn",
    "", " ", " 1", "1 ", ".5", "1.", "1e", "e5", "0x10", "1_000", "1,5", "--1", "+-1",
    "Hello World!",
    "Infinity", "-Infinity", "+NaN", "-NaN", "nan(1)", "true", "True", "false",
    "\u0663", "\uff11", "1\u00a0",
)  # fmt: skip
NEAR_TIES = 40
LONGEST = 340


def texts(target: Format, chance: np.random.Generator, max_examples: int) -> list[str]:
    """The literals, decimal texts at and beside midpoints of a float target, and random numbers."""
    found = list(LITERALS)
    if target.kind == "float":
        for code in chance.integers(0, target.max_code, NEAR_TIES, np.uint64).tolist():
            found.extend(_around_midpoint(target, code))
    for _ in range(min(max_examples, 200)):
        found.append(_random_number(chance))
    return list(dict.fromkeys(text for text in found if len(text) <= LONGEST))


def _around_midpoint(target: Format, code: int) -> list[str]:
    """The exact middle between a value and the next, and the same with a digit more or less."""
    low, high = decode(target, code), decode(target, code + 1)
    if not (isinstance(low, Number) and isinstance(high, Number)):
        return []
    unit = min(low.exponent, high.exponent)
    total = (low.significand << (low.exponent - unit)) + (
        high.significand << (high.exponent - unit)
    )
    middle = exact_decimal(total, unit - 1)
    if "." not in middle:
        middle += ".0"
    return [middle, f"{middle}1", f"-{middle}", f"{middle[:-1]}{max(int(middle[-1]) - 1, 0)}9"]


def _random_number(chance: np.random.Generator) -> str:
    digits = "".join(map(str, chance.integers(0, 10, int(chance.integers(1, 22)))))
    point = int(chance.integers(1, len(digits) + 1))
    sign = ("", "-", "+")[int(chance.integers(3))]
    fraction = f".{digits[point:]}" if point < len(digits) else ""
    power = int(chance.integers(-45, 39))
    scientific = f"e{power}" if chance.integers(2) else ""
    return f"{sign}{digits[:point]}{fraction}{scientific}"
