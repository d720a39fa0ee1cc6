"""Classifies inputs, names regions, which are sets of classes, and evaluates behaviors on patterns.

The class of a number is its atom, which is what a document can tell apart: kind, sign, zone and so
on. For mechanisms, which may hold for a part of the inputs, it is also whether the number is beyond
a limit; texts are classified by how they are written. For a complex source, only the real part
counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import Evaluation
from oracles.reference.expect_by_kernels import Facts
from oracles.reference.kernels import Select, convert, has_fraction, select_arrays, unpack
from specs.behaviors import Behavior, Constant, ConstantAnswer, NanAnswer, behaviors
from specs.formats import Format, format_named
from specs.model.vocabulary import INPUT_CLASSES, ZONES, Atom, Rounding, Zone, atoms

KINDS = ("nan", "infinity", "zero", "finite")
ALL_ZONES: tuple[Zone, ...] = ("none", *ZONES)


def _is_beyond(atom: Atom) -> bool:
    return atom.zone in ("beyond", "overflow")


def _is_out(atom: Atom) -> bool:
    return atom.kind == "infinity" or _is_beyond(atom)


def _both(one: Callable[[Atom], bool], other: Callable[[Atom], bool], atom: Atom) -> bool:
    return one(atom) and other(atom)


AREAS: dict[str, Callable[[Atom], bool]] = {
    "out of range": _is_out,
    "in range": INPUT_CLASSES["in-range"],
    "above the range": INPUT_CLASSES["above-max"],
    "below the range": lambda atom: _is_beyond(atom) and atom.sign == "-",
    "above and below the range": _is_beyond,
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


LARGE = 256
"""Added to the mark of a large number (``_are_large``); marks have 8 bits."""
INFINITE = 0xFF000000
"""The pattern of an infinity in float32, shifted to the left by one bit, without its sign."""
MOST_PHRASES = 2
"""The most phrases that name a region; one that takes more has no name."""
SPELLINGS_KEPT = 1 << 14
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


@lru_cache(SPELLINGS_KEPT)
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
