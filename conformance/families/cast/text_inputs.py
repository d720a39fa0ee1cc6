"""The texts that are cast at the tier quick: literals, numbers beside ties, and other texts.

Those for floats are where parsers take another path: significands that a float or a word just holds
or just does not, powers of ten that are exact or are not, blocks of eight digits, and numbers that
only a digit beyond any buffer decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import cycle
from math import ceil, floor, log2, log10

import numpy as np

from oracles.reference.exact import Number, decode
from oracles.reference.exact_text import exact_decimal
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
EXTREMES = (
    "1e99999", "-1e99999", "1e-99999", "-1e-99999", "1e9223372036854775808",
    "1e-9223372036854775808", "1e" + "9" * 400, "0e99999999999", "-0e-99999999999999999999",
    "1" + "0" * 5000, "-0." + "0" * 5000 + "1", "1" * 5000 + "e-4998", "0" * 400 + "1",
    "-" + "0" * 5000 + "12.5", "+0000001e+0000002", "1e+00000000000000000000001",
    "0" * 4 + "9007199254740993", "0" * 20 + "2147483647", "-" + "0" * 20 + "128",
    "0" * 20 + "18446744073709551615", "-" + "0" * 20 + "9223372036854775807", "100e-2",
    "12500e-2", "-3000e2", "0." + "0" * 400 + "1e401", "12500" + "0" * 400 + "e-403",
    "0" * 40 + "." + "5" * 40, "010", "-0017", "+0644.5", "077e1", "00.75", "0e0777",
    "12345678487654321", "12345678587654321",
)  # fmt: skip
"""Texts that the grammar allows at any length: exponents beyond any width, thousands of digits,
zeros before a number (some readers take it for octal), digits that an exponent moves back, and two
numbers that begin and end alike."""
BLOCKS = (
    "12345678", "123456789", "1234567.8", "12345678.12345678", "100000000", "10000000000000001",
    "1234567800000000", "100000000000000001", "1.0000000012345678", "0.0000000012345678",
    "123456780000000087654321e-20", "0" * 23 + "1",
)  # fmt: skip
"""Numbers of eight digits, of one more, and with blocks of eight zeros: parsers read eight at once,
whatever they read them to."""
MARKED_NUMBERS = (
    "1\0", "\0" "1", "1\0" "2", "\ufeff1", "1\r\n", "1\r", "1\n", "1\t", "\t1", "1  ",
    "1\u0301", "\U0001d7d9",
)  # fmt: skip
"""A number with a NUL, a byte order mark, white space or a combining mark, and a digit above
U+FFFF."""
CHARACTERS = (
    "\0", "\0a", "a\0", "a\0\0", "a\0b", "\ufeff", "\ufeffabc", "abc\ufeff", "a\ufeffb",
    "\U0001f600", "a\U0001f600b", "\U0010ffff", "\uffff", "\ufffd", "\U0001f468\u200d\U0001f469",
    "\u00e9", "e\u0301", "\u0301", "\u212b", "\ufb01", "\u1e9e", "\u0130", "\u0131",
    "\u00e9\u00ff\u0080", "\u00c3\u00a9", "\u0416", "\u65e5\u672c", "\u05d0\u0661",
    "a\r\nb", "a\rb", "a\nb", "\r\n", "\r", "\n", "abc\n", "\n\n", "a\tb", "\t", "abc\t",
    "abc ", "abc  ", "  abc", " a  b ", "\u2028", "\u0085", "\u00a0abc\u3000",
    "\x01", "\x1a", "\x1b[0m", "\x7f", "\\", "\\n", "\"a\"", "'", "%s%n", "&amp;", "{0}",
    "".join(map(chr, range(0x20, 0x7f))), "".join(map(chr, range(0x7e, 0x1f, -1))),
    "a" * 16 + "b" + "a" * 16, "a" * 16 + "c" + "a" * 16,
    "x" * 255, "x" * 256, "x" * 4097, "\u65e5" * 22_000,
)  # fmt: skip
"""Texts that a copy must keep: NULs, byte order marks, characters of two to four bytes, letters
that normalizing changes, line ends, white space at the ends, escapes, all of ASCII, long ones."""
NEAR_TIES = 40
LONGEST = 340
"""The most characters of the texts that are drawn beside ties."""
MAGNITUDES = 12
"""Parts of a float's range, each with two ties that are written in full."""
TAILS = 1, 7, 40, 400
"""Digits that follow such a tie: zeros and a one, or nines after one unit less."""
LONG_TAILS = 1_100, 4_400
"""The same behind a short tie: more digits than buffers hold, and than ``int`` reads at once."""
WIDE_BITS = 32
"""Floats of this width and wider have fast paths of their own; narrower ones are read as these."""
WORDS = 53, 64
"""Bits of the words in which parsers hold a significand."""
DIGITS_READ = range(15, 20)
"""Digits of the significands that just fit into such a word, or just do not."""
VALUES_PER_DIGITS = 3
MOVED, EACH_MOVED = 3, 3
"""How many numbers of digits, up to those that a float always holds, and texts of each of them with
each power of ten."""
BEYOND = 3
"""Random significands between each boundary and the next power of ten."""
POINTS = range(18, 23)
"""Digits of numbers with a point at each end and in the middle: a word holds 19, and no more."""


