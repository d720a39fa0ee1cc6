"""Conversions of floats by arithmetic on their bits, as some backends do them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from reports.behaviors.regions import evaluate, real_format, real_patterns
from specs.behaviors import behaviors
from specs.formats import Format, format_named

FRACTION_BITS = 23
"""Bits of a float32's fraction; the halfway fraction and the exponent below are a float32's too."""
HALF = 1 << 22
LARGEST_EXPONENT = 254
SHIFT_MODULUS = 64
"""On x86-64, the count of a 64-bit shift is taken modulo this."""


def rounded_exponents(patterns: NDArray[Any], mode: str, saturates: bool) -> NDArray[np.uint16]:
    """Return the exponent bits of float32 patterns, plus one where the fraction bits round up.

    ``mode`` is `half-even`, `nearest`, `up`, `down`, or anything else for ties up. In the mode
    `nearest`, a tie rounds up unless the exponent bits are zero. With ``saturates``, the largest
    finite exponent does not round up. Negative patterns keep their sign bit, so their results do
    not fit in 8 bits.
    """
    exponents = patterns >> np.uint32(FRACTION_BITS)
    fractions = patterns & np.uint32((1 << FRACTION_BITS) - 1)
    if mode == "half-even":
        rounds_up = fractions + (exponents & np.uint32(1)) > np.uint32(HALF)
    elif mode == "nearest":
        rounds_up = fractions + (exponents > 0) > np.uint32(HALF)
    else:
        least = {"up": 1, "down": 1 << FRACTION_BITS}.get(mode, HALF)
        rounds_up = fractions >= np.uint32(least)
    if saturates:
        rounds_up &= exponents != LARGEST_EXPONENT
    return (exponents + rounds_up).astype(np.uint16)


def moved_bits(source: Format, target: Format, patterns: NDArray[Any]) -> NDArray[Any]:
    """Move sign, exponent and fraction to another format, as if every number were normal.

    The fraction is rounded to nearest, ties to even. An exponent below zero makes the answer zero;
    one that is too large spills into the sign.
    """
    bits, fraction = patterns.astype(np.uint64), target.entry.mantissa
    narrows = source.entry.mantissa - fraction
    if narrows > 0:
        is_odd = (bits >> np.uint64(narrows)) & np.uint64(1)
        # The carry of a NaN may reach the sign.
        bits = (bits + np.uint64((1 << (narrows - 1)) - 1) + is_odd) & np.uint64(source.mask)
    magnitude = bits & np.uint64(source.mask ^ (source.sign_bit if source.is_signed else 0))
    shift = np.uint64(abs(narrows))
    magnitude = magnitude >> shift if narrows > 0 else magnitude << shift
    exponents = (magnitude >> np.uint64(fraction)).astype(np.int64) + _bias(target) - _bias(source)
    kept = magnitude & np.uint64((1 << fraction) - 1)
    codes = ((exponents << fraction).astype(np.uint64) | kept) & np.uint64(target.mask)
    if source.is_signed and target.is_signed:
        codes |= np.where(bits & np.uint64(source.sign_bit), np.uint64(target.sign_bit), 0)
    return np.where(exponents < 0, 0, codes).astype(target.storage)


def _bias(dtype: Format) -> int:
    return dtype.entry.bias - (dtype.entry.nan == "negative-zero")


def nearest(source: Format, target: Format, patterns: NDArray[Any]) -> NDArray[Any]:
    """Round to nearest, ties to even; too large values become infinity, or NaN without infinity."""
    return evaluate(behaviors()["nearest"], source, target, patterns)[0]


def clamped(source: Format, target: Format, code: int) -> int:
    """Return the target's pattern for a source pattern, rounded to nearest, ties to even.

    A number beyond the range becomes the largest or lowest value.
    """
    pattern = np.array([code], source.storage)
    return int(evaluate(behaviors()["nearest-clamp"], source, target, pattern)[0][0])


def subnormals(source: Format, target: Format, patterns: NDArray[Any]) -> Mask:
    """Mark zeros and numbers that are too small to be normal in the source or a float target."""
    smallest = 1 << source.entry.mantissa
    if target.kind == "float":
        smallest = max(smallest, clamped(target, source, 1 << target.entry.mantissa))
    found: Mask = (patterns & _type(source)(source.mask ^ source.sign_bit)) < smallest
    return found


def rounded_as_normal(
    source: Format, target: Format, patterns: NDArray[Any]
) -> tuple[NDArray[Any], Mask]:
    """Round floats to the digits of the target's normal numbers, ties to even.

    The target must have fewer digits. The results are patterns of the source. The mask has the
    normal inputs below the target's smallest normal number, which are rounded once more there;
    others stay as they are, because rounded up the largest is no pattern of a narrow source.
    """
    dropped = source.entry.mantissa - target.entry.mantissa
    bits = patterns.astype(np.uint64)
    magnitudes = bits & np.uint64(source.mask ^ source.sign_bit)
    is_odd = magnitudes >> np.uint64(dropped) & np.uint64(1)
    halves = np.uint64((1 << (dropped - 1)) - 1)
    rounded = (bits + halves + is_odd) >> np.uint64(dropped) << np.uint64(dropped)
    is_normal = magnitudes >= np.uint64(1 << source.entry.mantissa)
    affected = subnormals(source, target, patterns) & is_normal
    return np.where(affected, rounded, bits).astype(source.storage), affected


def without_middle_bits(
    source: Format, target: Format, kept: int, patterns: NDArray[Any]
) -> NDArray[Any]:
    """Clear the bits below the halfway bit of a normal result, but for the lowest ``kept`` ones."""
    halfway = source.entry.mantissa - target.entry.mantissa - 1
    cleared = (1 << halfway) - (1 << kept)
    kept_bits: NDArray[Any] = patterns & _type(source)(source.mask ^ cleared)
    return kept_bits


def flushed(target: Format, codes: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Flush subnormal results to zeros of the same sign; also return the mask of those affected."""
    sign = _type(target)(target.sign_bit)
    magnitudes = codes & ~sign
    affected = (magnitudes != 0) & (magnitudes < 1 << target.entry.mantissa)
    return np.where(affected, codes & sign, codes), affected


