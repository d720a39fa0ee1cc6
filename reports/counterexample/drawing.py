"""Bit patterns drawn by their fields, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.reference.exact import NotANumber, Number, decode
from oracles.reference.exact_text import exact_decimal
from oracles.reference.kernel_text import write
from reports.diff.judgement import Datum
from specs.formats import Format

LONGEST = 24
"""Characters of a value that are still read at a glance."""


def pattern(form: Format, datum: Datum) -> str:
    """A pattern in hex, or a text in quotes."""
    return repr(datum) if isinstance(datum, str) else form.hexadecimal(datum)


def fields(form: Format, datum: Datum) -> str:
    """``sign | exponent | mantissa`` of a float, the bits of anything else."""
    if isinstance(datum, str):
        return f"{len(datum)} characters"
    bits = f"{datum:0{form.bits}b}"
    widths: tuple[int, ...]
    if form.kind == "float":
        widths = (form.entry.sign, form.entry.exponent, form.entry.mantissa)
    else:
        widths = (1, form.bits - 1) if form.is_signed else (form.bits,)
    parts, start = [], 0
    for width in widths:
        if width:
            parts.append(bits[start : start + width])
        start += width
    return " | ".join(parts)


def value(form: Format, datum: Datum) -> str:
    """The exact value in decimal where it is short, else its first digits; a NaN's payload."""
    if isinstance(datum, str) or not form.is_numeric:
        return ""
    decoded = decode(form, datum)
    if isinstance(decoded, NotANumber):
        sign = {None: "", 0: "+", 1: "-"}[decoded.sign]
        payload = datum & ((1 << form.entry.mantissa) - 1)
        return f"{sign}NaN, payload {payload:#x}"
    text = write(form, datum)
    if isinstance(decoded, Number):
        minus = "-" if decoded.sign else ""
        whole = minus + exact_decimal(decoded.significand, decoded.exponent)
        text = whole if len(whole) <= LONGEST else f"about {_scientific(text)}"
    return text


def brief(form: Format, datum: Datum) -> str:
    """A pattern, and what it is worth where it is a number."""
    worth = value(form, datum)
    return pattern(form, datum) + (f" ({worth})" if worth else "")


def _scientific(text: str) -> str:
    """A long plain number with its first digits and a power of ten."""
    minus = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return f"{minus}{digits[0]}.{digits[1:9] or '0'}e{power}"


Columns = tuple[str, str, str]
"""Pattern, fields and value."""


def line(form: Format, datum: Datum) -> Columns:
    """The three columns in which a datum is shown."""
    return pattern(form, datum), fields(form, datum), value(form, datum)


def allowed_line(target: Format, word: str) -> Columns:
    """The columns of what is allowed: a pattern, or a word that stands alone."""
    if word.startswith("0x") and target.kind != "text":
        return line(target, int(word, 16))
    return word, "", ""


def columns(rows: list[tuple[str, Columns]]) -> Iterator[str]:
    """Named rows under one another, their columns aligned."""
    first = max(9, *(len(name) for name, _ in rows))
    widths = [max(len(cells[place]) for _, cells in rows) for place in range(3)]
    for name, cells in rows:
        aligned = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"  {name:<{first}} {aligned}".rstrip()