def texts(target: Format, chance: np.random.Generator, max_examples: int) -> list[str]:
    """Return the texts to cast: literals, decimals beside a float's ties, random numbers, extremes.

    At most 200 and at most ``max_examples`` are random numbers. With them come special texts for
    the kind of target.
    """
    found = list(LITERALS)
    if target.kind == "float":
        for code in chance.integers(0, target.max_code, NEAR_TIES, np.uint64).tolist():
            found.extend(around_midpoint(target, code))
    for _ in range(min(max_examples, 200)):
        found.append(_random_number(chance))
    short = [text for text in found if len(text) <= LONGEST]
    # The others draw after these, so that the random numbers do not depend on them.
    return list(dict.fromkeys([*short, *EXTREMES, *_special_texts(target, chance)]))


def _special_texts(target: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield texts that a faulty copy changes, or that a parser of numbers reads by another path."""
    yield from MARKED_NUMBERS
    if target.kind == "text":
        yield from CHARACTERS
        return
    yield from BLOCKS
    yield from _with_points(chance)
    if target.kind == "float":
        yield from _long_ties(target, chance)
        if target.bits >= WIDE_BITS:
            yield from _of_few_digits(target, chance)
            yield from _at_fast_paths(target, chance)
            yield from _moved_into_digits(target, chance)
            yield from decimals_by_ties(target)


def around_midpoint(target: Format, code: int) -> list[str]:
    """Return the midpoint after the value of ``code``, its negative, and two texts beside it.

    Of the two, one lies just above the midpoint, the other just below it, or above it if its last
    digit is zero.
    """
    middle = exact_decimal(*_midpoint(target, code))
    if "." not in middle:
        middle += ".0"
    return [middle, f"{middle}1", f"-{middle}", f"{middle[:-1]}{max(int(middle[-1]) - 1, 0)}9"]


def _midpoint(target: Format, code: int) -> tuple[int, int]:
    """Return ``significand`` and ``exponent`` of the midpoint between a value and the next one.

    The midpoint is ``significand * 2**exponent``. After the largest value it is half a unit above.
    """
    low, high = decode(target, code), decode(target, code + 1)
    assert isinstance(low, Number)
    if not isinstance(high, Number):
        return 2 * low.significand + 1, low.exponent - 1
    unit = min(low.exponent, high.exponent)
    total = (low.significand << (low.exponent - unit)) + (
        high.significand << (high.exponent - unit)
    )
    return total, unit - 1


def _random_number(chance: np.random.Generator) -> str:
    digits = "".join(map(str, chance.integers(0, 10, int(chance.integers(1, 22))).tolist()))
    point = int(chance.integers(1, len(digits) + 1))
    sign = ("", "-", "+")[int(chance.integers(3))]
    fraction = f".{digits[point:]}" if point < len(digits) else ""
    power = int(chance.integers(-45, 39))
    scientific = f"e{power}" if chance.integers(2) else ""
    return f"{sign}{digits[:point]}{fraction}{scientific}"


def _long_ties(target: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield ties of every magnitude in all their digits, and texts that differ far behind these.

    An even value's tie is rounded down, and a text just above it up; an odd value's the other way.
    """
    mantissa = target.entry.mantissa
    fields = target.max_code >> mantissa
    starts = np.linspace(0, fields, min(MAGNITUDES, fields + 1)).astype(np.uint64) << mantissa
    inside = chance.integers(0, 1 << mantissa, starts.size, np.uint64)
    least_normal = 1 << mantissa
    codes = [0, least_normal - 2, least_normal - 1, target.max_code - 1, target.max_code]
    codes += [code ^ odd for code in (starts | inside).tolist() for odd in (0, 1)]
    known = sorted({code for code in codes if 0 <= code <= target.max_code})
    for place, code in enumerate(known):
        is_even = code & 1 == 0
        digits, power = _decimal(*_midpoint(target, code))
        yield _spelled(digits, power, place)
        yield _beside(digits, power, TAILS[place % len(TAILS)], place + 1, above=is_even)
    one = target.one_code & ~1
    for place, tail in enumerate(LONG_TAILS):
        yield _beside(*_decimal(*_midpoint(target, one)), tail, place, above=True)
        yield _beside(*_decimal(*_midpoint(target, one + 1)), tail, place, above=False)


def _decimal(significand: int, exponent: int) -> tuple[str, int]:
    """Return ``significand * 2**exponent`` as all of its digits and a power of ten."""
    if exponent >= 0:
        return str(significand << exponent), 0
    return str(significand * 5**-exponent), exponent


def _beside(digits: str, power: int, tail: int, way: int, *, above: bool) -> str:
    """Return a number just above or below the given one.

    It differs ``tail`` digits after the last one. ``way`` chooses the spelling, as in ``_spelled``.
    """
    behind = "0" * (tail - 1) + "1" if above else "9" * tail
    digits = digits if above else str(int(digits) - 1)
    return _spelled(digits + behind, power - tail, way)


def _spelled(digits: str, power: int, way: int) -> str:
    """Spell ``digits * 10**power`` in one of three ways: whole, one digit first, or in full."""
    match way % 3:
        case 0:
            return f"{digits}e{power}"
        case 1:
            return f"{digits[0]}.{digits[1:] or '0'}e{power + len(digits) - 1}"
    if power >= 0:
        return f"{digits}{'0' * power}"
    padded = digits.rjust(1 - power, "0")
    return f"{padded[:power]}.{padded[power:]}"


def _of_few_digits(target: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield values of a float, each rounded to a number of digits at which parsers change paths.

    These numbers of digits are those of the float's shortest decimals and those that just fit a
    word. Of each number, one value is of any magnitude; the others are near one.
    """
    own = range(floor((target.precision - 1) * log10(2)), ceil(target.precision * log10(2)) + 2)
    near = target.one_code, _exact_power(target) * 2 << target.entry.mantissa
    for count in sorted({*own, *DIGITS_READ}):
        for place in range(VALUES_PER_DIGITS):
            code = int(chance.integers(1, target.max_code))
            if place:
                code = near[0] + code % near[1] - near[1] // 2
            digits, power = _decimal(*decode(target, code)[1:])
            rounded = f"{Decimal(digits):.{count - 1}e}"
            found, _, exponent = rounded.replace(".", "").partition("e")
            yield _spelled(found, power + int(exponent) - count + 1, place)


def _at_fast_paths(target: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield texts whose significand just fits a float or a word, or just does not.

    Their powers of ten are exact in the float, or just beyond those.
    """
    limit = _exact_power(target)
    up = cycle((limit, limit + 1, 1, limit // 2))
    down = cycle((-limit - 1, -1, -limit, -(limit // 2), 0))
    ends = {1 << bits for bits in (target.precision, *WORDS)} | {10**k for k in DIGITS_READ}
    for place, end in enumerate(sorted(ends)):
        room = 10 ** len(str(end)) - end
        beyond = [end + int(part * room) | 1 for part in chance.random(BEYOND).tolist()]
        for way, number in enumerate((end - 1, end, end + 1, *beyond), place):
            yield _spelled(str(number), next(up), way % 2)
            yield _spelled(str(number), next(down), way)


def _moved_into_digits(target: Format, chance: np.random.Generator) -> Iterator[str]:
    """Yield numbers of few digits times powers of ten that the float does not hold exactly.

    A parser may multiply the digits by a part of the power first, and then by the rest, which is
    exact. That is right only where the first product is exact as well.
    """
    own, limit = floor((target.precision - 1) * log10(2)), _exact_power(target)
    for count in range(own - MOVED + 1, own + 1):
        for power in range(limit + 1, limit + own + 1):
            for _ in range(EACH_MOVED):
                yield f"{int(chance.integers(10 ** (count - 1), 10**count))}e{power}"


def _with_points(chance: np.random.Generator) -> Iterator[str]:
    """Yield numbers of about as many digits as a word holds, with a point near an end or inside."""
    for count in POINTS:
        digits = "".join(map(str, chance.integers(1, 10, count).tolist()))
        for place in (1, count // 2, count - 2, count - 1):
            yield f"{digits[:place]}.{digits[place:]}"


def _exact_power(target: Format) -> int:
    """Return the largest ``k`` for which a float holds 10^k exactly, such as 22 for float64."""
    return floor(target.precision / log2(5))


POWERS = 16
"""Number of powers of ten, evenly spaced over a float's whole range, that decimals have."""
LEAST_DIGITS = 10**18
"""The smallest number of 19 digits, which is as many as every word of 64 bits holds."""
NARROWINGS = 80
"""Halvings of the distance from the tie; 64 bits of digits bring it to about 2^-64 of a unit."""


def decimals_by_ties(target: Format) -> Iterator[str]:
    """Yield for each of ``POWERS`` powers of ten a decimal just below a tie, and one just above."""
    least, largest = decode(target, 1), decode(target, target.max_code)
    assert isinstance(least, Number)
    assert isinstance(largest, Number)
    top = largest.exponent + largest.significand.bit_length()
    digits = log10(LEAST_DIGITS)
    # Two digits fewer at either end, so that the whole binade of a decimal is inside the range.
    lowest, highest = (
        ceil(least.exponent * log10(2) - digits + 2),
        floor(top * log10(2) - digits - 2),
    )
    for power in np.linspace(lowest, highest, POWERS).astype(int).tolist():
        scale = Fraction(10) ** power
        binade = _exponent_of(LEAST_DIGITS * scale) + 1
        start = ceil(Fraction(2) ** binade / scale)
        unit = max(binade - target.precision + 1, least.exponent)
        for is_above in (False, True):
            yield f"{_nearest_half(scale / Fraction(2) ** unit, start, is_above)}e{power}"


def _exponent_of(value: Fraction) -> int:
    """Return the largest integer ``e`` with ``2**e <= value``."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def _nearest_half(step: Fraction, start: int, is_above: bool) -> int:
    """Return the number from ``start`` to twice it whose multiple of ``step`` is nearest to a tie.

    The fraction of the multiple lies above one half if it ``is_above``, else below: the window
    beside the half is narrowed until no number is in it.
    """
    # One is ``2 * step.denominator`` units, so that a half is a whole number of them.
    modulus, half = 2 * step.denominator, step.denominator
    factor = 2 * step.numerator
    found, width = start, half
    for _ in range(NARROWINGS):
        width //= 2
        window = half + 1 if is_above else half - width
        first = (window - factor * start) % modulus
        ahead = _first_within(factor % modulus, modulus, first, width - 1)
        if ahead is None or ahead >= start:
            break
        found = start + ahead
    return found


def _first_within(factor: int, modulus: int, first: int, width: int) -> int | None:
    """Return the smallest ``x`` with ``factor * x % modulus`` in ``first`` to ``first + width``.

    Returns None if there is none. If no multiple of the factor itself is in that range, one minus
    ``y`` times the modulus is. Modulo the factor, finding ``y`` is the same problem with smaller
    numbers, as in Euclid's algorithm.
    """
    last = first + width
    if first == 0 or last >= modulus:
        return 0
    if factor == 0:
        return None
    ahead = -(-first // factor)
    if ahead * factor <= last:
        return ahead
    turns = _first_within(modulus % factor, factor, -last % factor, width)
    return None if turns is None else -(-(first + modulus * turns) // factor)
