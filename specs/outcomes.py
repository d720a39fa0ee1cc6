"""Outcomes that a rule allows for an input: one frozen dataclass per kind, and their words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from specs.behaviors import reductions
from specs.errors import DocumentError
from specs.formats import Format
from specs.model.vocabulary import CODE_WORDS, NAN_SIGNS, ROUNDINGS, Level, Rounding


@dataclass(frozen=True)
class Exactly:
    """One bit pattern of the target."""

    code: int


@dataclass(frozen=True)
class Round:
    """The value rounded to the target by ``rounding``."""

    rounding: Rounding


@dataclass(frozen=True)
class Value:
    """The value itself; only for inputs whose value is one of the target's."""


@dataclass(frozen=True)
class Wrap:
    """The value rounded to an integer, and its low bits read as a pattern of the target."""


@dataclass(frozen=True)
class Same:
    """The input itself, bit for bit or character for character."""


@dataclass(frozen=True)
class Nan:
    """Any NaN of the target, or any NaN of one sign, whatever its payload."""

    sign: Literal["any", "+", "-"]


@dataclass(frozen=True)
class Either:
    """Any one of several outcomes."""

    options: tuple[Exactly | Round | Wrap | Behaves, ...]


@dataclass(frozen=True)
class Behaves:
    """The answer of the behavior of this name in ``specs.behaviors``.

    Documents name behaviors that go through another float and back. House rules name behaviors for
    integers and bools, where a document leaves an answer open.
    """

    behavior: str


@dataclass(frozen=True)
class PlainText:
    """The input as text in plain notation: digits, at most one point, a sign, no exponent.

    The text may be the value rounded at its last digit, in either direction. If ``reads_back``, it
    must have enough digits to read the input back.
    """

    reads_back: bool


@dataclass(frozen=True)
class ParsesTo:
    """A text that reads back as the input, rounded to the source; NaN and infinities by name."""


@dataclass(frozen=True)
class Rejected:
    """An error instead of an answer, of the class ``error_class`` if that is not None."""

    error_class: str | None = None


@dataclass(frozen=True)
class Anything:
    """Any answer: the document leaves the value open.

    If ``converts``, the result of a call must still have the target's dtype; ``level`` is the level
    of this requirement, or None for the level of the call's form.
    """

    converts: bool = False
    level: Level | None = None


Outcome = (
    Exactly
    | Round
    | Value
    | Wrap
    | Same
    | Nan
    | Either
    | Behaves
    | PlainText
    | ParsesTo
    | Rejected
    | Anything
)


FIXED_OUTCOMES: dict[str, Outcome] = {
    "value": Value(),
    "wrap": Wrap(),
    "same": Same(),
    "plain-text": PlainText(reads_back=False),
    "plain-value": PlainText(reads_back=True),
    "parses-to": ParsesTo(),
    "error": Rejected(),
    "unspecified": Anything(),
}
"""The outcome words that mean the same for every target."""


@cache
def outcome_of(word: str, target: Format) -> Outcome:
    """Return the outcome that a word means for a target.

    Raise DocumentError if the target lacks that pattern or NaN, ValueError if the word is unknown.
    """
    if word in ROUNDINGS:
        return Round(ROUNDINGS[word])
    if word in NAN_SIGNS:
        if not target.nan_codes:
            raise DocumentError(f"{target.name} has no NaN")
        if word != "nan" and not target.has_signed_nan:
            raise DocumentError(f"a NaN of {target.name} has no sign")
        return Nan(NAN_SIGNS[word])
    if word in CODE_WORDS:
        if word in ("inf", "-inf") and not target.entry.infinity:
            raise DocumentError(f"{target.name} has no infinity")
        if word == "zero" and target.entry.zero == "none":
            raise DocumentError(f"{target.name} has no zero")
        if word == "-zero" and target.entry.zero != "signed":
            raise DocumentError(f"{target.name} has no negative zero")
        return Exactly(CODE_WORDS[word](target))
    if word in reductions():
        return Behaves(word)
    if word in FIXED_OUTCOMES:
        return FIXED_OUTCOMES[word]
    code = int(word, 16)
    if code > target.mask:
        raise DocumentError(f"`{word}` is wider than {target.name}")
    return Exactly(code)
