"""Faults written as plain arithmetic on patterns, each planted in several pairs and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specs.cases import Case
from specs.formats import Format, format_named
from tests.reports.judged_run import RIGHT, Answer, through, with_mode, with_version

LIKE = ("onnx-cast:25", "onnx-cast:24", "onnx-cast-like:25")
ALL = (*LIKE, "stablehlo-convert:1.20")
OLD = ("onnx-cast:23", "onnx-cast:21", "onnx-cast-like:23")


@dataclass(frozen=True)
class Spread:
    """A fault with the pairs and modes that have it, as ends of ids, and the documents.

    The first document is the one of the selections of one document.
    """

    answer: Answer
    pairs: tuple[str, ...]
    documents: tuple[str, ...] = ALL

    def selections(self) -> Iterator[list[str]]:
        """Yield the beginnings of ids of the whole, of one document, and of each of its pairs."""
        document = self.documents[0]
        yield [f"{each}/{pair}/" for each in self.documents for pair in self.pairs]
        yield [f"{document}/{pair}/" for pair in self.pairs]
        yield from ([f"{document}/{pair}/"] for pair in self.pairs)


Where = Callable[[Format, Any], Any]


def at(where: Where, gives: Callable[[Format], int], keeps_sign: bool = False) -> Answer:
    """Right answers, but ``gives`` for the inputs that ``where`` selects."""

    def cast(case: Case, bits: Any) -> Any:
        target = format_named(case.target)
        right = RIGHT.cast(case, bits)
        code = right.dtype.type(gives(target))
        if keeps_sign:
            code = code | (right & right.dtype.type(target.sign_bit))
        return np.where(where(format_named(case.source), bits), code, right).astype(right.dtype)

    return cast


def values(form: Format, bits: Any) -> Any:
    """The numbers of patterns as float64; large integers are rounded."""
    if form.kind == "integer":
        numbers = bits.astype(np.float64)
        if form.is_signed:
            half = float(1 << form.bits - 1)
            return np.where(numbers >= half, numbers - 2 * half, numbers)
        return numbers
    wide = Case("onnx-cast", "25", form.name, "float64")
    return (
        bits.view(np.float64) if form.name == "float64" else RIGHT.cast(wide, bits).view(np.float64)
    )


def magnitude(form: Format, bits: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.abs(values(form, bits))


def is_nan(form: Format, bits: Any) -> Any:
    return np.isnan(values(form, bits))


def is_infinite(form: Format, bits: Any) -> Any:
    return np.isinf(values(form, bits))


def is_zero(form: Format, bits: Any) -> Any:
    return magnitude(form, bits) == 0


def is_minus_zero(form: Format, bits: Any) -> Any:
    return is_zero(form, bits) & np.signbit(values(form, bits))


def is_subnormal(form: Format, bits: Any) -> Any:
    size = magnitude(form, bits)
    return (size > 0) & (size < 2.0**form.lowest_exponent)


def zero(target: Format) -> int:
    return 0


def nan(target: Format) -> int:
    return int(target.nan_codes[0][-1])


def largest(target: Format) -> int:
    return target.max_code


def subnormal_results(case: Case, bits: Any) -> Any:
    """Zero for each result below the smallest normal number."""
    target = format_named(case.target)
    right = RIGHT.cast(case, bits)
    sign = right & right.dtype.type(target.sign_bit)
    return np.where((right ^ sign) < 1 << target.entry.mantissa, sign, right).astype(right.dtype)


def cut_off(case: Case, bits: Any) -> Any:
    """A finite number is rounded toward zero, by taking the neighbor of a result beyond it."""
    source, target = format_named(case.source), format_named(case.target)
    right = RIGHT.cast(case, bits)
    with np.errstate(invalid="ignore"):
        is_beyond = magnitude(target, right) > magnitude(source, bits)
    return np.where(is_beyond, right - right.dtype.type(1), right).astype(right.dtype)


def halves_away(case: Case, bits: Any) -> Any:
    """A tie goes away from zero: the next pattern above it in magnitude is rounded instead."""
    source, target = format_named(case.source), format_named(case.target)
    size = magnitude(source, bits)
    above = (bits + bits.dtype.type(1)).astype(bits.dtype)
    next_above = RIGHT.cast(case, above)
    right = RIGHT.cast(case, bits)
    # A number is a tie if it lies in the middle between its result and that of its neighbor.
    with np.errstate(invalid="ignore"):
        middle = (magnitude(target, right) + magnitude(target, next_above)) / 2
        tie = np.isfinite(size) & (middle == size) & (next_above == right + right.dtype.type(1))
    return np.where(tie, next_above, right).astype(right.dtype)


def numbers_through(dtype: str) -> Answer:
    """Numbers are converted to another dtype first, NaNs are not."""

    def cast(case: Case, bits: Any) -> Any:
        nans = is_nan(format_named(case.source), bits)
        right = RIGHT.cast(case, bits)
        return np.where(nans, right, through(dtype)(case, bits)).astype(right.dtype)

    return cast


def clears(count: int) -> Answer:
    """The lowest bits of numbers are cleared before the cast."""

    def cast(case: Case, bits: Any) -> Any:
        cleared = bits & ~bits.dtype.type((1 << count) - 1)
        numbers = ~is_nan(format_named(case.source), bits)
        return RIGHT.cast(case, np.where(numbers, cleared, bits).astype(bits.dtype))

    return cast


def as_source(change: Callable[[str], str]) -> Answer:
    """The input's dtype is taken for another one of the same width."""

    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(replace(case, source=change(case.source)), bits)

    return cast


def swapped(case: Case, bits: Any) -> Any:
    return np.asarray(RIGHT.cast(case, bits).byteswap())


