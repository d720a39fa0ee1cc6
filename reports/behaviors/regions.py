"""Classifies inputs into atoms, and finds phrases for sets of atoms: the regions of a report.

An atom is a class of inputs that a document can tell apart: kind, sign, zone and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, TypeVar

from oracles.reference.expect_by_kernels import Facts
from oracles.reference.kernels import Select, convert, has_fraction, unpack
from specs.formats import Format
from specs.model.vocabulary import INPUT_CLASSES, ZONES, Atom, Rounding, Zone, atoms

KINDS = ("nan", "infinity", "zero", "finite")
ALL_ZONES: tuple[Zone, ...] = ("none", *ZONES)


def _is_out(atom: Atom) -> bool:
    return atom.zone in ("beyond", "overflow")


def _both(one: Callable[[Atom], bool], other: Callable[[Atom], bool], atom: Atom) -> bool:
    return one(atom) and other(atom)


AREAS: dict[str, Callable[[Atom], bool]] = {
    "out of range": lambda atom: atom.kind == "infinity" or _is_out(atom),
    "in range": INPUT_CLASSES["in-range"],
    "above the range": INPUT_CLASSES["above-max"],
    "below the range": lambda atom: _is_out(atom) and atom.sign == "-",
    "above and below the range": lambda atom: _is_out(atom),
    "just beyond the range, rounding back into it": lambda atom: atom.zone == "beyond",
    "just above the range, rounding back into it": lambda atom: (
        atom.zone == "beyond" and atom.sign != "-"
    ),
    "just below the range, rounding back into it": lambda atom: (
        atom.zone == "beyond" and atom.sign == "-"
    ),
    "above and below the range after rounding": lambda atom: atom.zone == "overflow",
    "above the range after rounding": INPUT_CLASSES["overflow"],
    "below the range after rounding": INPUT_CLASSES["-overflow"],
}
FRACTION_PREFIXES: dict[str, Callable[[Atom], bool]] = {
    "": lambda atom: True,
    "fractions ": lambda atom: not atom.whole,
    "whole values ": lambda atom: atom.whole and atom.kind != "infinity",
}
PHRASES: dict[str, Callable[[Atom], bool]] = {
    "every open input": lambda atom: True,
    "finite inputs": lambda atom: atom.is_finite,
    **{
        prefix + area: partial(_both, in_area, has_prefix)
        for area, in_area in AREAS.items()
        for prefix, has_prefix in FRACTION_PREFIXES.items()
    },
    "negative values": INPUT_CLASSES["negative"],
    "positive values": lambda atom: atom.kind == "finite" and atom.sign != "-",
    "subnormal inputs": INPUT_CLASSES["subnormal-input"],
    "underflow": INPUT_CLASSES["underflow"],
    "NaN": INPUT_CLASSES["nan"],
    "+NaN": INPUT_CLASSES["+nan"],
    "-NaN": INPUT_CLASSES["-nan"],
    "infinities": lambda atom: atom.kind == "infinity",
    "+infinity": INPUT_CLASSES["inf"],
    "-infinity": INPUT_CLASSES["-inf"],
    "zeros": lambda atom: atom.kind == "zero",
    "zero": INPUT_CLASSES["zero"],
    "-0": INPUT_CLASSES["-zero"],
}


Class = TypeVar("Class")


def phrases_for(
    some: Iterable[Class],
    among: Iterable[Class],
    phrases: Mapping[str, Callable[[Class], bool]],
) -> tuple[str, ...]:
    """Few phrases that name exactly ``some`` of the classes ``among``, the widest first.

    Classes that no phrase names are written out.
    """
    left, every = set(some), set(among)
    chosen: list[str] = []
    candidates = {
        phrase: covered
        for phrase, holds in phrases.items()
        if (covered := {atom for atom in every if holds(atom)}) and covered <= left
    }
    while left:
        # Of the phrases that cover most of what is left, the narrowest.
        gain = {
            phrase: (len(covered & left), -len(covered)) for phrase, covered in candidates.items()
        }
        phrase = max(gain, key=gain.__getitem__, default="")
        if not phrase or not candidates[phrase] & left:
            chosen.extend(sorted(map(str, left)))
            break
        chosen.append(phrase)
        left -= candidates[phrase]
    return tuple(chosen)


def mark_of(
    source: Format, target: Format, rounding: Rounding, pattern: Any, select: Select
) -> Any:
    """The marks of patterns: each an atom as a number of at most 8 bits.

    Like the kernels, it runs on numpy arrays, words and solver terms.
    """
    parts = unpack(source, pattern, select)
    converted = convert(target, rounding, parts, select)
    fraction = has_fraction(parts, select)
    facts = Facts(parts, converted, fraction, source.has_signed_nan, target.has_zero)
    zone = select(facts.some, ALL_ZONES.index("inside"), 0)
    zone = select(facts.some & converted.subnormal, ALL_ZONES.index("subnormal"), zone)
    zone = select(facts.some & converted.tiny, ALL_ZONES.index("tiny"), zone)
    zone = select(facts.out, ALL_ZONES.index("beyond"), zone)
    zone = select(facts.some & converted.overflow, ALL_ZONES.index("overflow"), zone)
    kind = select(parts.zero, KINDS.index("zero"), KINDS.index("finite"))
    kind = select(parts.infinity, KINDS.index("infinity"), kind)
    kind = select(parts.nan, KINDS.index("nan"), kind)
    sign = select(parts.nan, parts.sign & int(source.has_signed_nan), parts.sign)
    fraction = select(facts.some & facts.fraction, 1, 0)
    subnormal = select(parts.subnormal, 1, 0)
    return _mark(kind, sign, zone, fraction, subnormal)


def _mark(kind: Any, sign: Any, zone: Any, fraction: Any, subnormal: Any) -> Any:
    # By shifts, because kernels may not multiply.
    return (zone << 5) + (kind << 3) + (sign << 2) + (fraction << 1) + subnormal


@cache
def atoms_by_mark(source: Format) -> dict[int, Atom]:
    """The atoms of a source format by their marks.

    A mark does not record whether the target has the value: documents leave open only what rounds.
    """
    return {
        _mark(
            KINDS.index(atom.kind),
            int(atom.sign == "-"),
            ALL_ZONES.index(atom.zone),
            int(not atom.whole),
            int(atom.subnormal),
        ): atom
        for atom in atoms(source)
        if not atom.representable
    }
