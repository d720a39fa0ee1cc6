"""Which mechanisms can explain the answers to a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import get_args

from reports.behaviors.closed_forms import applies_to, has_behaviors
from reports.findings.codec_mechanisms import CODECS, codec_candidates
from reports.findings.mechanisms import (
    ANOTHER_DTYPE,
    NEGATIVE,
    ClosedForm,
    ConvertsAsC,
    Exponent,
    ExponentBits,
    FewStickyBits,
    Flaw,
    Flawed,
    IgnoresLowBits,
    LosesInnerZeros,
    Mechanism,
    MovesBits,
    NanSign,
    OtherMode,
    OtherRounding,
    OtherVersion,
    Printf,
    ReversedBytes,
    RoundsTwice,
    TakenFor,
    Unchanged,
    is_small,
)
from specs.behaviors import Via, behaviors
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named, formats
from specs.loader import document_named
from specs.model.vocabulary import Rounding

BETWEEN = ("float32", "float16", "bfloat16", "float64")
"""The dtypes through which a backend may convert."""
BYTE = 8
WRAPPED_FROM = -64
"""Only numbers with larger exponents have normal float32 numbers 2^64 times smaller."""
DIGITS = range(6, 18)
"""How many significant digits a backend may write."""
DECIMALS = range(10)
"""How many digits after the point a backend may write."""
KEPT = 1 << 12
"""Cases whose mechanisms are cached."""
Modes = tuple[tuple[str, str], ...]


def candidates(case: Case) -> Iterator[Mechanism]:
    """Yield the mechanisms that can explain answers to a case; among equals the first counts."""
    source, target = format_named(case.source), format_named(case.target)
    document = document_named(case.document)
    if target.kind == "text":
        if source.kind != "text":
            yield from map(Printf, DIGITS)
            yield from (Printf(decimals, "f") for decimals in DECIMALS)
        yield Exponent()
        if source.is_integral:
            yield LosesInnerZeros()
        return
    faults = [*codec_candidates(source, target)] if case.document == CODECS else []
    yield from (fault for fault in faults if not fault.is_last_resort)
    if target.has_signed_nan:
        yield NanSign()
    if target.is_integral and has_behaviors(source, target):
        yield ConvertsAsC()
    forms = list(_closed_forms(source, target))
    constants = [form for form in forms if form.is_constant]
    if target.kind == "float" and target.is_signed:
        yield from (
            replace(form, has_sign_of_input=True) for form in constants if form.behavior in NEGATIVE
        )
    yield from constants
    yield from (RoundsTwice(each) for each in BETWEEN if each not in (case.source, case.target))
    if target.name == "float8e8m0":
        yield from (ExponentBits(), ExponentBits("half-even"), ExponentBits("half-up"))
    if source == target:
        yield Unchanged()
    for name, parameter in edition(document, case.version).parameters():
        for value in parameter.values:
            if case.mode.get(name, value) != value:
                yield OtherMode(name, value)
    for version in document.entry.versions:
        if version != case.version:
            yield OtherVersion(case.document, version)
    yield from (form for form in forms if not form.is_constant)
    yield from (each for each in _taken_for(source, target) if each.name != ANOTHER_DTYPE)
    yield from (fault for fault in faults if fault.is_last_resort)
    if is_small(source) or (is_small(target) and target.entry.mantissa):
        yield MovesBits()
    if target.bits > BYTE:
        yield ReversedBytes("answers")
    if source.bits > BYTE:
        yield ReversedBytes("inputs")
    yield from map(Flawed, _flaws(source, target))


def costly_candidates(case: Case) -> Iterator[Mechanism]:
    """Yield further mechanisms, too many to try on answers that another mechanism explains."""
    source, target = format_named(case.source), format_named(case.target)
    taken = _taken_for(source, target)
    yield from (each for each in taken if each.name == ANOTHER_DTYPE)
    if not (source.is_numeric and target.is_numeric):
        return
    if target.kind != "boolean" and not (source.is_integral and target.is_integral):
        yield from map(OtherRounding, get_args(Rounding))
    yield from (
        RoundsTwice(each.name)
        for each in formats().values()
        if each.is_numeric and each.name not in (*BETWEEN, case.source, case.target)
    )
    yield from map(IgnoresLowBits, range(1, source.entry.mantissa or source.bits))
    if source.kind == target.kind == "float":
        yield from map(FewStickyBits, range(1, _lost_digits(source, target) - 1))


@lru_cache(KEPT)
def every_candidate(case: Case) -> frozenset[Mechanism]:
    """All mechanisms that can explain answers to a case."""
    return frozenset((*candidates(case), *costly_candidates(case)))


@cache
def _taken_for(source: Format, target: Format) -> tuple[TakenFor, ...]:
    """The other dtypes of the same widths that a pair can be taken for."""
    pair = source.name, target.name
    others = ((one.name, two.name) for one in _as_wide(source) for two in _as_wide(target))
    return tuple(TakenFor(pair, other) for other in others if other != pair)


def _as_wide(dtype: Format) -> Iterator[Format]:
    """The dtypes of numbers that have the width of one, itself included."""
    if not dtype.is_numeric:
        yield dtype
        return
    yield from (each for each in formats().values() if each.is_numeric and each.bits == dtype.bits)


def _flaws(source: Format, target: Format) -> Iterator[Flaw]:
    """The flaws that a conversion of a pair can have."""
    is_from_text = source.kind == "text" and target.kind == "float"
    if is_from_text or (source.kind == "float" and source.entry.zero == "signed"):
        yield "flushes-subnormals"
    if source.kind == "float" and target.kind == "integer":
        yield "clamps-in-the-source-dtype"
    if target.kind == "float" and target.bits <= 8 and target.max_code + 1 < target.sign_bit:
        yield "clamps-before-rounding"
    is_wide = target.lowest_exponent <= WRAPPED_FROM
    if source.kind == target.kind == "float" and target.nan_codes and not is_wide:
        yield "wraps-the-shift"
    if source.kind == "integer" and not source.is_signed and target.kind == "float":
        yield "halves-large-integers"
    if source.kind == target.kind == "float" and _lost_digits(source, target) > 0:
        yield "rounds-subnormals-twice"
    if target.is_signed:
        yield "wrong-sign"


def _lost_digits(source: Format, target: Format) -> int:
    """How many digits of a float's fraction the target lacks; 0 without subnormals to lose."""
    return source.entry.mantissa - target.entry.mantissa if target.entry.mantissa else 0


