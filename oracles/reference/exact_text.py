"""Casts from and to text by the definition: read a literal, and judge a text as an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from oracles.reference import exact, exact_rulings
from oracles.reference.exact import Infinity, NotANumber, Number
from oracles.reference.expectations import Allowed
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Atom, AtomKind, Sign
from specs.outcomes import Anything, Either, Exactly, Outcome, ParsesTo, PlainText, Same

NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
"""Matches a number as an input: digits on both sides of a point, if there is one."""
PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", re.ASCII)
"""Matches a number in plain notation as an answer: a point may stand at either end."""
BARE_POINT = re.compile(r"([+-]?)([0-9]*)\.([0-9]*)([eE].*)?", re.ASCII)
"""Matches a number with a point, whose digits may be missing on either side."""
LITERALS: dict[str, AtomKind] = {
    "inf": "text-infinity",
    "+inf": "text-infinity",
    "-inf": "text-minus-infinity-other-case",
    "nan": "text-nan",
}
FAR = 20_000
"""The exponent, of 2 or 10, that stands for all larger ones: it is beyond every format."""
QUOTIENT_BITS = 192
"""How many bits a quotient has at least; the remainder becomes one sticky bit below them."""
TEXTS_KEPT = 1 << 11
"""How many read texts are cached: all modes and most targets use the same texts."""
MOST_DIGITS = 4_000
"""How many digits are converted at once; ``int`` refuses more than 4,300."""


@dataclass(frozen=True, slots=True)
class Literal:
    """The kind of a text as a literal, and, for a number, a value that rounds as its own does."""

    kind: AtomKind
    number: Number | None = None


@lru_cache(maxsize=TEXTS_KEPT)
def read_literal(text: str) -> Literal:
    """Classify a whole text; one that is no literal has the kind ``text-other``."""
    if text == "-INF":
        return Literal("text-minus-infinity")
    if text.isascii() and text.lower() in LITERALS:
        return Literal(LITERALS[text.lower()])
    match = NUMBER.fullmatch(text)
    if match is None:
        return Literal("text-other")
    sign, whole, fraction, power = match.groups()
    number = _number(sign == "-", whole, fraction or "", power or "0")
    return Literal("text-whole" if fraction is None and power is None else "text-decimal", number)


def _number(negative: bool, whole: str, fraction: str, power: str) -> Number:
    digits = (whole + fraction).lstrip("0")
    sign = int(negative)
    if not digits:
        return Number(sign, 0, 0)
    exponent_digits = power.lstrip("+-").lstrip("0") or "0"
    exponent = int(exponent_digits) if len(exponent_digits) < MOST_DIGITS else FAR * MOST_DIGITS
    exponent = -exponent if power.startswith("-") else exponent
    magnitude = len(digits) - len(fraction) + exponent
    if abs(magnitude) > FAR:
        return Number(sign, 1, FAR if magnitude > 0 else -FAR)
    value = _integer(digits)
    power_of_ten = exponent - len(fraction)
    if power_of_ten >= 0:
        return Number(sign, value * 10**power_of_ten, 0)
    divisor = 10**-power_of_ten
    shift = max(0, QUOTIENT_BITS + divisor.bit_length() - value.bit_length())
    quotient, remainder = divmod(value << shift, divisor)
    return Number(sign, quotient << 1 | (remainder != 0), -shift - 1)


def _integer(digits: str) -> int:
    value = 0
    for start in range(0, len(digits), MOST_DIGITS):
        chunk = digits[start : start + MOST_DIGITS]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def allow_text(ruling: Ruling, text: str) -> Allowed:
    """Return what a ruling with a text source allows for one text."""
    literal = read_literal(text)
    atom = Atom(literal.kind)
    if (number := literal.number) is not None:
        sign: Sign = "-" if number.sign else "+"
        atom = exact.number_atom(literal.kind, sign, ruling.target, ruling.rounding, number)
    branch_index = ruling.branch_of[atom]
    branch = ruling.branches[branch_index]
    match branch.outcome:
        case Exactly(code=code):
            return Allowed(branch_index, branch, (code,))
        case Either(options=[Exactly(code=one), Exactly(code=other)]):
            return Allowed(branch_index, branch, (one, other))
    if number is None or isinstance(branch.outcome, Same | Anything):
        return Allowed(branch_index, branch)
    return exact_rulings.resolve(ruling, branch_index, number, 0)


def accepts(source: Format, outcome: Outcome, input_value: int | str, answer: str) -> bool:
    """Return whether an outcome allows the text ``answer`` for an input, a pattern or a text."""
    match outcome:
        case Same():
            return answer == input_value
        case PlainText(reads_back=must_read_back):
            if PLAIN.fullmatch(answer) is None or not isinstance(input_value, int):
                return False
            return reads_back(source, input_value, answer) or (
                not must_read_back and is_near(source, input_value, answer)
            )
        case ParsesTo():
            return isinstance(input_value, int) and reads_back(source, input_value, answer)
        case Anything():
            return True
    return False


def is_near(source: Format, code: int, answer: str) -> bool:
    """Return whether a plain text is a pattern's value, rounded up or down at its last digit."""
    datum = exact.decode(source, code)
    match = PLAIN.fullmatch(answer)
    if match is None or not isinstance(datum, Number):
        return False
    whole, _, fraction = match[1].partition(".")
    digits = _integer(whole + fraction)
    # |text - value| < one unit of the last digit, both sides scaled to integers.
    text_value = -digits if answer.startswith("-") else digits
    scale: int = 10 ** len(fraction)
    value = (-datum.significand if datum.sign else datum.significand) * scale
    down = max(-datum.exponent, 0)
    return abs((text_value << down) - (value << max(datum.exponent, 0))) < 1 << down


def reads_back(source: Format, code: int, answer: str) -> bool:
    """Return whether a text, rounded to the nearest value of the source, is a pattern's value.

    For an integer source the text's value must be whole. The sign of a zero or NaN is ignored, and
    so are upper and lower case in NaN and infinities.
    """
    datum = exact.decode(source, code)
    match datum:
        case NotANumber():
            return answer.lower() in ("nan", "+nan", "-nan")
        case Infinity(sign=sign):
            return answer.lower() in (("-inf",) if sign else ("inf", "+inf"))
        case Number():
            number = read_literal(_with_zeros_around_point(answer)).number
            if number is None:
                return False
            if number.significand == 0 or datum.significand == 0:
                return number.significand == datum.significand
            if source.is_integral and not exact.is_whole(number):
                return False
            unit = exact.unit_of(source, number)
            multiple = exact.round_magnitude(number, unit, "nearest-even")
            if exact.zone_of(source, number, multiple, unit) == "overflow":
                return False
            return exact.encode(source, number.sign, multiple, unit) == code


def _with_zeros_around_point(answer: str) -> str:
    """Complete ``5.`` to ``5.0`` and ``.5`` to ``0.5``; return any other text unchanged.

    Such numbers are valid as answers, though not as inputs.
    """
    match = BARE_POINT.fullmatch(answer)
    if match is None or not (match[2] or match[3]):
        return answer
    return f"{match[1]}{match[2] or '0'}.{match[3] or '0'}{match[4] or ''}"


def exact_decimal(significand: int, exponent: int) -> str:
    """Write ``significand * 2**exponent``, at least 0, in plain notation; no fraction ends in 0."""
    if exponent >= 0:
        return str(significand << exponent)
    digits = str(significand * 5**-exponent).rjust(1 - exponent, "0")
    return f"{digits[:exponent]}.{digits[exponent:]}".rstrip("0").rstrip(".")
