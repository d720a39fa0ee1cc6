"""Checks a user's requirement: all parties agree on a closed interval of values of a pair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from conformance.commands.options import pair_named
from conformance.extras.portable.survey import Agreement, FirstDisagreement, Parties
from conformance.extras.portable.value_ranges import cells_of, ranks_between
from conformance.families.value_spelling import hexadecimal_float, signed_value
from reports.counterexample.drawing import datum_with_value
from reports.findings.finding_text import counted
from specs.errors import CastigateError
from specs.formats import Format, format_named

WRITTEN = re.compile(r"\s*([^/\s]+)/([^/\s:]+)\s*:\s*\[\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\]\s*")
DECIMAL = re.compile(
    r"[+-]?([0-9]{1,400}(\.[0-9]{0,1200})?|\.[0-9]{1,1200})([eE][+-]?[0-9]{1,4})?", re.ASCII
)
INFINITY = re.compile(r"([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Required:
    """A pair of dtypes, and an interval of values on which all backends and documents must agree.

    ``interval`` is the user's text, and ``ranks`` the ranks of the source's values in it.
    """

    source: str
    target: str
    interval: str
    ranks: range

    @property
    def text(self) -> str:
        """The pair and the interval as text."""
        return f"{self.source}/{self.target}: {self.interval}"


def required_range(text: str) -> Required:
    """Parse ``SOURCE/TARGET: [LOW, HIGH]``.

    Raise CastigateError if the text is malformed, if ``pair_named`` refuses the pair, if LOW is
    above HIGH, or if no value of the source lies between.
    """
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
    """Return the ranks of values from ``low`` to ``high``; an infinite end includes infinity."""
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


@dataclass(frozen=True)
class Requirement:
    """The result for a required interval, in a line of text.

    ``is_safe`` is false if an input in it disagrees, and also if the interval was not checked.
    """

    text: str
    is_safe: bool


def unchecked(required: Sequence[Required], absent: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return for each required interval that it was not checked, with the reasons.

    ``absent`` has these by the name of the backend or document that has no answers. If it is empty,
    the reason is that only one backend answers the pair.
    """
    why = "; ".join(f"{name}: {reason}" for name, reason in absent.items()) or "one answers it"
    lines = (f"{each.text} is not checked: {why}" for each in required)
    return tuple(Requirement(line, is_safe=False) for line in lines)


def checked_requirements(
    requirements: Sequence[Required], found: Agreement, names: Sequence[str], parties: Parties
) -> Iterator[Requirement]:
    """Yield the result for each required interval.

    If it fails, the text has the simplest input on which not all agree, and the answers to it.
    ``names`` are the backends in the order of their answers.
    """
    results = zip(requirements, found.breaches, found.checked, strict=True)
    for required, breach, checked in results:
        if breach is not None:
            given = datum_with_value(found.source, breach.code)
            answers = ", ".join(
                f"{name} {datum_with_value(found.target, code)}"
                for name, code in zip(names, breach.answers, strict=True)
            )
            refused = "".join(f"; {each}" for each in _refusals(parties, names, breach))
            line = f"{required.text} is not safe: {given} gives {answers}{refused}"
            yield Requirement(line, is_safe=False)
        elif not checked:
            line = f"{required.text} is not checked: the run asked no input of it; name backends"
            yield Requirement(line, is_safe=False)
        else:
            asked = "every input" if found.is_whole else "by a sample"
            line = f"{required.text} is safe: {counted(checked, 'input')} asked, {asked}"
            yield Requirement(line, is_safe=True)


def _refusals(parties: Parties, names: Sequence[str], breach: FirstDisagreement) -> Iterator[str]:
    """Yield a text for each document that does not allow all answers to the input of ``breach``.

    The text names the backends whose answers it does not allow.
    """
    given = np.array([breach.code], parties.source.storage)
    for document, allows in parties.documents.items():
        answers = (np.array([code], parties.target.storage) for code in breach.answers)
        pairs = zip(names, answers, strict=True)
        wrong = [name for name, answer in pairs if not allows(given, answer).all()]
        if wrong:
            yield f"{document} does not allow {', '.join(wrong)}"
