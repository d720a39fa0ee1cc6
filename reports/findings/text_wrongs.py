"""Mistakes that backends may make in writing numbers as texts: one row, a ``Wrong``, each."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.protocol import Mask
from oracles.reference.exact_text import NUMBER
from oracles.reference.kernel_text import finite_doubles
from reports.findings.wrong import (
    GivenAnswers,
    Patterns,
    RowAnswers,
    Wrong,
    allowed,
    computing,
    everywhere,
)
from specs.formats import Format

PRINTED = 8
"""The most arrays whose numbers are cached: every row of ``printf`` is tried on each."""
MOST_PLACES = 400
"""The most digits before the point, or zeros after it, that a number of a format may have."""
INNER_ZEROS = re.compile(r"(?<=[0-9])0+(?=[1-9])")
"""The zeros of a number in plain notation that have other digits on both sides."""


def printf(digits: int, conversion: str) -> Wrong:
    """Return the row for backends that write numbers as C's ``printf`` does.

    The conversion ``g`` counts significant digits, ``f`` digits after the point.
    """
    how = f".{digits}{conversion}"

    def texts(source: Format, inputs: Patterns) -> Patterns:
        values = _values(source, inputs.tobytes())
        # A NaN alone differs from itself.
        return np.array([format(each, how) if each == each else "" for each in values], object)

    def may_print(text: str) -> bool:
        """Whether ``printf`` can have written a text, by its form: faster than writing it."""
        return conversion == "g" or (len(text.partition(".")[2]) == digits and "e" not in text)

    def answers(given: GivenAnswers) -> RowAnswers:
        written = texts(given.source, given.inputs)
        return RowAnswers(written, written != "")

    def matches(given: GivenAnswers, level: str) -> Mask:
        written = np.array([may_print(each) for each in given.answers], bool)
        some = texts(given.source, given.inputs[written])
        written[written] = some == given.answers[written]
        return written

    return Wrong(
        f"printf-{digits}{conversion}",
        f"writes numbers as printf does with %{how}",
        answers,
        lambda asked: asked.source.kind != "text",
        matches,
        alike="printf",
    )


@lru_cache(PRINTED)
def _values(dtype: Format, inputs: bytes) -> list[float]:
    """Return the patterns whose bytes are ``inputs`` as floats; NaN for NaNs and infinities.

    No format has more digits or a wider range than Python's own floats.
    """
    values: list[float] = finite_doubles(dtype, np.frombuffer(inputs, dtype.storage)).tolist()
    return values


def _allowed_without_exponent(given: GivenAnswers, level: str) -> Mask:
    plain = np.array([_without_exponent(each) for each in given.answers], object)
    return allowed(given.case, given.inputs, plain, level)


def _without_exponent(text: Any) -> Any:
    """Write the text of a number in plain notation; return any other answer as it is.

    A number whose decimal exponent is beyond ``MOST_PLACES`` comes back as it is too.
    """
    if not (isinstance(text, str) and NUMBER.fullmatch(text)):
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:  # of an exponent of hundreds of digits
        return text
    return f"{number:f}" if abs(number.adjusted()) <= MOST_PLACES else text


@computing(
    "writes-an-exponent", "writes numbers with an exponent", matches=_allowed_without_exponent
)
def _with_exponent(given: GivenAnswers) -> RowAnswers:
    """Return the given answers, and mark those with an exponent whose value is allowed.

    The row has no answers of its own, so that what it predicts always agrees with the backend.
    """
    concerned = np.array(["e" in each.lower() for each in given.answers], bool)
    some = GivenAnswers(given.case, given.inputs[concerned], given.answers[concerned])
    concerned[concerned] = _allowed_without_exponent(some, "recommended")
    return RowAnswers(given.answers, concerned)


@computing(
    "loses-inner-zeros",
    "loses the zeros between the other digits of a number",
    lambda asked: asked.source.is_integral,
)
def _without_inner_zeros(given: GivenAnswers) -> RowAnswers:
    sign = given.source.sign_bit
    wholes = (code - ((code & sign) << 1) for code in given.inputs.tolist())
    texts = np.array([INNER_ZEROS.sub("", str(whole)) for whole in wholes], object)
    return RowAnswers(texts, everywhere(given))


TEXT_WRONGS = (
    *(printf(digits, "g") for digits in range(6, 18)),
    *(printf(decimals, "f") for decimals in range(10)),
    _with_exponent,
    _without_inner_zeros,
)
