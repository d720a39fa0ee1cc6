"""Codecs of e4m3fn in Python that compute with fractions, and some with a fault; and a program.

As a program, ``python wide.py FUNCTION`` reads patterns of float64 in hex, or texts, a line each.
"""

from __future__ import annotations

import math
import os
import re
import struct
import sys
import time
from collections.abc import Callable
from fractions import Fraction

LITERAL = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
FAR = 400


def encoded(sign: int, magnitude: Fraction, mode: str = "even") -> int:
    """Round a magnitude to a code."""
    field = 0
    while magnitude >= Fraction(16 << field, 512):
        field += 1
    units = magnitude / Fraction(1 << field, 512)
    multiple = {"even": round, "zero": math.floor, "odd": lambda x: math.floor(x) | (x % 1 != 0)}
    return sign | min(multiple[mode](units) + (field << 3), 0x7E)


def rounded(x: float, mode: str) -> int:
    """Encode a float or an integer by a rounding."""
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    if isinstance(x, float) and not math.isfinite(x):
        return sign | (0x7F if math.isnan(x) else 0x7E)
    return 0x7E | sign if abs(x) > 1000 else encoded(sign, abs(Fraction(x)), mode)


def of_number(x: float) -> int:
    """Encode a float or an integer."""
    return rounded(x, "even")


def of_number_to_odd(x: float) -> int:
    """Encode a float or an integer, rounded to odd."""
    return rounded(x, "odd")


def truncates(x: float) -> int:
    """Encode a float or an integer, rounded toward zero."""
    return rounded(x, "zero")


def single(x: float) -> float:
    """Round to float32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def through_single(x: float) -> int:
    """Encode a float64, rounded to float32 first."""
    return of_number(single(x))


def of_text(text: str) -> int:
    """Encode a number as text."""
    sign, whole, fraction, power = _parts(text)
    digits = (whole + fraction).lstrip("0")
    exponent = int(power)
    code = 0x80 if sign == "-" else 0
    if not digits:
        return code
    leading = len(digits) - len(fraction) + exponent
    if abs(leading) > FAR:
        return code | (0x7E if leading > 0 else 0)
    number = Fraction(0)
    for start in range(0, len(digits), 4000):
        part = digits[start : start + 4000]
        number = number * 10 ** len(part) + int(part)
    return encoded(code, number * Fraction(10) ** (exponent - len(fraction)))


def _parts(text: str) -> tuple[str, str, str, str]:
    match = LITERAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, whole, fraction, power = match.groups()
    return sign, whole, fraction or "", power or "0"


def of_names_too(text: str) -> int:
    """Encode a number as text, or an infinity or NaN by name."""
    word = text.lower().lstrip("+")
    return {"inf": 0x7E, "-inf": 0xFE, "nan": 0x7F}[word] if "n" in word else of_text(text)


def of_seven_digits(text: str) -> int:
    """Encode a number as text, of which only seven digits count."""
    sign, whole, fraction, power = _parts(text)
    digits = whole + fraction
    kept = len(digits) - len(digits.lstrip("0")) + 7
    digits = digits[:kept] + "0" * (len(digits) - kept)
    point = f".{digits[len(whole) :]}" if fraction else ""
    return of_text(f"{sign}{digits[: len(whole)]}{point}e{power}")


def of_text_through_double(text: str) -> int:
    """Encode a number as text, rounded to float64 first."""
    return of_number(float(text))


def to_number(code: int) -> float:
    """Decode a code."""
    field, units = code >> 3 & 15, code & 7
    if code & 0x7F == 0x7F:
        return math.copysign(math.nan, -1 if code & 0x80 else 1)
    value = math.ldexp(units + 8, field - 10) if field else math.ldexp(units, -9)
    return -value if code & 0x80 else value


def to_text(code: int) -> str:
    """Write a code's value."""
    return repr(to_number(code))


def to_two_digits(code: int) -> str:
    """Write a code's value with two digits."""
    return f"{to_number(code):.2g}"


def main() -> None:
    """Answer the lines of stdin by a function; misbehave at 3."""
    name, *faults = sys.argv[1:]
    function: Callable[..., int | str] = globals()[name]
    for line in sys.stdin:
        given = line.rstrip("\n")
        if name.startswith("to_"):
            print(function(int(given, 16)))
        elif "text" in name or "digits" in name:
            print(f"{function(given):02x}")
        else:
            number = struct.unpack(">d", bytes.fromhex(given))[0]
            if number == 3 and faults:
                misbehave(faults[0])
            else:
                print(hex(int(function(number))))


def misbehave(how: str) -> None:
    """Crash, exit, hang or answer wrongly."""
    match how:
        case "crash":
            os.abort()
        case "exit":
            sys.exit(7)
        case "quit":
            os._exit(0)
        case "hang":
            time.sleep(1000)
        case "junk":
            print("three")


if __name__ == "__main__":
    main()
