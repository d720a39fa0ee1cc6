"""Regions of inputs in words, for mechanisms that hold for a part of the inputs.

Inputs are classified by what a conversion can tell apart: sign, kind, and where the result lies in
the target's range. Texts are classified by how they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference.machine_words import select_arrays
from reports.behaviors.regions import (
    atoms_by_mark,
    evaluate,
    mark_of,
    phrases_for,
    real_format,
    real_patterns,
)
from specs.behaviors import behaviors
from specs.formats import Format, format_named
from specs.model.vocabulary import Atom

LARGE = 256
"""Added to the mark of a large number (``_are_large``); marks have 8 bits."""
INFINITE = 0xFF000000
"""The pattern of an infinity in float32, shifted to the left by one bit, without its sign."""
MOST_PHRASES = 2
"""The most phrases that name a region; one that takes more has no name."""
OUT = ("beyond", "overflow")
KEPT = 1 << 14
"""The most texts whose spelling is cached: many mechanisms are tried on the same ones."""
TEXT = re.compile(r"([+-]?)(?:([0-9]*)(\.?)[0-9]*)(?:[eE]([+-]?)[0-9]+)?", re.ASCII)


class Spelling(NamedTuple):
    """How a text is written: its kind, `number` or `word`, its sign, and the parts of a number.

    ``sign`` is `+`, `-` or empty. ``exponent`` is the sign of the exponent, `+` if it has none, and
    empty without an exponent. A single 0 before the point is no leading zero.
    """

    kind: str
    sign: str
    has_point: bool
    exponent: str
    leads_with_zero: bool


class NumberClass(NamedTuple):
    """A class of numbers: their atom, and whether they are beyond a limit of their format.

    The limit of floats is the range of float32, that of integers the signed range.
    """

    atom: Atom
    is_large: bool
    limit: Literal["float32", "signed"]


class Classes(NamedTuple):
    """The number of each input's class, and the classes by their numbers."""

    numbers: NDArray[np.intp]
    by_number: Mapping[int, Hashable]


def _is_out(atom: Atom) -> bool:
    return atom.kind == "infinity" or atom.zone in OUT


def _is_number(atom: Atom) -> bool:
    return atom.kind in ("finite", "infinity")


OF_ATOMS: dict[str, Callable[[Atom], bool]] = {
    "for negative values": lambda atom: _is_number(atom) and atom.sign == "-",
    "for positive values": lambda atom: _is_number(atom) and atom.sign != "-",
    "for finite values": lambda atom: atom.is_finite,
    "for values out of range": _is_out,
    "for values above the range": lambda atom: _is_out(atom) and atom.sign != "-",
    "for values below the range": lambda atom: _is_out(atom) and atom.sign == "-",
    "for values in range": lambda atom: atom.is_finite and not _is_out(atom),
    "for values that round into the range": lambda atom: atom.is_finite and atom.zone != "overflow",
    "where the result is subnormal": lambda atom: atom.zone in ("tiny", "subnormal"),
    "for values below the smallest positive one": lambda atom: atom.zone == "tiny",
    "where the result is normal": lambda atom: atom.zone == "inside",
    "for subnormal inputs": lambda atom: atom.subnormal,
    "for zeros and subnormal inputs": lambda atom: atom.subnormal or atom.kind == "zero",
    "for NaN": lambda atom: atom.kind == "nan",
    "for +NaN": lambda atom: atom.kind == "nan" and atom.sign == "+",
    "for -NaN": lambda atom: atom.kind == "nan" and atom.sign == "-",
    "for infinities": lambda atom: atom.kind == "infinity",
    "for infinity": lambda atom: atom.kind == "infinity" and atom.sign != "-",
    "for -infinity": lambda atom: atom.kind == "infinity" and atom.sign == "-",
    "for zeros": lambda atom: atom.kind == "zero",
    "for 0": lambda atom: atom.kind == "zero" and atom.sign != "-",
    "for -0": lambda atom: atom.kind == "zero" and atom.sign == "-",
}
"""Maps the words for a region, which end a sentence, to a test whether an atom lies in it."""


def _of_atom(holds: Callable[[Atom], bool], number: NumberClass) -> bool:
    return holds(number.atom)


