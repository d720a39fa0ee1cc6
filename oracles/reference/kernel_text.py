"""Text as the kernels have it: a scanner, a converter to words, and a writer of shortest digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from oracles.reference.expect_by_kernels import rounded
from oracles.reference.kernels import OFFSET, TOP, Converted, Unpacked, convert, unpack
from oracles.reference.machine_words import MASK, WIDTH, Word, select_words
from specs.formats import Format
from specs.model.vocabulary import Rounding
from specs.outcomes import Either, Exactly, Nan
from specs.ruling import Ruling

DIGITS = "0123456789"
HIGHEST_EXPONENT = 2_000
"""Beyond every format, and still small enough for a pattern to keep counting in 64 bits."""
LARGEST_POWER = 6_000
"""Beyond this many decimal places every format has long overflowed or run empty."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A number read from text: ``digits * 10**power``, and whether it was digits only."""

    negative: bool
    digits: int
    power: int
    plain_whole: bool


def scan(text: str) -> Scanned | None:
    """Read a number from a whole text, character by character."""
    rest = text
    negative = rest.startswith("-")
    rest = rest[1:] if rest[:1] in ("+", "-") else rest
    whole, rest = _run(rest)
    fraction = ""
    pointed = rest.startswith(".")
    if pointed:
        fraction, rest = _run(rest[1:])
        if not fraction:
            return None
    power = 0
    scientific = rest[:1] in ("e", "E")
    if scientific:
        tail = rest[1:]
        sign = -1 if tail.startswith("-") else 1
        run, rest = _run(tail[1:] if tail[:1] in ("+", "-") else tail)
        if not run:
            return None
        power = sign * min(_integer(run), LARGEST_POWER * 100)
    if not whole or rest:
        return None
    digits = _integer(whole + fraction)
    return Scanned(negative, digits, power - len(fraction), not pointed and not scientific)


def _run(text: str) -> tuple[str, str]:
    length = 0
    while length < len(text) and text[length] in DIGITS:
        length += 1
    return text[:length], text[length:]


def ten_to(power: int) -> int:
    """10**power for a power that is not negative."""
    return int(10**power)


def _integer(digits: str) -> int:
    """A decimal integer of any length, halved until the pieces are short."""
    if len(digits) <= 1000:
        return int(digits)
    middle = len(digits) // 2
    low = digits[middle:]
    return _integer(digits[:middle]) * ten_to(len(low)) + _integer(low)


def words_of(number: Scanned) -> Unpacked:
    """A number as the kernels' parts, everything beyond 64 bits jammed into the last one."""
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
    """The target's pattern that a number rounds to, and where the number lay."""
    parts = words_of(number)
    converted = convert(target, rounding, parts, select_words)
    return int(rounded(target, parts, rounding, select_words, converted)), converted


def answer_text(ruling: Ruling, text: str) -> int | str:
    """A conforming answer to a text; 0 where the document leaves it open."""
    if not ruling.target.is_numeric:
        return text
    # Letters beyond ASCII have upper cases within it: "ı".upper() is "I".
    letters = text.upper() if text.isascii() else ""
    kinds = {"infinity-literal"} if letters in ("INF", "+INF") else set()
    if letters == "-INF":
        kinds = {"minus-infinity-literal" + ("" if text == "-INF" else "-other-case")}
    if letters == "NAN":
        kinds = {"nan-literal"}
    number = scan(text)
    code = 0
    if number is not None:
        code, converted = read_number(ruling.target, number, ruling.rounding)
        kinds = set(_classes(ruling.target, number, converted))
    for branch in ruling.branches:
        if branch.input_class in kinds:
            match branch.outcome:
                case Exactly(code=constant) | Either(options=[Exactly(code=constant), Exactly()]):
                    return constant
                case Nan():
                    return ruling.target.nan_codes[0][-1]
            return code
    return 0


def _classes(target: Format, number: Scanned, converted: Converted) -> Iterator[str]:
    """The input classes that a number in text belongs to."""
    if number.digits == 0:
        is_in_range, is_value = True, not number.negative and target.has_zero
    else:
        is_in_range = not converted.overflow
        is_value = not (converted.overflow or converted.beyond or converted.inexact)
        if not (number.negative or converted.overflow or converted.beyond or converted.tiny):
            yield "positive-literal-in-range"
    if is_in_range:
        yield "number-literal-in-range"
        yield "representable" if is_value else "inexact-literal-in-range"
        if number.plain_whole:
            yield "whole-literal-in-range"


@lru_cache(maxsize=1 << 18)
def write(source: Format, code: int) -> str:
    """A pattern's value as text: plain notation with the fewest digits that read back."""
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
    place = _leading_place(numerator, denominator)
    for count in range(1, WIDTH):
        last = place - count + 1
        digits = _nearest_multiple(numerator, denominator, last)
        read, _ = read_number(source, Scanned(bool(minus), digits, last, False))
        if read == code:
            return minus + _plain(digits, last)
    raise AssertionError(f"{source.name} {code:#x} needs more than {WIDTH} digits")


def _leading_place(numerator: int, denominator: int) -> int:
    """The power of ten of a value's first digit."""
    place = (numerator.bit_length() - denominator.bit_length()) * 30_103 // 100_000
    while numerator * ten_to(max(-place - 1, 0)) >= denominator * ten_to(max(place + 1, 0)):
        place += 1
    while numerator * ten_to(max(-place, 0)) < denominator * ten_to(max(place, 0)):
        place -= 1
    return place


def _nearest_multiple(numerator: int, denominator: int, place: int) -> int:
    """The value in units of 10**place, to the nearest."""
    upper = numerator * ten_to(max(-place, 0))
    lower = denominator * ten_to(max(place, 0))
    return (2 * upper + lower) // (2 * lower)


def _plain(digits: int, place: int) -> str:
    if place >= 0:
        return f"{digits}{'0' * place}"
    text = str(digits).rjust(1 - place, "0")
    return f"{text[:place]}.{text[place:]}".rstrip("0").rstrip(".")
