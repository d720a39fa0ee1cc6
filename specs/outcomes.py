"""Outcomes that a rule allows for an input: one frozen dataclass per kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specs.model.vocabulary import Level, Rounding


@dataclass(frozen=True)
class Exactly:
    """One bit pattern of the target."""

    code: int


@dataclass(frozen=True)
class Round:
    """The value rounded to the target."""

    rounding: Rounding


@dataclass(frozen=True)
class Value:
    """The value itself; only for inputs whose value the target has."""


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
    """The answer of a behavior, by its name in ``specs.behaviors``.

    Documents name behaviors that go through another float and back. House rules name behaviors for
    integers and bools, where a document leaves an answer open.
    """

    behavior: str


@dataclass(frozen=True)
class PlainText:
    """The input as text in plain notation: digits, at most one point, a sign, no exponent.

    The text may be the value rounded at its last digit, in either direction. With ``reads_back`` it
    must have enough digits to read the input back.
    """

    reads_back: bool


@dataclass(frozen=True)
class ParsesTo:
    """A text that reads back as the input when rounded to the source, or its special literal."""


@dataclass(frozen=True)
class Rejected:
    """An error instead of an answer, of a class if the document names one."""

    error_class: str | None = None


@dataclass(frozen=True)
class Anything:
    """Any answer: the document leaves the value open.

    With ``converts``, the result of a call must still have the target's dtype; ``level`` is the
    level of this requirement, if it is not that of the call's form.
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
