"""Rows of backends that do the arithmetic of a conversion wrongly, on patterns or at the ends.

They round the exponent bits alone, move bits as if every number were normal, lose subnormal numbers
or the sign of a zero, clamp at another place, or let a NaN or a shift overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from reports.behaviors.regions import evaluate
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
    flushed,
    following,
    if_answered,
    is_negative,
    magnitudes_of,
    right,
    without_example,
)
from specs.behaviors import behaviors
from specs.formats import Format, format_named, is_exact

SINGLE = format_named("float32")
SINGLE_FRACTION = SINGLE.entry.mantissa
HALF = 1 << (SINGLE_FRACTION - 1)
"""Half a unit of a float32's exponent bits, which its fraction bits follow."""
LARGEST_EXPONENT = 254
"""The exponent bits of the largest finite float32."""
FRACTIONS = ("float", "text")
"""The kinds of sources that have negative numbers which round to zero."""


def exponent_bits(how: str, says: str) -> Wrong:
    """Return the row for backends that round to float8e8m0 by the exponent bits of a float32.

    ``how`` is a mode of ``_rounded_exponents``; if it is empty, the case's ``round_mode`` is used.
    ``says`` is the sentence of the row.
    """

    def exponents(given: GivenAnswers) -> Patterns | None:
        patterns, mode = converted(given.case, "float32", given.inputs), given.case.mode
        if patterns is None:
            return None
        word, saturates = how or mode.get("round_mode", ""), mode.get("saturate") == "1"
        return _rounded_exponents(patterns, word, saturates)

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


def _rounded_exponents(patterns: Patterns, mode: str, saturates: bool) -> Patterns:
    """Return the exponent bits of float32 patterns, plus one where the fraction bits round up.

    ``mode`` is `half-even`, `nearest`, `up`, `down`, or anything else for ties up. In the mode
    `nearest`, a tie rounds up unless the exponent bits are zero. With ``saturates``, the largest
    finite exponent does not round up. Negative patterns keep their sign bit, so their results do
    not fit in 8 bits.
    """
    exponents = patterns >> np.uint32(SINGLE_FRACTION)
    fractions = patterns & np.uint32((1 << SINGLE_FRACTION) - 1)
    if mode == "half-even":
        rounds_up = fractions + (exponents & np.uint32(1)) > np.uint32(HALF)
    elif mode == "nearest":
        rounds_up = fractions + (exponents > 0) > np.uint32(HALF)
    else:
        least = {"up": 1, "down": 1 << SINGLE_FRACTION}.get(mode, HALF)
        rounds_up = fractions >= np.uint32(least)
    if saturates:
        rounds_up &= exponents != LARGEST_EXPONENT
    found: Patterns = (exponents + rounds_up).astype(np.uint16)
    return found


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
        patterns[given.nans] = nan_as_float32(source, given.inputs[given.nans])
    return patterns


def nan_as_float32(source: Format, nans: Patterns) -> NDArray[np.uint32]:
    """Convert NaNs of a format like IEEE's to float32; those of a wider format become quiet.

    Sign and payload stay, the payload as far as it fits.
    """
    bits, shift = nans.astype(np.uint64), source.entry.mantissa - SINGLE_FRACTION
    payload = bits & np.uint64((1 << source.entry.mantissa) - 1)
    if shift > 0:
        payload = payload >> np.uint64(shift) | np.uint64(HALF)
    else:
        payload = payload << np.uint64(-shift)
    sign = np.where(bits & np.uint64(source.sign_bit), np.uint64(1 << 31), np.uint64(0))
    return (sign | np.uint64(SINGLE.infinity_code) | payload).astype(np.uint32)


def moved_bits(source: Format, target: Format, patterns: Patterns) -> Patterns:
    """Move sign, exponent and fraction to another format, as if every number were normal.

    The fraction is rounded to nearest, ties to even. An exponent below zero makes the answer zero;
    one that is too large spills into the sign.
    """
    bits, fraction = patterns.astype(np.uint64), target.entry.mantissa
    narrows = source.entry.mantissa - fraction
    if narrows > 0:
        # The carry of a NaN may reach the sign.
        bits = _rounded_bits(bits, narrows) << np.uint64(narrows) & np.uint64(source.mask)
    magnitude = bits & np.uint64(source.mask ^ source.sign_bit)
    shift = np.uint64(abs(narrows))
    magnitude = magnitude >> shift if narrows > 0 else magnitude << shift
    exponents = (magnitude >> np.uint64(fraction)).astype(np.int64) + _bias(target) - _bias(source)
    kept = magnitude & np.uint64((1 << fraction) - 1)
    codes = ((exponents << fraction).astype(np.uint64) | kept) & np.uint64(target.mask)
    codes |= np.where(bits & np.uint64(source.sign_bit), np.uint64(target.sign_bit), 0)
    return np.where(exponents < 0, 0, codes).astype(target.storage)


def _bias(dtype: Format) -> int:
    return dtype.entry.bias - (dtype.entry.nan == "negative-zero")


def _rounded_bits(bits: NDArray[np.uint64], dropped: int) -> NDArray[np.uint64]:
    """Round patterns by ``dropped`` low bits, which the results lack, to nearest, ties to even."""
    is_odd = bits >> np.uint64(dropped) & np.uint64(1)
    return bits + np.uint64((1 << (dropped - 1)) - 1) + is_odd >> np.uint64(dropped)