def clamps_integers(case: Case, bits: Any) -> Any:
    """Integers out of range become the nearest end of the range, and do not wrap."""
    source, target = format_named(case.source), format_named(case.target)
    low = -(1 << target.bits - 1) if target.is_signed else 0
    high = (1 << target.bits - target.is_signed) - 1
    clipped = np.clip(values(source, bits), low, high).astype(np.int64)
    return np.asarray(clipped).astype(target.storage).reshape(bits.shape)


def rounds_to_integers(case: Case, bits: Any) -> Any:
    """A float in the range of an integer is rounded to nearest, and not truncated."""
    source, target = format_named(case.source), format_named(case.target)
    rounded = np.rint(values(source, bits))
    limit = float(1 << target.bits - 1)
    with np.errstate(invalid="ignore"):
        inside = (rounded >= -limit) & (rounded < limit)
    rounded = np.where(inside, rounded, 0).astype(np.int64).astype(target.storage)
    return np.where(inside, rounded, RIGHT.cast(case, bits)).astype(target.storage)


def nan_added(case: Case, bits: Any) -> Any:
    """A NaN is rounded to nearest by an addition to its pattern, as a number is."""
    source, target = format_named(case.source), format_named(case.target)
    lost = source.entry.mantissa - target.entry.mantissa
    wide = bits.astype(np.uint64)
    odd = wide >> np.uint64(lost) & np.uint64(1)
    rounded = wide + np.uint64((1 << lost - 1) - 1) + odd >> np.uint64(lost)
    right = RIGHT.cast(case, bits)
    return np.where(is_nan(source, bits), rounded.astype(right.dtype), right).astype(right.dtype)


def pairs(sources: str, targets: str, mode: str = "") -> tuple[str, ...]:
    return tuple(
        f"{source}/{target}{mode}" for source in sources.split() for target in targets.split()
    )


def beyond_61440(form: Format, bits: Any) -> Any:
    size = magnitude(form, bits)
    return (size >= 61440) & (size < 65536)


SPREAD: dict[str, Spread] = {
    "carry-is-nan": Spread(
        at(beyond_61440, nan, keeps_sign=True),
        pairs("float16 float32 bfloat16 uint16 int32", "float8e5m2", "/saturate:0"),
        LIKE,
    ),
    "subnormal-inputs-flushed": Spread(
        at(is_subnormal, zero, keeps_sign=True), pairs("float16 bfloat16 float8e5m2", "float32")
    ),
    "subnormal-results-flushed": Spread(
        subnormal_results, pairs("float32", "float16 bfloat16")
    ),
    "truncates": Spread(cut_off, pairs("float32", "bfloat16 float16")),
    "twice-through-float16": Spread(
        numbers_through("float16"),
        ("float32/float8e5m2/saturate:1", "float32/float8e4m3fn/saturate:1"),
        LIKE,
    ),
    "halves-away": Spread(halves_away, pairs("float32", "bfloat16 float16")),
    "saturate-ignored": Spread(
        with_mode("saturate", "1"),
        pairs("float16 float32 bfloat16", "float8e4m3fn float8e5m2", "/saturate:0"),
        LIKE,
    ),
    "nan-is-zero": Spread(at(is_nan, zero), pairs("float32 bfloat16", "float16 float64")),
    "minus-zero-lost": Spread(
        at(is_minus_zero, zero), pairs("float32 float64 bfloat16", "float16")
    ),
    "infinity-clamped": Spread(
        at(is_infinite, largest, keeps_sign=True), pairs("float32 float16", "bfloat16 float64")
    ),
    "unsigned-as-signed": Spread(
        as_source(lambda name: name.removeprefix("u")),
        pairs("uint8 uint16 uint32", "float32 float16"),
    ),
    "signed-as-unsigned": Spread(
        as_source(lambda name: f"u{name}"), pairs("int8 int16 int32", "float32 float64")
    ),
    "through-float32": Spread(through("float32"), pairs("int32 int64 uint64", "float64")),
    "minus-zero-is-true": Spread(
        at(is_minus_zero, lambda _: 1), pairs("float8e5m2 float16 float8e4m3fn", "bool"), ALL
    ),
    "small-is-false": Spread(
        at(lambda form, bits: magnitude(form, bits) < 1, zero),
        pairs("float16 float32 bfloat16", "bool"),
    ),
    "rounds-to-integers": Spread(
        rounds_to_integers, pairs("float16 float32", "int32 int8 int64")
    ),
    "round-mode-ignored": Spread(
        with_mode("round_mode", "up"),
        (*pairs("uint8 float16 float32 int16", "float8e8m0", "/saturate:1/round_mode:down"),
         *pairs("uint8 float16 float32 int16", "float8e8m0", "/saturate:1/round_mode:nearest")),
        LIKE,
    ),
    "newer-rules": Spread(
        with_version("24"),
        pairs("float16 float32 float8e5m2", "float8e4m3fnuz float8e5m2fnuz", "/saturate:1"),
        OLD,
    ),
    "bytes-swapped": Spread(swapped, pairs("int16 float32", "float16 float64 int32")),
    "low-byte-lost": Spread(clears(8), pairs("float32", "bfloat16 float16")),
    "nans-carried": Spread(nan_added, ("float32/bfloat16",)),
    "zero-is-one": Spread(
        at(is_zero, lambda _: 127),
        pairs("uint8 int8 float16 int16", "float8e8m0", "/saturate:1/round_mode:up"),
        LIKE,
    ),
    "clamps-integers": Spread(clamps_integers, pairs("int16 int32 uint16", "int8 uint8")),
}  # fmt: skip
"""The faults by what they do."""
