"""Bit patterns as text: in hex, split into their fields, and with their exact value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from oracles.reference.exact import NotANumber, Number, decode
from oracles.reference.exact_text import exact_decimal
from oracles.reference.kernel_text import shortest_text
from reports.grading.allowed_answers import OUTCOME_NAMES
from reports.problems import ShownDatum
from specs.formats import Format, format_named

MAX_DECIMAL = 24
"""The most characters of a decimal that is still written in full."""
LEAST_DIGITS = 3
"""The fewest digits of a rounded decimal.

One digit may identify a subnormal number, and still be a third away from its value.
"""
PLAIN_POWERS = range(-4, 9)
"""Rounded numbers with these powers of ten are written in plain notation."""
LONGEST_TEXT, LAST_CHARACTERS = 60, 20
"""The most characters of a text that is shown in full, and those at the end of a longer one."""
DatumColumns = tuple[str, str, str]
"""How a datum is shown: pattern, fields and value."""


def datum_text(dtype: Format, datum: ShownDatum) -> str:
    """Write a pattern in hex, or a text as ``quoted`` does."""
    return quoted(datum) if isinstance(datum, str) else dtype.hexadecimal(datum)


def quoted(text: str) -> str:
    """Put a text in quotes; of a long one, the two ends and the number of its characters."""
    if len(text) <= LONGEST_TEXT:
        return repr(text)
    # The end stays, because there two long numbers differ.
    shown = f"{text[: LONGEST_TEXT - LAST_CHARACTERS - 1]}…{text[-LAST_CHARACTERS:]}"
    return f"{shown!r} ({len(text):,} characters)"


def bit_fields(dtype: Format, datum: ShownDatum) -> str:
    """Split the bits of a pattern: of a float, as ``sign | exponent | mantissa``.

    A signed integer is split after the sign; other patterns are not, and fields without bits are
    left out. A text gives its length, as ``3 characters``.
    """
    if isinstance(datum, str):
        return f"{len(datum)} characters"
    bits = f"{datum:0{dtype.bits}b}"
    widths: tuple[int, ...]
    if dtype.kind == "float":
        widths = (dtype.entry.sign, dtype.entry.exponent, dtype.entry.mantissa)
    else:
        widths = (1, dtype.bits - 1) if dtype.is_signed else (dtype.bits,)
    fields, start = [], 0
    for width in widths:
        if width:
            fields.append(bits[start : start + width])
        start += width
    return " | ".join(fields)


def value_text(dtype: Format, datum: ShownDatum) -> str:
    """Write a number as its exact decimal; if that is long, as `about` and a rounded one.

    The rounded one reads back. A NaN is written by its sign and payload. Texts and dtypes without
    numbers give an empty text.
    """
    if isinstance(datum, str) or not dtype.is_numeric:
        return ""
    decoded = decode(dtype, datum)
    if isinstance(decoded, NotANumber):
        sign = {None: "", 0: "+", 1: "-"}[decoded.sign]
        payload = datum & ((1 << dtype.entry.mantissa) - 1)
        return f"{sign}NaN, payload {payload:#x}"
    shortest = shortest_text(dtype, datum)
    if not isinstance(decoded, Number):
        return shortest
    exact = "-" * decoded.sign + exact_decimal(decoded.significand, decoded.exponent)
    return exact if len(exact) <= MAX_DECIMAL else f"about {_rounded(exact, shortest)}"


def complex_text(dtype: Format, datum: ShownDatum) -> str:
    """Write a complex number as its two parts, ``1 + 0j``.

    The result is empty for other dtypes, and if a part is a NaN.
    """
    if isinstance(datum, str) or dtype.kind != "complex":
        return ""
    part = format_named(dtype.entry.part)
    halves = (datum & part.mask, datum >> part.bits)
    if any(isinstance(decode(part, half), NotANumber) for half in halves):
        return ""
    real, imaginary = (value_text(part, half) for half in halves)
    sign = "-" if imaginary.startswith("-") else "+"
    return f"{real} {sign} {imaginary.removeprefix('-')}j"


def datum_with_value(dtype: Format, datum: ShownDatum) -> str:
    """Show a datum as ``datum_text`` does, then in brackets its ``value_text`` if it has any."""
    value = value_text(dtype, datum)
    return datum_text(dtype, datum) + (f" ({value})" if value else "")


def _rounded(exact: str, shortest: str) -> str:
    """Round a decimal to as many digits as its shortest form has, but ``LEAST_DIGITS`` at least."""
    digits = max(len(re.sub("[-.]", "", shortest).strip("0")), LEAST_DIGITS)
    number, power = f"{Decimal(exact):.{digits - 1}e}".split("e")
    if int(power) in PLAIN_POWERS:
        return f"{Decimal(f'{number}e{power}').normalize():f}"
    return f"{re.sub('(?<=[.].)0+$', '', number)}e{int(power)}"


def datum_columns(dtype: Format, datum: ShownDatum) -> DatumColumns:
    """Return the pattern, the fields and the value of a datum as texts."""
    return datum_text(dtype, datum), bit_fields(dtype, datum), value_text(dtype, datum)


def stored_columns(dtype: Format, text: str) -> DatumColumns:
    """Return the columns of a hex pattern, a text, or words like `an error`, as runs store them."""
    if dtype.kind == "text":
        return datum_columns(dtype, text)
    return datum_columns(dtype, int(text, 16)) if text.startswith("0x") else (text, "", "")


def allowed_columns(target: Format, allowed: str) -> DatumColumns:
    """Return the columns of an allowed answer: a hex pattern, text or name like ``any-nan``."""
    if target.kind == "text":
        return (allowed if allowed in OUTCOME_NAMES else quoted(allowed)), "", ""
    return stored_columns(target, allowed)


def aligned_rows(rows: list[tuple[str, DatumColumns]]) -> Iterator[str]:
    """Yield one or more rows, each a name and columns, as indented lines with aligned columns."""
    name_width = max(9, *(len(name) for name, _ in rows))
    # Words in place of a pattern, such as an error, may be long, and no column follows them.
    tabled = [cells for _, cells in rows if any(cells[1:])] or [cells for _, cells in rows]
    widths = [max(len(cells[column]) for cells in tabled) for column in range(3)]
    for name, cells in rows:
        aligned = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"  {name:<{name_width}} {aligned}".rstrip()