def _closed_forms(source: Format, target: Format) -> Iterator[ClosedForm]:
    """Yield the behaviors of a pair; for a text source, only those that give a constant."""
    if source.kind == "text":
        forms = (ClosedForm(name) for name in behaviors())
        like = format_named("float64")
        yield from (
            form
            for form in forms
            if form.is_constant and applies_to(behaviors()[form.behavior], like, target)
        )
    elif has_behaviors(source, target):
        for name, behavior in behaviors().items():
            # ``RoundsTwice`` says more than a form that rounds to another float first.
            is_double = any(isinstance(step, Via) for step in behavior.steps)
            if applies_to(behavior, source, target) and not is_double:
                yield ClosedForm(name)


def other_case(mechanism: Mechanism, case: Case) -> Case | None:
    """The case whose rules a mechanism follows instead; None if it follows no other case."""
    # A worked example belongs to one case; the other case has no example of that name.
    case = replace(case, example=None)
    match mechanism:
        case RoundsTwice(through):
            return replace(case, source=through)
        case OtherMode(parameter, value):
            modes = tuple((name, value if name == parameter else old) for name, old in case.modes)
            return replace(case, modes=modes)
        case OtherVersion(_, version):
            return replace(case, version=version)
        case TakenFor(other=pair):
            return case_between(case, *pair)
    return None


def case_between(case: Case, source: str, target: str) -> Case | None:
    """The case of another pair in the same mode, as far as it has these parameters, or None."""
    modes = _modes_between(case.document, case.version).get((source, target), ())
    same = (
        each for each in modes if all(case.mode.get(key, value) == value for key, value in each)
    )
    found = next(same, None)
    return None if found is None else replace(case, source=source, target=target, modes=found)


@cache
def _modes_between(document: str, version: str) -> Mapping[tuple[str, str], list[Modes]]:
    """The modes of each pair of a version."""
    found: dict[tuple[str, str], list[Modes]] = {}
    for each in edition(document_named(document), version).cases():
        if each.example is None:
            found.setdefault((each.source, each.target), []).append(each.modes)
    return found
