"""Convert patterns to numbers and back by numpy and ml_dtypes, without code of the reference."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.truths.questions import Answers, Mask, Patterns, Question
from oracles.adapters.dtype_table import names_in
from specs.formats import Format

Values = NDArray[Any]
"""Numbers as float64, int64 or uint64: each holds every value of some formats exactly."""

ML_DTYPES = names_in("ml")
"""The names of ml_dtypes for the formats that numpy lacks."""


@cache
def dtype_of(fmt: Format) -> np.dtype[Any]:
    """The dtype of numpy or ml_dtypes that stores a format."""
    if fmt.name in ML_DTYPES:
        dtype: np.dtype[Any] = np.dtype(
            getattr(importlib.import_module("ml_dtypes"), ML_DTYPES[fmt.name])
        )
        return dtype
    return np.dtype(fmt.name)


def values_of(fmt: Format, patterns: Patterns) -> Values:
    """Decode patterns: floats to float64, integers to int64 or uint64."""
    if fmt.kind == "float":
        if fmt.bits <= 16:
            return np.asarray(_table(fmt)[patterns])
        with np.errstate(invalid="ignore"):
            return np.asarray(patterns.view(dtype_of(fmt)).astype(np.float64))
    if not fmt.is_signed:
        return patterns.astype(np.uint64)
    unused = np.int64(64 - fmt.bits)
    return (patterns.astype(np.uint64).view(np.int64) << unused) >> unused


@cache
def _table(fmt: Format) -> NDArray[np.float64]:
    """The value of every pattern."""
    patterns = np.arange(1 << fmt.bits, dtype=fmt.storage)
    with np.errstate(invalid="ignore"):
        return np.asarray(patterns.view(dtype_of(fmt)).astype(np.float64))


@cache
def _magnitudes(fmt: Format) -> NDArray[np.float64]:
    """The finite values without a sign, in rising order of their patterns."""
    return _table(fmt)[: fmt.max_code + 1]


def codes_of(fmt: Format, values: NDArray[np.float64]) -> Patterns:
    """Encode values of a float format; raise ValueError if the format lacks one."""
    if fmt.bits > 16:
        narrow = values.astype(dtype_of(fmt))
        if not np.array_equal(narrow.astype(np.float64), values):
            raise ValueError(f"{fmt.name} lacks a value that a truth says it has")
        return narrow.view(fmt.storage)
    known, sizes = _magnitudes(fmt), np.abs(values)
    codes = np.minimum(np.searchsorted(known, sizes), known.size - 1)
    if not np.array_equal(known[codes], sizes):
        raise ValueError(f"{fmt.name} lacks a value that a truth says it has")
    negative = np.signbit(values)
    if fmt.entry.zero == "unsigned":
        negative &= values != 0
    return (codes | np.where(negative, fmt.sign_bit, 0)).astype(fmt.storage)


def ends_of(fmt: Format) -> tuple[float, float]:
    """Return the largest and the lowest value of a float format; an unsigned one's lowest is 0."""
    largest, lowest = values_of(fmt, np.array([fmt.max_code, fmt.lowest_code], fmt.storage))
    return float(largest), float(lowest) if fmt.is_signed else 0.0


def bounded(question: Question, rounded: NDArray[np.float64], infinite: Mask) -> Answers:
    """Encode values that were rounded as if the exponent had no end.

    ``infinite`` selects the infinite inputs. Unknown are NaNs, as numbers do not tell their signs.
    So are infinite inputs where a NaN stands in for infinity, and overflow in formats without
    infinity and NaN. In a format without zero, values are unknown that are not positive or, unless
    values saturate, below the smallest one.
    """
    target = question.target
    largest, lowest = ends_of(target)
    above, below = rounded > largest, rounded < lowest
    known = ~np.isnan(rounded)
    if target.entry.zero == "none":
        smallest = float(_magnitudes(target)[0])
        known &= (rounded > 0) if question.overflow == "saturate" else (rounded >= smallest)
        rounded = np.maximum(rounded, smallest)
    codes = codes_of(target, np.clip(np.where(known, rounded, 1.0), lowest or None, largest))
    if question.overflow == "ieee":
        stays = {"toward-zero": above | below, "floor": above, "ceil": below}.get(
            question.rounding, np.zeros(above.shape, bool)
        )
        for out, sign in ((above, 0), (below, target.sign_bit)):
            leaves = out & (infinite | ~stays)
            if target.entry.infinity:
                codes[leaves] = target.infinity_code | sign
            elif target.nan_codes:
                codes[leaves] = target.nan_codes[0].start
                known &= ~infinite
            else:
                known &= ~leaves
    return Answers(codes, known)


def as_integers(question: Question, rounded: NDArray[np.float64]) -> Answers:
    """Encode whole float64 values as integers; NaNs and infinities that would wrap are unknown."""
    target = question.target
    known = ~np.isnan(rounded)
    if question.overflow == "wrap":
        known &= np.isfinite(rounded)
        low = np.fmod(np.where(known, rounded, 0.0), 2.0**64)
        sizes = np.abs(low).astype(np.uint64)
        codes = np.where(low < 0, np.uint64(0) - sizes, sizes)
        return Answers((codes & np.uint64(target.mask)).astype(target.storage), known)
    top = 2.0 ** (target.bits - target.is_signed)
    bottom = -top if target.is_signed else 0.0
    above, below = rounded >= top, rounded < bottom
    inside = np.where(known & ~above & ~below, rounded, 0.0)
    sizes = np.abs(inside).astype(np.uint64)
    codes = np.where(inside < 0, np.uint64(0) - sizes, sizes) & np.uint64(target.mask)
    codes = np.where(above, np.uint64(target.max_code), codes)
    codes = np.where(below, np.uint64(target.lowest_code), codes)
    return Answers(codes.astype(target.storage), known)


def is_nan(fmt: Format, codes: Patterns) -> Mask:
    """Return a mask of the patterns that are NaNs, by the values of numpy and ml_dtypes."""
    return np.asarray(np.isnan(values_of(fmt, codes)))


def holds_float64(fmt: Format) -> bool:
    """Whether float64 has every value of a format."""
    return fmt.kind == "float" or fmt.bits <= 32
