"""Bit patterns drawn by their fields, and what they are worth."""

from __future__ import annotations

from oracles.reference.exact import NotANumber, decode
from oracles.reference.written import write
from reports.judgement import Datum
from specs.formats import Format


def pattern(form: Format, datum: Datum) -> str:
    """A pattern in hex, or a text in quotes."""
    return repr(datum) if isinstance(datum, str) else form.hexadecimal(datum)


def fields(form: Format, datum: Datum) -> str:
    """``sign | exponent | mantissa`` of a float, the bits of anything else."""
    if isinstance(datum, str):
        return f"{len(datum)} characters"
    bits = f"{datum:0{form.bits}b}"
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
    """The value in decimal, with a NaN's sign and payload."""
    if isinstance(datum, str) or not form.is_numeric:
        return ""
    decoded = decode(form, datum)
    if isinstance(decoded, NotANumber):
        sign = {None: "", 0: "+", 1: "-"}[decoded.sign]
        payload = datum & ((1 << form.entry.mantissa) - 1)
        return f"{sign}NaN, payload {payload:#x}"
    sign = "-" if form.kind == "float" and form.is_signed and datum == form.sign_bit else ""
    text = sign + write(form, datum)
    return text if len(text) <= 40 else f"about {_scientific(text)}"


def _scientific(text: str) -> str:
    """A long plain number with its first digits and a power of ten."""
    minus = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return f"{minus}{digits[0]}.{digits[1:9] or '0'}e{power}"


def line(form: Format, datum: Datum) -> tuple[str, str, str]:
    """Pattern, fields and value: the three columns in which a datum is shown."""
    return pattern(form, datum), fields(form, datum), value(form, datum)