OF_NUMBERS: dict[str, Callable[[NumberClass], bool]] = {
    **{words: partial(_of_atom, holds) for words, holds in OF_ATOMS.items()},
    "for values in the range of float32": lambda number: (
        number.atom.is_finite and not number.is_large and number.limit == "float32"
    ),
    "for values beyond the range of float32": lambda number: (
        number.is_large and number.limit == "float32"
    ),
    "for values in the signed range": lambda number: (
        not number.is_large and number.limit == "signed"
    ),
    "for values beyond the signed range": lambda number: (
        number.is_large and number.limit == "signed"
    ),
}
"""Maps the words for a region, which end a sentence, to a test for classes of numbers."""
OF_TEXTS: dict[str, Callable[[Spelling], bool]] = {
    "for numbers": lambda spelling: spelling.kind == "number",
    "for texts that are no numbers": lambda spelling: spelling.kind == "word",
    "for texts with a leading plus sign": lambda spelling: spelling.sign == "+",
    "for texts with a minus sign": lambda spelling: spelling.sign == "-",
    "for texts with a point": lambda spelling: spelling.has_point,
    "for texts with an exponent": lambda spelling: spelling.exponent != "",
    "for texts with a negative exponent": lambda spelling: spelling.exponent == "-",
    "for texts with a leading zero": lambda spelling: spelling.leads_with_zero,
}
"""Maps the words for a region, which end a sentence, to a test for spellings of texts."""


def classify(source: Format, target: Format, inputs: NDArray[Any]) -> Classes:
    """Classify the inputs of a cast by atom and limit, or texts by how they are written."""
    if source.kind == "text":
        spellings = list(map(spelling_of, inputs.tolist()))
        number_of = {each: number for number, each in enumerate(dict.fromkeys(spellings))}
        places = np.array([number_of[each] for each in spellings], np.intp)
        return Classes(places, {number: each for each, number in number_of.items()})
    real = real_format(source)
    into = target if target.is_numeric else real
    patterns = real_patterns(source, inputs)
    marks = mark_of(real, into, "nearest-even", patterns, select_arrays)
    numbers = np.broadcast_to(marks, inputs.shape).astype(np.intp)
    numbers[_are_large(real, patterns)] += LARGE
    return Classes(numbers, _number_classes(real))


def _are_large(source: Format, patterns: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mark floats beyond the range of float32, and unsigned integers with the highest bit set.

    Floats with no more exponent bits than float32 are never marked.
    """
    if source.kind == "float" and source.entry.exponent > format_named("float32").entry.exponent:
        single, _ = evaluate(behaviors()["nearest"], source, format_named("float32"), patterns)
        large: NDArray[np.bool_] = single << np.uint32(1) == INFINITE
    elif source.kind == "integer" and not source.is_signed:
        large = patterns > np.uint64(source.mask >> 1)
    else:
        large = np.zeros(patterns.shape, bool)
    return large


@cache
def _number_classes(source: Format) -> Mapping[int, NumberClass]:
    limit: Literal["float32", "signed"] = "signed" if source.kind == "integer" else "float32"
    return {
        mark + LARGE * is_large: NumberClass(atom, is_large, limit)
        for mark, atom in atoms_by_mark(source).items()
        for is_large in (False, True)
    }


@lru_cache(KEPT)
def spelling_of(text: str) -> Spelling:
    """Describe how a text is written; one without a digit, or that is no number, is a `word`."""
    match = TEXT.fullmatch(text)
    if match is None or not any(each.isdigit() for each in text):
        sign = text[:1] if text[:1] in ("+", "-") else ""
        return Spelling("word", sign, False, "", False)
    sign, whole, point, power = match.groups()
    exponent = "" if power is None else power or "+"
    leads = len(whole) > 1 and whole.startswith("0")
    return Spelling("number", sign, bool(point), exponent, leads)


def region_phrase(source: Format, some: Collection[Any], among: Collection[Any]) -> str | None:
    """Return words for the region of the classes ``some``, a part of ``among`` that is not empty.

    ``among`` are all classes that a mechanism can affect. The words end a sentence; they are empty
    if ``some`` are all of them. Return None if more than ``MOST_PHRASES`` phrases are needed, or if
    no phrase names a class.
    """
    if len(some) == len(among):
        return ""
    phrases: Mapping[str, Callable[[Any], bool]] = OF_TEXTS if source.kind == "text" else OF_NUMBERS
    found = phrases_for(some, among, phrases)
    if len(found) > MOST_PHRASES or not all(each in phrases for each in found):
        return None
    return " and ".join(found)
