"""The closed vocabulary of a document: input classes, roundings, outcome words, levels.

Every source pattern of a case falls into exactly one ``Atom``. An input class is a set of atoms, so
whether a document's rules are total and unambiguous is a question about a small finite set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Literal, NamedTuple, get_args

from specs.formats import Format

Level = Literal["required", "recommended", "unspecified"]
Rounding = Literal["nearest-even", "nearest-away", "toward-zero", "floor", "ceil", "odd"]
Sign = Literal["+", "-", "none"]
Zone = Literal["none", "tiny", "subnormal", "inside", "beyond", "overflow"]
ZONES: tuple[Zone, ...] = ("tiny", "subnormal", "inside", "beyond", "overflow")
AtomKind = Literal[
    "nan", "infinity", "zero", "finite",
    "text-infinity", "text-minus-infinity", "text-minus-infinity-other-case", "text-nan",
    "text-whole", "text-decimal", "text-other",
]  # fmt: skip

ROUNDINGS: dict[str, Rounding] = {word: word for word in get_args(Rounding)}
NAN_SIGNS: dict[str, Literal["any", "+", "-"]] = {"nan": "any", "+nan": "+", "-nan": "-"}
CODE_WORDS: dict[str, Callable[[Format], int]] = {
    "zero": lambda target: 0,
    "-zero": lambda target: target.sign_bit,
    "inf": lambda target: target.infinity_code,
    "-inf": lambda target: target.infinity_code | target.sign_bit,
    "smallest": lambda target: 0 if target.entry.zero == "none" else 1,
    "max": lambda target: target.max_code,
    "lowest": lambda target: target.lowest_code,
    "one": lambda target: target.one_code,
    "true": lambda target: 1,
    "false": lambda target: 0,
}


class Atom(NamedTuple):
    """All that a rule can distinguish about one input.

    ``zone`` places a finite value among the target's: ``tiny`` below the smallest positive value in
    magnitude, ``subnormal`` below the smallest normal one, ``inside`` up to the lowest or largest,
    ``beyond`` outside them though it rounds back in, ``overflow`` outside even after rounding with
    unbounded exponent. Zeros, NaNs, infinities and texts that are no numbers have no zone.
    ``subnormal`` describes the source pattern. ``representable`` means that the target has this
    very value; a zero's sign is not part of its value, so a negative zero is never representable.
    """

    kind: AtomKind
    sign: Sign = "none"
    zone: Zone = "none"
    whole: bool = True
    subnormal: bool = False
    representable: bool = False

    @property
    def is_finite(self) -> bool:
        return self.kind in ("zero", "finite", "text-whole", "text-decimal")

    def __str__(self) -> str:
        sign = "-" if self.sign == "-" else ""
        zone = f" {self.zone}" if self.zone != "none" else ""
        fraction = "" if self.whole else " with a fraction"
        notes = [
            note
            for note, holds in (
                ("subnormal", self.subnormal),
                ("representable", self.representable),
            )
            if holds
        ]
        return f"{sign}{self.kind}{zone}{fraction}" + (f" ({', '.join(notes)})" if notes else "")


INPUT_CLASSES: dict[str, Callable[[Atom], bool]] = {
    "nan": lambda atom: atom.kind == "nan",
    "+nan": lambda atom: atom.kind == "nan" and atom.sign == "+",
    "-nan": lambda atom: atom.kind == "nan" and atom.sign == "-",
    "unsigned-nan": lambda atom: atom.kind == "nan" and atom.sign == "none",
    "inf": lambda atom: atom.kind == "infinity" and atom.sign == "+",
    "-inf": lambda atom: atom.kind == "infinity" and atom.sign == "-",
    "zero": lambda atom: atom.kind == "zero" and atom.sign != "-",
    "-zero": lambda atom: atom.kind == "zero" and atom.sign == "-",
    "overflow": lambda atom: atom.zone == "overflow" and atom.sign != "-",
    "-overflow": lambda atom: atom.zone == "overflow" and atom.sign == "-",
    "above-max": lambda atom: atom.zone in ("beyond", "overflow") and atom.sign != "-",
    "underflow": lambda atom: atom.zone in ("tiny", "subnormal"),
    "subnormal-input": lambda atom: atom.subnormal,
    "below-smallest": lambda atom: atom.zone == "tiny" and atom.sign != "-",
    "negative": lambda atom: atom.kind == "finite" and atom.sign == "-",
    "representable": lambda atom: atom.representable,
    "representable-normal": lambda atom: (
        atom.representable and not atom.subnormal and atom.zone != "subnormal"
    ),
    "in-range": lambda atom: atom.is_finite and atom.zone not in ("beyond", "overflow"),
    "whole": lambda atom: INPUT_CLASSES["in-range"](atom) and atom.whole,
    "fraction": lambda atom: INPUT_CLASSES["in-range"](atom) and not atom.whole,
    "not-whole": lambda atom: atom.kind == "finite" and not atom.whole,
    "infinity-literal": lambda atom: atom.kind == "text-infinity",
    "minus-infinity-literal": lambda atom: atom.kind == "text-minus-infinity",
    "minus-infinity-literal-other-case": lambda atom: atom.kind == "text-minus-infinity-other-case",
    "nan-literal": lambda atom: atom.kind == "text-nan",
    "whole-literal-in-range": lambda atom: atom.kind == "text-whole" and atom.zone != "overflow",
    "number-literal-in-range": lambda atom: _is_number_text(atom) and atom.zone != "overflow",
    "inexact-literal-in-range": lambda atom: (
        INPUT_CLASSES["number-literal-in-range"](atom) and not atom.representable
    ),
    "positive-literal-in-range": lambda atom: (
        _is_number_text(atom) and atom.sign == "+" and atom.zone in HAS_REPRESENTABLE
    ),
}
OTHERWISE = "otherwise"
HAS_REPRESENTABLE: tuple[Zone, ...] = ("subnormal", "inside")
"""The zones that hold values of the target; outside them nothing is representable."""


def _is_number_text(atom: Atom) -> bool:
    return atom.kind in ("text-whole", "text-decimal")


@cache
def atoms(source: Format) -> tuple[Atom, ...]:
    """Every atom that an input of this source may fall into, whatever the target."""
    return tuple(_atoms(source))


def _atoms(source: Format) -> Iterator[Atom]:
    if source.kind == "text":
        yield from _text_atoms()
        return
    if not source.is_numeric:
        return
    signs: tuple[Sign, ...] = ("+", "-") if source.is_signed else ("none",)
    if source.nan_codes:
        yield from (Atom("nan", sign) for sign in (signs if source.has_signed_nan else ("none",)))
    if source.entry.infinity:
        yield from (Atom("infinity", sign) for sign in signs)
    if source.is_integral or source.entry.zero == "unsigned":
        yield from _zeros(signs[:1])
    elif source.entry.zero == "signed":
        yield from _zeros(signs)
    wholes = (True,) if source.is_integral else (True, False)
    gradual = source.kind == "float" and source.entry.zero != "none"
    subnormals = (False, True) if gradual else (False,)
    for sign, zone, whole, subnormal in product(signs, ZONES, wholes, subnormals):
        for representable in (False, True) if zone in HAS_REPRESENTABLE else (False,):
            yield Atom("finite", sign, zone, whole, subnormal, representable)


def _zeros(signs: tuple[Sign, ...]) -> Iterator[Atom]:
    """The zeros; one format (float8e8m0) has no zero, so even a positive one may have no match."""
    for sign in signs:
        for representable in (False,) if sign == "-" else (False, True):
            yield Atom("zero", sign, representable=representable)


def _text_atoms() -> Iterator[Atom]:
    specials: tuple[AtomKind, ...] = (
        "text-infinity", "text-minus-infinity", "text-minus-infinity-other-case", "text-nan",
        "text-other",
    )  # fmt: skip
    yield from (Atom(kind) for kind in specials)
    kinds: tuple[AtomKind, ...] = ("text-whole", "text-decimal")
    signs: tuple[Sign, ...] = ("+", "-")
    for kind, sign, zone, whole in product(kinds, signs, ("none", *ZONES), (True, False)):
        if not whole and kind == "text-whole":
            continue
        yield Atom(kind, sign, zone, whole)
        if zone in HAS_REPRESENTABLE or (zone == "none" and sign == "+"):
            yield Atom(kind, sign, zone, whole, representable=True)
