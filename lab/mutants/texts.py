"""Faults of texts: how a number is read, how it is written, and how a text is copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from unicodedata import normalize

import numpy as np

from lab.mutants.fault import Fault, Row
from oracles.protocol import Bits
from specs.formats import Format

UNEXPLAINED = "unexplained"
NUMBER = re.compile(r"([+-]?)(\d*)(\.?)(\d*)(?:([eE])([+-]?\d+))?")
Change = Callable[[str], str]


def faults() -> Iterator[Fault]:
    """Yield the faults of texts."""
    for name, change in READ.items():
        yield Fault(name, "reading texts", partial(_read, change), TEXT_CAUSES, _from_texts)
    for name, change in WRITTEN.items():
        yield Fault(name, "writing texts", partial(_written, change), TEXT_CAUSES, _to_texts)
    for name, change in COPIED.items():
        yield Fault(name, "copying texts", partial(_written, change), (UNEXPLAINED,), _of_texts)


TEXT_CAUSES = (
    "*text*", "*sign*", "*plus*", "*digit*", "*exponent*", "printf-*", "rounds-twice-*",
    "unchanged", "zero", "minus-zero", "one", "nan", "infinity", "maximum", "minimum", "raises-*",
    UNEXPLAINED,
)  # fmt: skip


def _from_texts(source: Format, target: Format) -> bool:
    return source.kind == "text" and target.is_numeric


def _to_texts(source: Format, target: Format) -> bool:
    return source.is_numeric and target.kind == "text"


def _of_texts(source: Format, target: Format) -> bool:
    return source.kind == target.kind == "text"


def _read(change: Change, row: Row) -> Bits:
    """Return the answers to texts, of which numbers are changed before they are read."""
    return row.answered(np.array([_of_number(change, each) for each in row.bits.tolist()], object))


def _of_number(change: Change, text: str) -> str:
    return change(text) if NUMBER.fullmatch(text) else text


def _written(change: Change, row: Row) -> Bits:
    return np.array([change(each) for each in row.right.tolist()], object)


def _parts(text: str) -> tuple[str, str, str, str, str, str]:
    found = NUMBER.fullmatch(text)
    assert found is not None
    sign, whole, point, fraction, letter, exponent = (each or "" for each in found.groups())
    return sign, whole, point, fraction, letter, exponent


def _digits_kept(most: int) -> Change:
    """Return a change that keeps the first ``most`` digits of a number.

    Later ones become zeros, or are dropped after the point.
    """

    def change(text: str) -> str:
        sign, whole, point, fraction, letter, exponent = _parts(text)
        kept = whole[:most] + "0" * max(len(whole) - most, 0)
        return sign + kept + point + fraction[: max(most - len(whole), 0)] + letter + exponent

    return change


def _significant_digits_kept(most: int) -> Change:
    """Return a change that keeps ``most`` significant digits, and replaces later ones by zeros."""

    def change(text: str) -> str:
        sign, whole, _, fraction, _, exponent = _parts(text)
        digits = (whole + fraction).lstrip("0")
        if len(digits) <= most:
            return text
        return f"{sign}{digits[:most]}e{int(exponent or 0) - len(fraction) + len(digits) - most}"

    return change


def _in_doubles(text: str) -> str:
    """Multiply 16 digits by a power of ten in float64, which holds all numbers of 15 digits."""
    sign, whole, _, fraction, _, exponent = _parts(text)
    digits, power = (whole + fraction).lstrip("0"), int(exponent or 0) - len(fraction)
    if len(digits) != 16 or abs(power) > 22:
        return text
    number = float(digits)
    return sign + repr(number * 10.0**power if power >= 0 else number / 10.0**-power)


def _rounded_to(bits: int, text: str) -> str:
    """Round a number to the nearest with ``bits`` significant bits: an x87 register has 64."""
    sign, whole, _, fraction, _, exponent = _parts(text)
    if len(text) > 1_000 or abs(int(exponent or 0)) > 400 or not (whole + fraction).strip("0"):
        return text
    value = abs(Fraction(text))
    length = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (length - (value < Fraction(2) ** length) - bits + 1)
    number = Fraction(round(value / unit)) * unit
    # The denominator is a power of two.
    places = number.denominator.bit_length() - 1
    return f"{sign}{number.numerator * 5**places}e-{places}"


def _nineteen_digits_to_96_bits(text: str) -> str:
    """Read up to 19 digits with 96 bits, which are too few to decide near ties."""
    _, whole, _, fraction, _, _ = _parts(text)
    return _rounded_to(96, text) if len((whole + fraction).lstrip("0")) <= 19 else text


READ: dict[str, Change] = {
    "reads-no-sign": lambda text: text.lstrip("+-"),
    "reads-no-minus-of-an-exponent": lambda text: re.sub(r"([eE])-", r"\1", text),
    "reads-no-exponent": lambda text: re.split("[eE]", text)[0] or "0",
    "reads-no-fraction": lambda text: re.sub(r"\.\d*", "", text),
    "reads-no-exponent-beyond-99": lambda text: re.sub(r"([eE][+-]?\d\d)\d+", r"\1", text),
    "reads-no-large-letter": lambda text: text.split("E")[0] or "0",
    "reads-seven-digits": _digits_kept(7),
    "reads-seventeen-digits": _digits_kept(17),
    "reads-nineteen-digits": _digits_kept(19),
    "reads-768-significant-digits": _significant_digits_kept(768),
    "reads-sixteen-digits-in-doubles": _in_doubles,
    "reads-through-64-bits": partial(_rounded_to, 64),
    "reads-nineteen-digits-through-96-bits": _nineteen_digits_to_96_bits,
    "reads-an-exponent-as-at-most-999": lambda text: re.sub(
        r"([eE][+-]?)0*[1-9]\d{3,}", r"\g<1>999", text
    ),
    "reads-four-digits-of-an-exponent": lambda text: re.sub(r"([eE][+-]?\d{4})\d+", r"\1", text),
    "reads-255-characters": lambda text: text[:255] if text[254:255].isdigit() else text,
    "reads-leading-zeros-as-octal": lambda text: (
        str(int(text, 8)) if re.fullmatch(r"0[0-7]+", text) else text
    ),
    "reads-negative-zero-as-zero": lambda text: text.lstrip("-") if not text.strip("-0.") else text,
    "reads-one-more": lambda text: text + "1" if re.fullmatch(r"[+-]?\d+\.\d+", text) else text,
    "reads-plus-as-zero": lambda text: "0" if text.startswith("+") else text,
    "reads-a-leading-point-as-zero": lambda text: (
        "0" if text.lstrip("+-").startswith(".") else text
    ),
}


def _digits_written(most: int) -> Change:
    def change(text: str) -> str:
        digits = re.sub(r"[eE].*|[^0-9]", "", text).strip("0")
        return text if len(digits) <= most else f"{float(text):.{most}g}"

    return change


WRITTEN: dict[str, Change] = {
    "writes-no-sign": lambda text: text.lstrip("-"),
    "writes-a-plus": lambda text: (
        text if text.startswith("-") or text[:1].isalpha() else f"+{text}"
    ),
    "writes-six-digits": _digits_written(6),
    "writes-eight-digits": _digits_written(8),
    "writes-fifteen-digits": _digits_written(15),
    "writes-no-fraction": lambda text: text.split(".")[0] if "e" not in text.lower() else text,
    "writes-a-comma": lambda text: text.replace(".", ","),
    "writes-no-exponent-sign": lambda text: text.replace("e-", "e").replace("E-", "E"),
    "writes-infinity-in-small-letters": lambda text: (
        text.lower() if "INF" in text.upper() else text
    ),
    "writes-nan-as-zero": lambda text: "0" if "nan" in text.lower() else text,
    "writes-a-space": lambda text: f" {text}",
    "writes-negative-zero-as-zero": lambda text: (
        text.lstrip("-") if not text.strip("-0.") else text
    ),
    "loses-a-zero-inside": lambda text: re.sub(r"(\d)0(\d)", r"\1\2", text, count=1),
    "loses-a-block-of-eight-zeros": lambda text: re.sub(
        r"(-?[1-9]\d*)0{8}(\d{8})", r"\1\2", text, count=1
    ),
    "loses-the-one-of-a-power-of-ten": lambda text: (
        text[1:] if re.fullmatch(r"10{3,}", text) else text
    ),
    "writes-hexadecimal": lambda text: hex(int(text)) if re.fullmatch(r"\d+", text) else text,
}

COPIED: dict[str, Change] = {
    "loses-nuls-at-the-end": lambda text: text.rstrip("\0"),
    "ends-at-a-nul": lambda text: text.partition("\0")[0],
    "loses-a-byte-order-mark": lambda text: text.removeprefix("\ufeff"),
    "replaces-what-is-beyond-16-bits": lambda text: "".join(
        each if ord(each) < 1 << 16 else "\ufffd" for each in text
    ),
    "replaces-what-is-not-ascii": lambda text: text.encode("ascii", "replace").decode(),
    "composes-characters": lambda text: normalize("NFC", text),
    "turns-crlf-into-lf": lambda text: text.replace("\r\n", "\n"),
    "turns-cr-into-lf": lambda text: text.replace("\r", "\n"),
    "loses-space-at-the-end": lambda text: text.rstrip(" "),
    "loses-tabs": lambda text: text.replace("\t", " "),
    "copies-65535-bytes": lambda text: text.encode()[:65_535].decode(errors="ignore"),
}
