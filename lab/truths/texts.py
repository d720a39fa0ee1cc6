"""Casts of texts to floats: what MPFR and Python read, against the reference."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.text_inputs import texts
from lab.truths.comparison import Counts, Key
from lab.truths.questions import question_of
from lab.truths.values import codes_of, ends_of
from oracles.reference import exact_text
from oracles.reference.expectations import Allowed
from reports.grading.allowed_answers import ALLOWED, grade_pattern
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format, formats
from specs.model.vocabulary import Rounding
from specs.outcomes import Anything
from specs.ruling import ruling
from specs.selection import select

MODES: dict[Rounding, str] = {
    "nearest-even": "RoundToNearest", "toward-zero": "RoundToZero", "ceil": "RoundUp"
}  # fmt: skip
ENOUGH_BITS = 200
"""Enough bits that a number cut to them stays on the right side of a midpoint of powers of two."""

Read = Callable[[Format, Rounding, Sequence[str]], NDArray[np.float64]]
"""Reads texts as values of a format, as if its exponent had no upper end."""


def compare_texts(target: Format, random: int) -> dict[Key, Counts]:
    """Compare what MPFR and Python read from numbers with all rulings of a target."""
    counts: dict[Key, Counts] = {}
    chance = np.random.default_rng(crc32(target.name.encode()))
    inputs = list(_numbers(target, chance, random))
    for case, rules in _rulings(target):
        question = question_of(rules)
        allowed = [exact_text.allow_text(rules, text) for text in inputs]
        readers: dict[str, Read] = {"MPFR": _by_mpfr}
        if target.name == "float64":
            readers["Python"] = _by_python
        for name, read in readers.items():
            values = read(target, question.rounding, inputs)
            found = count(name, case, rules, inputs, allowed, values)
            counts.setdefault((name, question.kind, question.rounding), Counts()).add(found)
    return counts


def _numbers(target: Format, chance: np.random.Generator, count: int) -> Iterator[str]:
    """Yield distinct texts of numbers, drawn repeatedly as the quick tier draws them.

    Drawing ends when ``count`` different texts have been seen.
    """
    seen: set[str] = set()
    while len(seen) < count:
        fresh = [text for text in texts(target, chance, count) if text not in seen]
        seen.update(fresh)
        yield from (text for text in fresh if exact_text.NUMBER.fullmatch(text))


def _rulings(target: Format) -> Iterator[tuple[str, Ruling]]:
    seen = set()
    for case in _text_cases():
        if case.target == target.name:
            rules = ruling(case)
            if not (rules.is_open or rules.is_rejection or rules.meaning in seen):
                seen.add(rules.meaning)
                yield case.id, rules


@cache
def _text_cases() -> tuple[Case, ...]:
    known = formats()
    return tuple(
        case
        for case in select([])
        if case.example is None
        and known[case.source].kind == "text"
        and known[case.target].kind == "float"
    )


def text_targets() -> list[Format]:
    """The float formats to which documents cast texts."""
    names = dict.fromkeys(case.target for case in _text_cases())
    return [formats()[name] for name in names]


def count(
    name: str,
    case: str,
    rules: Ruling,
    inputs: Sequence[str],
    allowed: Sequence[Allowed],
    values: NDArray[np.float64],
) -> Counts:
    """Count the values read from texts that a ruling allows; a value that it forbids is a failure.

    A value out of the target's range must be open, and no other one may be. For a format without
    zero, the page leaves further values open.
    """
    target = rules.target
    largest, lowest = ends_of(target)
    inside = (values <= largest) & (values >= lowest)
    if target.entry.zero == "none":
        inside &= values >= 2.0**target.lowest_exponent
    codes = codes_of(target, np.where(inside, values, 1.0)).tolist()
    counts = Counts(compared=len(inputs))
    for text, one, is_inside, code in zip(inputs, allowed, inside.tolist(), codes, strict=True):
        is_open = isinstance(one.branch.outcome, Anything)
        if is_open and (not is_inside or target.entry.zero == "none"):
            counts.open += 1
        elif is_inside and not is_open and grade_pattern(rules, one, code) == ALLOWED:
            counts.agree += 1
        else:
            answer = target.hexadecimal(code) if is_inside else "out of range"
            wanted = " or ".join(map(target.hexadecimal, one.codes)) or "anything"
            counts.failures.append(
                f"{name}: an unknown difference: {case}: `{text[:80]}` gives {answer},"
                f" the reference {wanted}"
            )
    return counts


def _by_python(target: Format, rounding: Rounding, inputs: Sequence[str]) -> NDArray[np.float64]:
    return np.array([float(text) for text in inputs])


def _by_mpfr(target: Format, rounding: Rounding, inputs: Sequence[str]) -> NDArray[np.float64]:
    gmpy2: Any = importlib.import_module("gmpy2")
    has_subnormals = target.entry.zero != "none"
    least = target.lowest_exponent - target.entry.mantissa + 1
    context = {
        "precision": target.precision,
        "emin": least if has_subnormals else gmpy2.get_emin_min(),
        "emax": gmpy2.get_emax_max(),
        "subnormalize": has_subnormals,
    }
    if rounding in MODES:
        with gmpy2.context(**context, round=getattr(gmpy2, MODES[rounding])):
            return np.array([float(gmpy2.mpfr(text)) for text in inputs])
    assert rounding == "nearest-away", rounding
    assert target.precision == 1, target.name
    context = {**context, "precision": ENOUGH_BITS, "round": gmpy2.RoundToZero}
    with gmpy2.context(**context):
        return np.array([_to_power_of_two(gmpy2, gmpy2.mpfr(text)) for text in inputs])


def _to_power_of_two(gmpy2: Any, number: Any) -> float:
    """Round a positive number to the nearest power of two, ties up; return others unchanged."""
    if not number > 0 or gmpy2.is_infinite(number):
        return float(number)
    significand, exponent = float(gmpy2.frexp(number)[1]), int(gmpy2.frexp(number)[0])
    power = exponent if significand >= 0.75 else exponent - 1
    return float(gmpy2.exp2(power)) if abs(power) < 1000 else float(number)
