"""Conversions of floats by arithmetic on their bits, as some backends do them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format, format_named

FRACTION_BITS = 23
"""Of a float32, as are the exponent's bias and the halfway fraction below."""
HALF = 1 << 22


def rounded_exponents(patterns: NDArray[Any], mode: str) -> NDArray[np.uint16]:
    """The exponent bits of float32 patterns, plus one where the fraction bits round up.

    Of negative numbers, which have no such bits, the code is out of range.
    """
    exponents = patterns >> np.uint32(FRACTION_BITS)
    fractions = patterns & np.uint32((1 << FRACTION_BITS) - 1)
    if mode == "half-even":
        rounds_up = fractions + (exponents & np.uint32(1)) > np.uint32(HALF)
    else:
        least = {"up": 1, "down": 1 << FRACTION_BITS}.get(mode, HALF)
        rounds_up = fractions >= np.uint32(least)
    return (exponents + rounds_up).astype(np.uint16)


def moved_bits(source: Format, target: Format, patterns: NDArray[Any]) -> NDArray[Any]:
    """Move sign, exponent and fraction to another format, every number as if it were normal.

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
    """The bias of the exponent; of formats whose NaN is negative zero, one less than it is."""
    return dtype.entry.bias - (dtype.entry.nan == "negative-zero")


def nan_as_float32(source: Format, nans: NDArray[Any]) -> NDArray[np.uint32]:
    """NaNs of a format like IEEE's in float32; those of a wider format become quiet."""
    bits, shift = nans.astype(np.uint64), source.entry.mantissa - FRACTION_BITS
    payload = bits & np.uint64((1 << source.entry.mantissa) - 1)
    if shift > 0:
        payload = payload >> np.uint64(shift) | np.uint64(HALF)
    else:
        payload = payload << np.uint64(-shift)
    sign = np.where(bits & np.uint64(source.sign_bit), np.uint64(1 << 31), np.uint64(0))
    return (sign | np.uint64(format_named("float32").infinity_code) | payload).astype(np.uint32)
