"""Rows of backends that do the arithmetic of a conversion wrongly, on patterns or at the ends.

They round the exponent bits alone, move bits as if every number were normal, lose subnormal numbers
or the sign of a zero, clamp at another place, or let a NaN or a shift overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from oracles.protocol import Mask
from reports.behaviors.regions import evaluate
from reports.findings import bit_arithmetic
from reports.findings.bit_arithmetic import is_negative, moved_bits
from reports.findings.rule_wrongs import BETWEEN, converted
from reports.findings.wrong import (
    REFERENCE,
    CaseFormats,
    GivenAnswers,
    Patterns,
    RowAnswers,
    Wrong,
    computing,
    everywhere,
    following,
    if_answered,
    right,
    without_example,
)
from specs.behaviors import behaviors
from specs.formats import Format, format_named
from specs.pair_conditions import is_exact

SINGLE = format_named("float32")
FRACTIONS = ("float", "text")
"""The kinds of sources that have negative numbers which round to zero."""


def exponent_bits(how: str, says: str) -> Wrong:
    """Return the row for backends that round to float8e8m0 by the exponent bits of a float32.

    ``how`` is a mode of ``rounded_exponents``; if it is empty, the case's ``round_mode`` is used.
    ``says`` is the sentence of the row.
    """

    def exponents(given: GivenAnswers) -> Patterns | None:
        patterns, mode = converted(given.case, "float32", given.inputs), given.case.mode
        if patterns is None:
            return None
        word, saturates = how or mode.get("round_mode", ""), mode.get("saturate") == "1"
        return bit_arithmetic.rounded_exponents(patterns, word, saturates)

    def answers(given: GivenAnswers) -> RowAnswers | None:
        found, source = exponents(given), given.source
        if found is None:
            return None
        defined = found <= given.target.mask
        if how and source.kind == "float" and source.entry.infinity:
            # Which way it rounds says nothing about infinity.
            defined = defined & (given.inputs != source.infinity_code)
        return RowAnswers(found.astype(given.target.storage), defined)

    def matches(given: GivenAnswers, level: str) -> Mask | None:
        found = exponents(given)
        return None if found is None else found == given.answers

    return Wrong(
        "-".join(filter(None, ("exponent-bits", how))),
        says,
        answers,
        lambda asked: asked.target.name == "float8e8m0",
        matches,
        alike="exponent-bits",
    )


EXPONENT_BITS = tuple(
    exponent_bits(how, f"rounds {words}")
    for how, words in {
        "": "by the exponent bits, also those of zero, subnormals and infinity",
        "half-even": "to nearest by the exponent bits, ties to even, whatever the mode",
        "half-up": "to nearest by the exponent bits, ties up, whatever the mode",
    }.items()
)


def _is_small(dtype: Format) -> bool:
    """Whether a format is bfloat16 or a float of at most 8 bits; some backends move their bits."""
    return dtype.kind == "float" and (dtype.bits <= 8 or dtype.name == "bfloat16")


def _moves_bits(asked: CaseFormats) -> bool:
    is_to_small = _is_small(asked.target) and asked.target.entry.mantissa > 0
    return _is_small(asked.source) or is_to_small


def _moved_to_float32(given: GivenAnswers) -> Patterns | None:
    if _is_small(given.source):
        return moved_bits(given.source, SINGLE, given.inputs)
    return _as_float32(given)


def _as_float32(given: GivenAnswers) -> Patterns | None:
    """Return the inputs as float32; None if the document does not define that, or refuses some.

    NaNs of a format like IEEE's are converted as ``nan_as_float32`` does.
    """
    source, patterns = given.source, converted(given.case, "float32", given.inputs)
    if patterns is not None and source.name != "float32" and source.entry.nan == "ieee":
        patterns = patterns.copy()
        patterns[given.nans] = bit_arithmetic.nan_as_float32(source, given.inputs[given.nans])
    return patterns


FROM_FLOAT32 = following(
    "moves-bits",
    "converts small floats by moving their bits, through float32, zeros, subnormal numbers,"
    " infinities, NaNs and what is out of range as if they were normal",
    lambda case: replace(case, source="float32", example=None),
    _moved_to_float32,
)
"""The row that ``_bits_moved`` uses for targets that are not small."""


def _matches_moved_bits(given: GivenAnswers, level: str) -> Mask | None:
    if not _is_small(given.target):
        return FROM_FLOAT32.explains(given, level)
    found = _bits_moved.answers(given)
    return None if found is None else found.codes == given.answers


@computing(
    FROM_FLOAT32.name,
    FROM_FLOAT32.says,
    _moves_bits,
    matches=_matches_moved_bits,
    says_in_part="converts small floats by moving their bits, through float32, as if they were"
    " normal",
)
def _bits_moved(given: GivenAnswers) -> RowAnswers | None:
    """Move the bits of a small source to float32, and those of float32 to a small target.

    Return None if the document does not define a conversion to or from float32 that this needs.
    """
    if not _is_small(given.target):
        return FROM_FLOAT32.answers(given)
    patterns = _moved_to_float32(given)
    if patterns is None:
        return None
    return RowAnswers(moved_bits(SINGLE, given.target, patterns), everywhere(given))


def _may_flush(asked: CaseFormats) -> bool:
    if asked.source.kind == "text":
        return asked.target.kind == "float"
    return asked.source.kind == "float" and asked.source.entry.zero == "signed"


@computing("flushes-subnormals", "flushes subnormal inputs and results to zero", _may_flush)
@if_answered
def _subnormals_flushed(given: GivenAnswers) -> RowAnswers:
    source, target, inputs = given.source, given.target, given.inputs
    if source.kind == "text":
        return RowAnswers(*bit_arithmetic.flushed(target, REFERENCE.cast(given.case, inputs)))
    affected = bit_arithmetic.subnormals(source, target, inputs)
    zeros = inputs & np.dtype(source.storage).type(source.sign_bit)
    codes, answered = right(given.case, np.where(affected, zeros, inputs))
    return RowAnswers(codes, affected & answered)


def _subnormals_read_as_normal(given: GivenAnswers) -> Patterns | None:
    """Return the inputs as float32, with an implicit one in front of subnormal mantissas."""
    source, inputs = given.source, given.inputs
    step = inputs.dtype.type(1 << source.entry.mantissa)
    magnitudes = inputs & inputs.dtype.type(source.mask ^ source.sign_bit)
    affected = (magnitudes != 0) & (magnitudes < step)
    # A field of 1 has the same exponent, but is normal. Halved, it is what a field of 0 would be.
    patterns = converted(given.case, SINGLE.name, np.where(affected, inputs | step, inputs))
    if patterns is None:
        return None
    return np.where(affected, patterns - patterns.dtype.type(1 << 23), patterns)


_subnormals_as_normal = following(
    "subnormals-as-normal",
    "reads subnormal inputs as if they were normal",
    lambda case: replace(case, source=SINGLE.name, example=None),
    _subnormals_read_as_normal,
    applies=lambda asked: (
        asked.source.kind == "float"
        and asked.source.entry.zero == "signed"
        and asked.source.entry.mantissa > 0
        and asked.source.entry.bias < SINGLE.entry.bias
    ),
)


@computing(
    "clamps-in-the-source-dtype",
    "clamps to the target's range in the source dtype, where the ends of that range are rounded",
    lambda asked: asked.source.kind == "float" and asked.target.kind == "integer",
)
def _clamped_in_source(given: GivenAnswers) -> RowAnswers:
    codes, affected = bit_arithmetic.clamped_in_source(given.source, given.target, given.inputs)
    return RowAnswers(codes, affected & ~given.nans)


def _may_clamp_first(asked: CaseFormats) -> bool:
    target = asked.target
    return target.kind == "float" and target.bits <= 8 and target.max_code + 1 < target.sign_bit


@computing(
    "clamps-before-rounding",
    "clamps to the largest value before it rounds: NaN too, but not what then rounds up to the next"
    " pattern",
    _may_clamp_first,
)
def _clamped_first(given: GivenAnswers) -> RowAnswers | None:
    patterns = _as_float32(given)
    if patterns is None:
        return None
    return RowAnswers(*bit_arithmetic.clamped_first(given.target, patterns))


WRAPPED_FROM = -64
"""Only targets with a larger lowest exponent are tried: float32 must reach 2^64 below it."""


@computing(
    "wraps-the-shift",
    "makes subnormal numbers by a shift modulo 64, so that values 2^64 below them do not become"
    " zero",
    lambda asked: (
        asked.is_between_floats
        and bool(asked.target.nan_codes)
        and asked.target.lowest_exponent > WRAPPED_FROM
    ),
)
def _shift_wrapped(given: GivenAnswers) -> RowAnswers | None:
    patterns = _as_float32(given)
    if patterns is None:
        return None
    scaled, affected = bit_arithmetic.with_wrapped_shifts(given.target, patterns)
    return RowAnswers(bit_arithmetic.nearest(SINGLE, given.target, scaled), affected)


@computing(
    "halves-large-integers",
    "halves unsigned integers beyond the signed range before it converts them, and loses their"
    " lowest bit",
    lambda asked: (
        asked.source.kind == "integer"
        and not asked.source.is_signed
        and asked.target.kind == "float"
    ),
)
@if_answered
def _halved_first(given: GivenAnswers) -> RowAnswers:
    storage = given.inputs.dtype.type
    halves, answered = right(without_example(given.case), given.inputs >> storage(1))
    is_large = given.inputs > storage(given.source.mask >> 1)
    return RowAnswers(bit_arithmetic.doubled(given.target, halves), is_large & answered)


@computing(
    "rounds-subnormals-twice",
    "rounds subnormal results twice: first to as many digits as normal ones have",
    lambda asked: asked.is_between_floats and asked.lost_digits > 0,
)
@if_answered
def _subnormals_rounded_twice(given: GivenAnswers) -> RowAnswers:
    source, target = given.source, given.target
    first, affected = bit_arithmetic.rounded_as_normal(source, target, given.inputs)
    codes, answered = right(without_example(given.case), first)
    return RowAnswers(codes, affected & answered)


@computing(
    "rounds-nans",
    "rounds NaNs as if they were numbers, so that a carry makes infinities or zeros of them",
    lambda asked: (
        asked.is_between_floats
        and asked.source.entry.nan == asked.target.entry.nan == "ieee"
        and asked.lost_digits > 0
    ),
)
def _nans_rounded(given: GivenAnswers) -> RowAnswers:
    codes = bit_arithmetic.rounded_nans(given.source, given.target, given.inputs)
    return RowAnswers(codes, given.nans)


@computing(
    "makes-negative-zeros-nan",
    "gives the sign alone for negative inputs that become zero, which is a NaN",
    lambda asked: asked.target.entry.nan == "negative-zero" and asked.source.kind in FRACTIONS,
)
@if_answered
def _negative_zeros(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    concerned = answered & (codes == 0) & is_negative(given.source, given.inputs)
    return RowAnswers(np.full_like(codes, given.target.sign_bit), concerned)


@computing(
    "reads-minus-zero-as-zero",
    "gives 0 for texts of -0",
    lambda asked: asked.source.kind == "text" and asked.target.entry.zero == "signed",
)
@if_answered
def _texts_of_minus_zero(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    return RowAnswers(np.zeros_like(codes), answered & (codes == given.target.sign_bit))


@computing(
    "clamps-to-the-signed-range",
    "clamps unsigned integers to the largest signed one of the same width",
    lambda asked: (
        asked.source.kind == "float"
        and asked.target.kind == "integer"
        and not asked.target.is_signed
    ),
)
@if_answered
def _clamped_as_signed(given: GivenAnswers) -> RowAnswers:
    codes, answered = right(given.case, given.inputs)
    largest = given.target.mask >> 1
    return RowAnswers(np.full_like(codes, largest), answered & (codes > largest) & ~given.nans)


@cache
def _computed_in(dtype: str) -> Wrong:
    """Return the row for backends that convert integers to a float, compute, and convert back."""

    @computing(f"through-{dtype}", f"computes in {dtype}")
    def row(given: GivenAnswers) -> RowAnswers:
        between = format_named(dtype)
        floats = bit_arithmetic.nearest(given.source, between, given.inputs)
        return RowAnswers(*evaluate(behaviors()["saturate"], between, given.target, floats))

    return row


def integers_through_floats(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield the rows of integers that are converted to a float and back.

    Documents need not list the conversion back, so that no row which follows rules has it. A float
    that has every value of the target only clamps, for which there is another row.
    """
    if asked.source.is_integral and asked.target.is_integral:
        for dtype in BETWEEN:
            if not is_exact(asked.target, format_named(dtype)):
                yield _computed_in(dtype)


ARITHMETIC_WRONGS = (
    _nans_rounded,
    _bits_moved,
    _subnormals_flushed,
    _subnormals_as_normal,
    _clamped_in_source,
    _clamped_as_signed,
    _clamped_first,
    _shift_wrapped,
    _halved_first,
    _subnormals_rounded_twice,
    _negative_zeros,
    _texts_of_minus_zero,
)
"""The rows but for those of ``EXPONENT_BITS``, which are tried before."""