def nearest(source: Format, target: Format, patterns: Patterns) -> Patterns:
    """Round to nearest, ties to even; too large values become infinity, or NaN without infinity."""
    return evaluate(behaviors()["nearest"], source, target, patterns)[0]


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
        return flushed(target, REFERENCE.cast(given.case, inputs))
    affected = _subnormals(source, target, inputs)
    zeros = inputs & np.dtype(source.storage).type(source.sign_bit)
    codes, answered = right(given.case, np.where(affected, zeros, inputs))
    return RowAnswers(codes, affected & answered)


def _subnormals(source: Format, target: Format, patterns: Patterns) -> Mask:
    """Mark zeros and numbers that are too small to be normal in the source or a float target."""
    smallest = 1 << source.entry.mantissa
    if target.kind == "float":
        smallest = max(smallest, _clamped(target, source, 1 << target.entry.mantissa))
    found: Mask = magnitudes_of(source, patterns) < smallest
    return found


def _clamped(source: Format, target: Format, code: int) -> int:
    """Return the target's pattern for a source pattern, rounded to nearest, ties to even.

    A number beyond the range becomes the largest or lowest value.
    """
    pattern = np.array([code], source.storage)
    return int(evaluate(behaviors()["nearest-clamp"], source, target, pattern)[0][0])


def _subnormals_read_as_normal(given: GivenAnswers) -> Patterns | None:
    """Return the inputs as float32, with an implicit one in front of subnormal mantissas."""
    source, inputs = given.source, given.inputs
    step = inputs.dtype.type(1 << source.entry.mantissa)
    magnitudes = magnitudes_of(source, inputs)
    affected = (magnitudes != 0) & (magnitudes < step)
    # A field of 1 has the same exponent, but is normal. Halved, it is what a field of 0 would be.
    patterns = converted(given.case, SINGLE.name, np.where(affected, inputs | step, inputs))
    if patterns is None:
        return None
    return np.where(affected, patterns - patterns.dtype.type(1 << SINGLE_FRACTION), patterns)


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
    """Return the largest or lowest integer for the floats that reach it, rounded to a float."""
    source, target = given.source, given.target
    highest, lowest = (
        _clamped(target, source, code) & ~source.sign_bit
        for code in (target.max_code, target.lowest_code)
    )
    negative = is_negative(source, given.inputs)
    codes = np.where(negative, target.lowest_code, target.max_code).astype(target.storage)
    ends = np.where(negative, lowest, highest).astype(source.storage)
    return RowAnswers(codes, (magnitudes_of(source, given.inputs) >= ends) & ~given.nans)


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
    """Round float32 to nearest, and clamp magnitudes from where the next pattern would be.

    A NaN has a larger pattern than every number, and so is clamped too. Signs stay.
    """
    patterns, target = _as_float32(given), given.target
    if patterns is None:
        return None
    ends = np.array([target.max_code, target.max_code + 1], target.storage)
    largest, step = moved_bits(target, SINGLE, ends)
    magnitudes = magnitudes_of(SINGLE, patterns)
    signs = (patterns >> np.uint32(31)).astype(target.storage) << (target.bits - 1)
    rounded = nearest(SINGLE, target, patterns)
    codes = np.where(magnitudes >= step, target.max_code | signs, rounded)
    return RowAnswers(codes, magnitudes > largest)


SHIFT_MODULUS = 64
"""On x86-64, the count of a 64-bit shift is taken modulo this."""
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
    """Raise by 64 the exponents of float32 numbers that a shift of 64 or more bits should scale.

    Zeros and subnormals are treated as if they were normal. None is so small that the shift wraps
    twice.
    """
    patterns, target = _as_float32(given), given.target
    if patterns is None:
        return None
    exponents = (patterns >> np.uint32(SINGLE_FRACTION) & np.uint32(0xFF)).astype(np.int64)
    wraps = target.lowest_exponent - (exponents - SINGLE.entry.bias) >= SHIFT_MODULUS
    raised = patterns + np.where(wraps, np.uint32(SHIFT_MODULUS << SINGLE_FRACTION), 0)
    return RowAnswers(nearest(SINGLE, target, raised), wraps)


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
    doubled = halves + halves.dtype.type(1 << given.target.entry.mantissa)
    codes = np.where(halves <= given.target.max_code, doubled, halves)
    return RowAnswers(codes, is_large & answered)


@computing(
    "rounds-subnormals-twice",
    "rounds subnormal results twice: first to as many digits as normal ones have",
    lambda asked: asked.is_between_floats and asked.lost_digits > 0,
)
@if_answered
def _subnormals_rounded_twice(given: GivenAnswers) -> RowAnswers:
    source, inputs = given.source, given.inputs
    is_normal = magnitudes_of(source, inputs) >= 1 << source.entry.mantissa
    # The others stay as they are: rounded up, the largest is no pattern of a narrow source.
    affected = _subnormals(source, given.target, inputs) & is_normal
    dropped = given.lost_digits
    rounded = _rounded_bits(inputs.astype(np.uint64), dropped) << np.uint64(dropped)
    first = np.where(affected, rounded, inputs).astype(source.storage)
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
    """Round NaNs; a carry goes into the exponent and the sign, and then out of the pattern."""
    source, target = given.source, given.target
    payloads = given.inputs.astype(np.uint64) & np.uint64((1 << source.entry.mantissa) - 1)
    signs = np.where(is_negative(source, given.inputs), np.uint64(target.sign_bit), np.uint64(0))
    rounded = _rounded_bits(payloads, given.lost_digits)
    codes = signs + np.uint64(target.infinity_code) + rounded & np.uint64(target.mask)
    return RowAnswers(codes.astype(target.storage), given.nans)


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
        floats = nearest(given.source, between, given.inputs)
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