def clamped_in_source(
    source: Format, target: Format, patterns: NDArray[Any]
) -> tuple[NDArray[Any], Mask]:
    """Return, for each float, the target's largest integer, or its lowest if the float is negative.

    Also return the mask of the floats that reach this integer, rounded to their format; it has
    every NaN too.
    """
    sign = _type(source)(source.sign_bit)
    magnitudes, is_negative = patterns & ~sign, (patterns & sign) != 0
    highest, lowest = (
        clamped(target, source, code) & ~int(sign) for code in (target.max_code, target.lowest_code)
    )
    code = _type(target)
    codes = np.where(is_negative, code(target.lowest_code), code(target.max_code))
    return codes, magnitudes >= np.where(is_negative, lowest, highest).astype(source.storage)


def clamped_first(target: Format, patterns: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Round float32 patterns to nearest in the target, and clamp large ones to its largest value.

    Signs stay. Large are magnitudes from the value on that the pattern after the largest would
    have. A NaN has a larger pattern than every number, and so is clamped too. The mask has the
    patterns whose magnitudes are above the target's largest value.
    """
    single = format_named("float32")
    magnitudes = patterns & np.uint32(single.mask ^ single.sign_bit)
    largest, step = moved_bits(
        target, single, np.array([target.max_code, target.max_code + 1], target.storage)
    )
    signs = (patterns >> np.uint32(31)).astype(target.storage) << (target.bits - 1)
    rounded = nearest(single, target, patterns)
    return np.where(magnitudes >= step, target.max_code | signs, rounded), magnitudes > largest


def with_wrapped_shifts(target: Format, patterns: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Raise by 64 the exponents of float32 numbers 2^64 or more below the target's smallest normal.

    A shift of 64 or more bits, taken modulo 64, does this, and treats zeros and subnormals as if
    they were normal. The mask has these numbers. None is so small that the shift wraps twice.
    """
    exponents = (patterns >> np.uint32(FRACTION_BITS) & np.uint32(0xFF)).astype(np.int64)
    shifts = target.lowest_exponent - (exponents - format_named("float32").entry.bias)
    wraps = shifts >= SHIFT_MODULUS
    return patterns + np.where(wraps, np.uint32(SHIFT_MODULUS << FRACTION_BITS), 0), wraps


def negated(target: Format, codes: NDArray[Any]) -> NDArray[Any]:
    """Negate numbers; the lowest integer and a zero without a sign stay as they are."""
    if target.kind == "float":
        sign = _type(target)(target.sign_bit)
        has_sign = (target.entry.zero == "signed") | ((codes & ~sign) != 0)
        return np.where(has_sign, codes ^ sign, codes)
    negative: NDArray[Any] = (~codes + _type(target)(1)) & _type(target)(target.mask)
    return negative


def is_negative(source: Format, inputs: NDArray[Any]) -> Mask:
    """Mark the inputs that have a minus sign; of complex numbers, the real part decides."""
    if source.kind == "text":
        return np.array([text.startswith("-") for text in inputs.tolist()], bool)
    signs = real_patterns(source, inputs) & np.uint64(real_format(source).sign_bit)
    found: Mask = signs != 0
    return found


def doubled(target: Format, codes: NDArray[Any]) -> NDArray[Any]:
    """Double positive normal floats; infinities and NaNs stay as they are."""
    larger = codes + _type(target)(1 << target.entry.mantissa)
    return np.where(codes <= target.max_code, larger, codes)


def rounded_nans(source: Format, target: Format, nans: NDArray[Any]) -> NDArray[Any]:
    """Round NaNs to fewer digits by their patterns, as if they were numbers, ties to even.

    A carry goes from the fraction into the exponent and the sign, and then out of the pattern.
    """
    bits, dropped = nans.astype(np.uint64), source.entry.mantissa - target.entry.mantissa
    payloads = bits & np.uint64((1 << source.entry.mantissa) - 1)
    is_odd = payloads >> np.uint64(dropped) & np.uint64(1)
    rounded = payloads + np.uint64((1 << (dropped - 1)) - 1) + is_odd >> np.uint64(dropped)
    signs = np.where(bits & np.uint64(source.sign_bit), np.uint64(target.sign_bit), np.uint64(0))
    codes = signs + np.uint64(target.infinity_code) + rounded
    return (codes & np.uint64(target.mask)).astype(target.storage)


def _type(dtype: Format) -> Any:
    return np.dtype(dtype.storage).type


def nan_as_float32(source: Format, nans: NDArray[Any]) -> NDArray[np.uint32]:
    """Convert NaNs of a format like IEEE's to float32; those of a wider format become quiet.

    Sign and payload stay, the payload as far as it fits.
    """
    bits, shift = nans.astype(np.uint64), source.entry.mantissa - FRACTION_BITS
    payload = bits & np.uint64((1 << source.entry.mantissa) - 1)
    if shift > 0:
        payload = payload >> np.uint64(shift) | np.uint64(HALF)
    else:
        payload = payload << np.uint64(-shift)
    sign = np.where(bits & np.uint64(source.sign_bit), np.uint64(1 << 31), np.uint64(0))
    return (sign | np.uint64(format_named("float32").infinity_code) | payload).astype(np.uint32)
