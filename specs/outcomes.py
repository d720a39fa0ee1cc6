"""What a rule allows for an input: one small frozen dataclass per kind of outcome."""

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
    """The value itself, where the target has it."""


@dataclass(frozen=True)
class Wrap:
    """The rounded integer's low bits, read as the target."""


@dataclass(frozen=True)
class Same:
    """The input itself, bit for bit or letter for letter."""


@dataclass(frozen=True)
class Nan:
    """Any NaN of the target, or any of one sign; the payload is open."""

    sign: Literal["any", "+", "-"]


@dataclass(frozen=True)
class Either:
    """Any one of several outcomes."""

    options: tuple[Exactly | Round | Wrap, ...]


@dataclass(frozen=True)
class PlainText:
    """A text in plain notation (digits, at most one point, a sign, no exponent) of the input.

    The text may be the value rounded at its own last digit, in either direction; ``reads_back``
    asks for enough digits to read the input back.
    """

    reads_back: bool


@dataclass(frozen=True)
class ParsesTo:
    """A text that reads back as the input: its value when rounded to the source, or its literal."""


@dataclass(frozen=True)
class Rejected:
    """An error, of the class that the document names; no answer may come."""

    error_class: str | None = None


@dataclass(frozen=True)
class Anything:
    """The document leaves it open; the dtype that a call gives may be told nonetheless.

    ``level`` is that of the dtype, where it is not the level of the call's form.
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
    | PlainText
    | ParsesTo
    | Rejected
    | Anything
)
