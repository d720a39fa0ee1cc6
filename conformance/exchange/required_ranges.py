"""Reads what a user requires: a pair of dtypes and a closed interval of values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from conformance.value_spelling import hexadecimal_float, signed_value
from reports.findings.value_ranges import cells_of, ranks_between
from specs.dtype_names import dtype_spelled
from specs.errors import CastigateError
from specs.formats import Format, format_named

WRITTEN = re.compile(r"\s*([^/\s]+)/([^/\s:]+)\s*:\s*\[\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\]\s*")
DECIMAL = re.compile(
    r"[+-]?([0-9]{1,400}(\.[0-9]{0,1200})?|\.[0-9]{1,1200})([eE][+-]?[0-9]{1,4})?", re.ASCII
)
INFINITY = re.compile(r"([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Required:
    """An interval on which all must agree, as the user wrote it, and its ranks."""

    source: str
    target: str
    interval: str
    ranks: range

    @property
    def text(self) -> str:
        """The pair and the interval."""
        return f"{self.source}/{self.target}: {self.interval}"


def pair_named(text: str) -> tuple[str, str]:
    """The dtypes of ``SOURCE/TARGET``, as frameworks spell them; both must be numbers."""
    source, slash, target = text.strip().partition("/")
    if not (source and slash and target) or "/" in target:
        raise CastigateError(f"pair `{text}` is not SOURCE/TARGET; write one such as float32/int8")
    names = dtype_spelled(source), dtype_spelled(target)
    for name in names:
        if not format_named(name).is_numeric:
            raise CastigateError(
                f"pair `{text}`: the values of {name} have no order; name dtypes of numbers"
            )
    return names


def required_range(text: str) -> Required:
    """Parse ``SOURCE/TARGET: [LOW, HIGH]``; raise CastigateError if it is malformed."""
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise CastigateError(
            f"--require `{text}` is not `SOURCE/TARGET: [LOW, HIGH]`;"
            " write one such as 'float32/int32: [-1e9, 1e9]'"
        )
    source, target = pair_named(f"{match[1]}/{match[2]}")
    low, high = (_end(text, word) for word in (match[3], match[4]))
    if low > high:
        raise CastigateError(f"--require `{text}`: {match[3]} is above {match[4]}; swap them")
    ranks = _ranks(format_named(source), low, high)
    if not ranks:
        raise CastigateError(
            f"--require `{text}`: no value of {source} lies in the interval; widen it"
        )
    return Required(source, target, f"[{match[3]}, {match[4]}]", ranks)


def _end(text: str, word: str) -> Fraction | float:
    if found := INFINITY.fullmatch(word):
        return float("-inf" if found[1] == "-" else "inf")
    if number := hexadecimal_float(word):
        return signed_value(number)
    if DECIMAL.fullmatch(word) is None:
        raise CastigateError(
            f"--require `{text}`: `{word}` is no number; write one such as -1e9, 0.5 or inf"
        )
    return Fraction(word)


def _ranks(source: Format, low: Fraction | float, high: Fraction | float) -> range:
    """The ranks of the values of an interval; an infinite end includes the infinity."""
    ends = [each if isinstance(each, Fraction) else None for each in (low, high)]
    if low == high and None in ends:
        name = "infinity" if high > 0 else "-infinity"
        cell = cells_of(source).get(name)
        return range(cell.first, cell.last + 1) if cell else range(0)
    found = ranks_between(source, *ends)
    cells = cells_of(source)
    first = cells["-infinity"].first if ends[0] is None and "-infinity" in cells else found.start
    stop = cells["infinity"].last + 1 if ends[1] is None and "infinity" in cells else found.stop
    return range(first, stop)
