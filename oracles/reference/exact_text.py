"""Text by the definition: which literal it is, its value, whether it reads back as an input."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oracles.reference import exact
from oracles.reference.exact import Infinity, NotANumber, Number
from oracles.reference.expectations import Allowed
from specs.formats import Format
from specs.model.vocabulary import Atom, AtomKind, Sign
from specs.outcomes import Anything, Either, Exactly, Outcome, ParsesTo, PlainText, Same
from specs.ruling import Ruling

NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", re.ASCII)
BARE_POINT = re.compile(r"([+-]?)([0-9]*)\.([0-9]*)([eE].*)?", re.ASCII)
LITERALS: dict[str, AtomKind] = {
    "inf": "text-infinity",
    "+inf": "text-infinity",
    "-inf": "text-minus-infinity-other-case",
    "nan": "text-nan",
}
FAR = 20_000
"""A power of two (or ten) beyond every format, standing in for exponents too large to write out."""
BITS = 192
"""Bits of a quotient that are kept before the rest becomes one sticky bit."""
CHUNK = 4_000


@dataclass(frozen=True, slots=True)
class Literal:
    """What a text is, and its value if it is a number."""

    kind: AtomKind
    number: Number | None = None


def read_literal(text: str) -> Literal:
    """The literal that a whole text is."""
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
    places = power.lstrip("+-").lstrip("0") or "0"
    exponent = int(places) if len(places) < CHUNK else FAR * CHUNK
    exponent = -exponent if power.startswith("-") else exponent
    magnitude = len(digits) - len(fraction) + exponent
    if abs(magnitude) > FAR:
        return Number(sign, 1, FAR if magnitude > 0 else -FAR)
    value = _integer(digits)
    ten = exponent - len(fraction)
    if ten >= 0:
        return Number(sign, value * 10**ten, 0)
    divisor = 10**-ten
    shift = max(0, BITS + divisor.bit_length() - value.bit_length())
    quotient, rest = divmod(value << shift, divisor)
    return Number(sign, quotient << 1 | (rest != 0), -shift - 1)


def _integer(digits: str) -> int:
    """The number that decimal digits write; Python itself refuses very long ones at once."""
    value = 0
    for start in range(0, len(digits), CHUNK):
        chunk = digits[start : start + CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def atom_of_text(target: Format, ruling: Ruling, literal: Literal) -> Atom:
    """The atom that a text falls into."""
    number = literal.number
    if number is None:
        return Atom(literal.kind)
    sign: Sign = "-" if number.sign else "+"
    return exact.number_atom(literal.kind, sign, target, ruling.rounding, number)


def allow_text(ruling: Ruling, text: str) -> Allowed:
    """What a case allows for one text, by the definition."""
    literal = read_literal(text)
    place = ruling.branch_of[atom_of_text(ruling.target, ruling, literal)]
    branch = ruling.branches[place]
    match branch.outcome:
        case Exactly(code=code):
            return Allowed(place, branch, (code,))
        case Either(options=[Exactly(code=one), Exactly(code=other)]):
            return Allowed(place, branch, (one, other))
    if literal.number is None or isinstance(branch.outcome, Same | Anything):
        return Allowed(place, branch)
    return exact.resolve(ruling, place, literal.number, 0)


def accepts(source: Format, outcome: Outcome, given: int | str, answer: str) -> bool:
    """Whether a text is an allowed answer to an input."""
    match outcome:
        case Same():
            return answer == given
        case PlainText(reads_back=wanted):
            if PLAIN.fullmatch(answer) is None:
                return False
            return _reads_back(source, given, answer) or (
                not wanted and isinstance(given, int) and is_near(source, given, answer)
            )
        case ParsesTo():
            return _reads_back(source, given, answer)
        case Anything():
            return True
    return False


def _reads_back(source: Format, given: int | str, answer: str) -> bool:
    return isinstance(given, int) and reads_back(source, given, answer)


def is_near(source: Format, code: int, answer: str) -> bool:
    """Whether a plain text is a pattern's value, rounded either way at the text's last digit."""
    datum = exact.decode(source, code)
    match = PLAIN.fullmatch(answer)
    if match is None or not isinstance(datum, Number):
        return False
    whole, _, fraction = match[1].partition(".")
    digits = _integer(whole + fraction)
    written = -digits if answer.startswith("-") else digits
    # In units of the last digit, and of the value's last bit where that lies below one.
    tenths: int = 10 ** len(fraction)
    value = (-datum.significand if datum.sign else datum.significand) * tenths
    down = max(-datum.exponent, 0)
    return abs((written << down) - (value << max(datum.exponent, 0))) < 1 << down


def reads_back(source: Format, code: int, answer: str) -> bool:
    """Whether a text, rounded to the source's nearest value, is the value of a pattern again.

    A zero's sign is not asked for.
    """
    datum = exact.decode(source, code)
    match datum:
        case NotANumber():
            return answer.lower() in ("nan", "+nan", "-nan")
        case Infinity(sign=sign):
            return answer.lower() in (("-inf",) if sign else ("inf", "+inf"))
        case Number():
            number = read_literal(_with_both_sides(answer)).number
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


def _with_both_sides(answer: str) -> str:
    """``5.`` and ``.5`` as ``5.0`` and ``0.5``: fair as an answer, though no literal to be read."""
    match = BARE_POINT.fullmatch(answer)
    if match is None or not (match[2] or match[3]):
        return answer
    return f"{match[1]}{match[2] or '0'}.{match[3] or '0'}{match[4] or ''}"


def exact_decimal(significand: int, exponent: int) -> str:
    """``significand * 2**exponent`` in plain notation, all its digits and none too many."""
    if exponent >= 0:
        return str(significand << exponent)
    digits = str(significand * 5**-exponent).rjust(1 - exponent, "0")
    return f"{digits[:exponent]}.{digits[exponent:]}".rstrip("0").rstrip(".")
