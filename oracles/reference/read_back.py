"""Decides whether a text is the value of a pattern if comparing one double is enough for that."""

from __future__ import annotations

import re
from functools import lru_cache
from math import ldexp

from oracles.reference import exact
from oracles.reference.exact import Number
from specs.formats import Format

FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
MOST_PRECISION = 50
"""The most bits of a significand whose midpoints, four times as fine, still are doubles."""
LEAST_EXPONENT = -1000
REMEMBERED = 1 << 17


def surely_reads_back(source: Format, code: int, text: str) -> bool:
    """Whether a text certainly rounds to the value of a pattern; False if that is not certain.

    ``float`` rounds a text to the nearest double and never past one: if its result lies between
    two doubles, so does the text.
    """
    if source.is_integral:
        datum = exact.decode(source, code)
        assert isinstance(datum, Number)
        value = -datum.significand if datum.sign else datum.significand
        return INTEGER.fullmatch(text) is not None and int(text) == value
    ends = _ends_of(source, code)
    if ends is None or FLOAT.fullmatch(text) is None:
        return False
    return ends[0] < float(text) < ends[1]


@lru_cache(REMEMBERED)
def _ends_of(source: Format, code: int) -> tuple[float, float] | None:
    """Two doubles between which every number rounds to the pattern's value; None if not known."""
    datum = exact.decode(source, code)
    if (
        not isinstance(datum, Number)
        or datum.significand == 0
        or source.precision > MOST_PRECISION
        or datum.exponent < LEAST_EXPONENT
    ):
        return None
    # The unit of the binade below is half as large.
    begins_binade = datum.significand == 1 << source.entry.mantissa
    finer = 2 if begins_binade else 1
    inner = ldexp((datum.significand << finer) - 1, datum.exponent - finer)
    outer = ldexp(2 * datum.significand + 1, datum.exponent - 1)
    return (-outer, -inner) if datum.sign else (inner, outer)
