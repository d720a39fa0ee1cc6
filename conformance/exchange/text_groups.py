"""The groups of texts that an export keeps apart: a parser that lacks one fails only its test."""

from __future__ import annotations

from typing import Literal, get_args

from oracles.reference.exact import Number, number_atom
from oracles.reference.exact_text import NUMBER, read_literal
from specs.formats import Format, format_named
from specs.model.vocabulary import Zone

TextGroup = Literal[
    "ordinary", "digits", "spelling", "nonfinite", "subnormal", "underflow", "overflow"
]
TEXT_GROUPS: tuple[TextGroup, ...] = get_args(TextGroup)
NONFINITE = ("INF", "+INF", "-INF", "NaN")
"""The spellings that ONNX's page gives; it allows others, which are the group ``spelling``."""
GROUP_OF_ZONE: dict[Zone, TextGroup] = {
    "subnormal": "subnormal",
    "tiny": "underflow",
    "beyond": "overflow",
    "overflow": "overflow",
}
FLOAT64_DIGITS = 17
"""With more digits, a parser that goes by way of float64 may round twice."""


def text_group(target: Format, text: str) -> TextGroup:
    """Return the group of a text as an input of a cast to a target.

    A number's value comes first, so that all other groups have only values that every parser can
    represent. A target that is not numeric takes the values of float64.
    """
    number = read_literal(text).number
    if number is None:
        return "nonfinite" if text in NONFINITE else "spelling"
    group = GROUP_OF_ZONE.get(
        _zone(target if target.is_numeric else format_named("float64"), number)
    )
    return group or _group_of_spelling(text)


def _zone(target: Format, number: Number) -> Zone:
    sign: Literal["-", "+"] = "-" if number.sign else "+"
    return number_atom("text-decimal", sign, target, "nearest-even", number).zone


def _group_of_spelling(text: str) -> TextGroup:
    match = NUMBER.fullmatch(text)
    assert match is not None
    sign, whole, fraction, power = match.groups()
    digits = (whole + (fraction or "")).strip("0")
    has_leading_zeros = len(whole) > 1 and whole.startswith("0")
    if sign == "+" or has_leading_zeros or (power and not digits):
        return "spelling"
    return "digits" if len(digits) > FLOAT64_DIGITS else "ordinary"
