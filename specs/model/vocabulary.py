"""The closed vocabulary of a document: input classes, roundings, outcome words, levels.

Every source pattern of a case falls into exactly one ``Atom``. An input class is a set of atoms, so
whether a document's rules are total and unambiguous can be checked on a small finite set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
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

# Of formulas that take scales:
Form = Literal["tensor", "axis", "block"]
"""Whether there is one scale, one along an axis, or one for each block of an axis."""
SCALE, FORM, BLOCK, SATURATE, PRECISION = "scale", "form", "block", "saturate", "precision"
"""The modes of a case, in the order of its id."""
BLOCK_SIZE = 16
"""Elements that share a scale where the form is `block`."""
AXIS = 1
"""The axis along which scales lie: the default of every document here."""


class Atom(NamedTuple):
    """Everything that rules can distinguish about an input; all inputs of an atom share a rule.

    ``zone`` compares a finite value's magnitude with the target's range:

    - ``tiny``: below the smallest positive value
    - ``subnormal``: from there to below the smallest normal value
    - ``inside``: from there up to the largest (or lowest) value
    - ``beyond``: outside the range, but rounds back into it
    - ``overflow``: outside the range even after rounding with an unbounded exponent
    - ``none``: zeros, NaNs, infinities, and texts that are not numbers

    ``subnormal`` describes the source pattern, not the target. ``representable`` means that the
    target has exactly this value; a negative zero never counts, nor does an infinity or a NaN.
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
        notes = [each for each in ("subnormal", "representable") if getattr(self, each)]
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
    "rounds-to-max": lambda atom: atom.zone == "beyond" and atom.sign != "-",
    "rounds-to-lowest": lambda atom: atom.zone == "beyond" and atom.sign == "-",
    "underflow": lambda atom: atom.zone in ("tiny", "subnormal"),
    "subnormal-input": lambda atom: atom.subnormal,
    "below-smallest": lambda atom: atom.zone == "tiny" and atom.sign != "-",
    "-below-smallest": lambda atom: atom.zone == "tiny" and atom.sign == "-",
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
        _is_number_text(atom) and atom.sign == "+" and atom.zone in REPRESENTABLE_ZONES
    ),
}
OTHERWISE = "otherwise"
REPRESENTABLE_ZONES: tuple[Zone, ...] = ("subnormal", "inside")
"""The zones that contain values of the target; no value elsewhere is representable."""


def _is_number_text(atom: Atom) -> bool:
    return atom.kind in ("text-whole", "text-decimal")


@cache
def atoms(source: Format) -> tuple[Atom, ...]:
    """Return every atom that inputs of a source format can fall into, over all targets."""
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
    whole_values = (True,) if source.is_integral else (True, False)
    has_subnormals = source.kind == "float" and source.entry.zero != "none"
    subnormals = (False, True) if has_subnormals else (False,)
    for sign, zone, whole, subnormal in product(signs, ZONES, whole_values, subnormals):
        for representable in (False, True) if zone in REPRESENTABLE_ZONES else (False,):
            yield Atom("finite", sign, zone, whole, subnormal, representable)


def _zeros(signs: tuple[Sign, ...]) -> Iterator[Atom]:
    """Yield the zero of each sign; one that is not negative comes as representable and as not.

    It is not representable if the target has no zero, such as float8e8m0.
    """
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
        if zone in REPRESENTABLE_ZONES or (zone == "none" and sign == "+"):
            yield Atom(kind, sign, zone, whole, representable=True)


FAMILIES_MODULE = "conformance.families"
"""The module that has the table of families."""


def operations() -> tuple[str, ...]:
    """Return the operations that a document can have, in the order in which people see them.

    Their table belongs to the families, a layer above this package. So the module is imported by
    its name.
    """
    found: tuple[str, ...] = import_module(FAMILIES_MODULE).OPERATIONS
    return found
