"""Classifies inputs into atoms, names sets of atoms, and evaluates behaviors on patterns.

An atom is a class of inputs that a document can tell apart: kind, sign, zone and so on. A set of
atoms is a region of a report. For a complex source, behaviors get only the real part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import Evaluation
from oracles.reference.expect_by_kernels import Facts
from oracles.reference.kernels import Select, convert, has_fraction, unpack
from oracles.reference.machine_words import select_arrays
from specs.behaviors import Behavior, Constant, ConstantAnswer, NanAnswer, behaviors
from specs.formats import Format, format_named
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
    """Return few phrases that together name exactly ``some`` of the classes ``among``.

    The phrases that name most classes come first. ``phrases`` has a test of a class for each
    phrase. Classes that no phrase names are written out.
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
    """Return the mark of each pattern: its atom as a number of at most 8 bits.

    Like the kernels, it runs on numpy arrays, words and solver terms; ``select`` chooses between
    two values of that type.
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
    """Return the atoms of a source format by their marks.

    A mark does not record whether the target has the value. Atoms of values that it has are left
    out: documents leave open only what rounds.
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


MOST_KEPT = 1 << 12
"""The most patterns whose evaluation is cached; for more it would take much memory."""
HAS_CONSTANT: dict[Constant, Any] = {
    "zero": lambda target: target.entry.zero != "none",
    "minus-zero": lambda target: target.entry.zero == "signed",
    "infinity": lambda target: target.entry.infinity,
    "minus-infinity": lambda target: target.entry.infinity,
    "nan": lambda target: bool(target.nan_codes),
}
"""Tests whether a format has a constant; every format has the constants not listed here."""


def applies_to(behavior: Behavior, source: Format, target: Format) -> bool:
    """Whether a behavior is for these kinds of dtypes, and its steps are possible for the pair."""
    source = real_format(source)
    if source.kind not in behavior.from_ or target.kind not in behavior.to:
        return False
    return all(_is_possible(step, source, target) for step in behavior.steps)


def _is_possible(step: Any, source: Format, target: Format) -> bool:
    match step:
        case ConstantAnswer(answer=word) | NanAnswer(nan=word):
            return word not in HAS_CONSTANT or bool(HAS_CONSTANT[word](target))
        case "low-bits":
            return target.is_integral
        case "to-infinity":
            return target.kind == "float" and (target.entry.infinity or bool(target.nan_codes))
        case "to-nan":
            return bool(target.nan_codes)
        case "drop-sign":
            return source.is_signed
    return True


def has_behaviors(source: Format, target: Format) -> bool:
    """Whether a pair can have behaviors at all: texts and complex targets have none."""
    return real_format(source).is_numeric and target.is_numeric


def behaviors_between(source: Format, target: Format) -> tuple[Behavior, ...]:
    """Return the behaviors of ``behaviors.yaml`` that apply to a pair, the simplest first."""
    return tuple(each for each in behaviors().values() if applies_to(each, source, target))


def real_format(source: Format) -> Format:
    """Return the format of the numbers that behaviors get; for complex, that of the parts."""
    return format_named(source.entry.part) if source.kind == "complex" else source


def real_patterns(source: Format, inputs: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the patterns that behaviors get, as uint64: of complex numbers the real parts."""
    if source.kind != "complex":
        return inputs.astype(np.uint64)
    part = real_format(source).storage
    # In memory, a complex number is its real part and then its imaginary part.
    return np.ascontiguousarray(inputs).view(part).reshape(-1, 2)[:, 0].astype(np.uint64)


def evaluate(
    behavior: Behavior, source: Format, target: Format, inputs: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a behavior's answers to an array of patterns, and the mask of defined ones.

    A NaN among the answers stands for any NaN.
    """
    patterns = real_patterns(source, inputs)
    if patterns.size > MOST_KEPT:
        evaluation = Evaluation(real_format(source), target, patterns, select_arrays)
    else:
        evaluation = _evaluation(real_format(source), target, patterns.tobytes())
    codes, defined = evaluation.answer(behavior)
    return codes.astype(target.storage), defined


@lru_cache(2)
def _evaluation(source: Format, target: Format, patterns: bytes) -> Evaluation:
    """Return the cached evaluation of a few patterns; many behaviors are tried on the same ones."""
    return Evaluation(source, target, np.frombuffer(patterns, np.uint64), select_arrays)
