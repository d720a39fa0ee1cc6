"""Faulty backends as people write them: each has one cause, and goes wrong on few of its inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specs.cases import Case
from specs.formats import format_named
from tests.reports.judged_run import RIGHT, Answer, through, with_mode

ONNX = "onnx-cast:25"
TOP = np.uint64(1 << 63)
EXPONENT = re.compile(r"[eE]([+-]?\d+)")


@dataclass(frozen=True)
class Planted:
    """A fault, and the cases that it is planted in, by the beginnings of their ids."""

    answer: Answer
    patterns: tuple[str, ...]


def only(where: Callable[[Case, Any], Any], answer: Answer) -> Answer:
    """Right answers, except that ``answer`` gives those to the inputs that ``where`` selects."""

    def cast(case: Case, bits: Any) -> Any:
        return np.where(where(case, bits), answer(case, bits), RIGHT.cast(case, bits))

    return cast


def with_source(**sources: str) -> Answer:
    """Answers that take the patterns of some dtypes for those of others."""

    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(replace(case, source=sources.get(case.source, case.source)), bits)

    return cast


def magnitudes(case: Case, patterns: Any) -> Any:
    form = format_named(case.target)
    return patterns & patterns.dtype.type(form.mask ^ form.sign_bit)


def gives_a_subnormal(case: Case, bits: Any) -> Any:
    """Whether the right answer in float16 is subnormal or zero."""
    return magnitudes(case, RIGHT.cast(case, bits)) < 0x400


def is_negative(case: Case, bits: Any) -> Any:
    return bits >> bits.dtype.type(format_named(case.source).bits - 1) == 1


def low_payload(case: Case, bits: Any) -> Any:
    """Whether a float32 is a NaN whose upper half is that of an infinity."""
    return (bits & 0x7F800000 == 0x7F800000) & (bits & 0x7F0000 == 0) & (bits & 0xFFFF != 0)


def truncated(case: Case, bits: Any) -> Any:
    """The upper half of a float32."""
    return (bits >> 16).astype(np.uint16)


def to_odd(case: Case, bits: Any) -> Any:
    """The upper half of a float32, with its lowest bit set if the lower half is not zero."""
    odd = truncated(case, bits) | (bits & 0xFFFF != 0).astype(np.uint16)
    is_number = bits & 0x7F800000 != 0x7F800000
    return np.where(is_number, odd, RIGHT.cast(case, bits))


def with_narrow_mask(case: Case, bits: Any) -> Any:
    """Only the lowest byte tells what lies above a tie."""
    is_number = bits & 0x7F800000 != 0x7F800000
    return RIGHT.cast(case, np.where(is_number, bits & 0xFFFF80FF, bits).astype(bits.dtype))


def rounded_as_normal_first(case: Case, bits: Any) -> Any:
    """Round below 2^-14 or 2^-6 to 11 or 4 digits by arithmetic, and then to a subnormal."""
    digits, least = (11, 2.0**-14) if case.target == "float16" else (4, 2.0**-6)
    values = bits.view(np.float32)
    is_small = (np.abs(values) < least) & (values != 0)
    fractions, exponents = np.frexp(np.where(is_small, values, 0).astype(np.float64))
    rounded = np.ldexp(np.rint(fractions * 2.0**digits), exponents - digits).astype(np.float32)
    return RIGHT.cast(case, np.where(is_small, rounded.view(np.uint32), bits))


def without_low_byte(case: Case, bits: Any) -> Any:
    is_number = bits & 0x7F800000 != 0x7F800000
    return RIGHT.cast(case, np.where(is_number, bits & 0xFFFFFF00, bits).astype(bits.dtype))


def begins_with_plus(case: Case, texts: Any) -> Any:
    return np.array([text.startswith("+") for text in texts.flat]).reshape(texts.shape)


def nan(case: Case, bits: Any) -> Any:
    form = format_named(case.target)
    return np.full(bits.shape, form.nan_codes[0][-1], form.storage)


def zeros(case: Case, bits: Any) -> Any:
    return np.zeros(bits.shape, format_named(case.target).storage)


def shifted(case: Case, bits: Any) -> Any:
    """Halve large integers before the cast, and lose the lowest bit."""
    halved = RIGHT.cast(case, bits >> np.uint64(1))
    return halved + halved.dtype.type(1 << format_named(case.target).entry.mantissa)


def nan_as_number(case: Case, bits: Any) -> Any:
    """Answer the two NaNs of float8e4m3fn by 480 and -480 in float32."""
    return np.where(bits & 0x80, np.uint32(0xC3F00000), np.uint32(0x43F00000))


def without_inner_zeros(case: Case, bits: Any) -> Any:
    texts = [re.sub(r"(?<=[1-9])0+(?=[1-9])", "", each) for each in RIGHT.cast(case, bits).flat]
    return np.array(texts, object).reshape(bits.shape)


def exponent_too_large(case: Case, texts: Any) -> Any:
    # A longer number has this exponent as well, but only one input should be wrong.
    powers = [EXPONENT.search(text) if len(text) < 10 else None for text in texts.flat]
    too_large = [each is not None and each[1] == "-324" for each in powers]
    return np.array(too_large).reshape(texts.shape)


def with_no_decimals(case: Case, bits: Any) -> Any:
    values = bits.view(case.source)
    right = RIGHT.cast(case, bits)
    texts = [
        f"{value:.0f}" if np.isfinite(value) else text
        for value, text in zip(values.flat, right.flat, strict=True)
    ]
    return np.array(texts, object).reshape(bits.shape)


def carried(case: Case, bits: Any) -> Any:
    """Round a float32 to bfloat16 by an addition to its pattern, that of a NaN too."""
    odd = bits >> np.uint32(16) & np.uint32(1)
    rounded = bits.astype(np.uint64) + np.uint64(0x7FFF) + odd >> np.uint64(16)
    return np.asarray(rounded, np.uint64).astype(np.uint16)


def becomes_zero(case: Case, bits: Any) -> Any:
    """Whether a negative float becomes zero."""
    return is_negative(case, bits) & (RIGHT.cast(case, bits) == 0)


def signs(case: Case, bits: Any) -> Any:
    form = format_named(case.target)
    return np.full(bits.shape, form.sign_bit, form.storage)


def without_minus_zero(case: Case, texts: Any) -> Any:
    right = RIGHT.cast(case, texts)
    return np.where(right == format_named(case.target).sign_bit, 0, right).astype(right.dtype)


def saturated_as_int8(case: Case, bits: Any) -> Any:
    return np.minimum(RIGHT.cast(case, bits), np.uint8(127))


def is_byte(case: Case, bits: Any) -> Any:
    with np.errstate(invalid="ignore"):
        values = bits.view(np.float16)
        return (values >= 0) & (values < 256)


def by_float8(case: Case, bits: Any) -> Any:
    """Convert by way of float8e4m3fn, in the default mode of that cast."""
    first = replace(case, target="float8e4m3fn", modes=(("saturate", "1"),))
    return RIGHT.cast(replace(case, source="float8e4m3fn"), RIGHT.cast(first, bits))


def rounded_halves(case: Case, bits: Any) -> Any:
    """Whether a float16 rounds to another integer than 0, halves up."""
    return np.asarray((bits & 0x7FFF) >= 0x3800).astype(np.uint8)


def by_int32(case: Case, bits: Any) -> Any:
    """Convert a float16 to int32 as C does on x86-64, also beyond its range, and then back."""
    values = bits.view(np.float16)
    inside = np.isfinite(values)
    whole = np.where(inside, values, 0).astype(np.int64)
    return np.where(inside, whole, -(1 << 31)).astype(np.float32).view(np.uint32)


KERNELS = {"bfloat16": "float16", "float8e5m2": "float8e4m3fn", "uint32": "float32"}
"""Maps dtypes to those of equal width whose kernels a cache keyed by width gives them."""


def by_width(case: Case, bits: Any) -> Any:
    kernel = replace(case, source=KERNELS.get(case.source, case.source))
    return RIGHT.cast(replace(kernel, target=KERNELS.get(case.target, case.target)), bits)


def random(case: Case, bits: Any) -> Any:
    """Pseudorandom patterns that depend on the input."""
    form = format_named(case.target)
    mixed = np.atleast_1d(bits).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(32)) + np.uint64(len(case.id))
    return (mixed >> np.uint64(3) & np.uint64(form.mask)).astype(form.storage).reshape(bits.shape)


PLANTED: dict[str, Planted] = {
    "SubnormalViaFloat32": Planted(
        only(gives_a_subnormal, through("float32")), (f"{ONNX}/float64/float16/",)
    ),
    "SaturatePositiveOnly": Planted(
        only(is_negative, with_mode("saturate", "0")), (f"{ONNX}/float16/float8e5m2/saturate:1/",)
    ),
    "NanCarryIntoInf": Planted(only(low_payload, truncated), (f"{ONNX}/float32/bfloat16/",)),
    "Uint8AsInt8": Planted(
        with_source(uint8="int8"), tuple(f"{ONNX}/uint8/{each}/" for each in ("float32", "int32"))
    ),
    "Int16AsUint16": Planted(
        with_source(int16="uint16"), tuple(f"{ONNX}/int16/{each}/" for each in ("float32", "int32"))
    ),
    "PlusIsNoNumber": Planted(
        only(begins_with_plus, nan),
        tuple(f"{ONNX}/string/{each}/" for each in ("float32", "float16")),
    ),
    "Uint64ShiftedWithoutSticky": Planted(
        only(is_negative, shifted), (f"{ONNX}/uint64/float32/",)
    ),
    "Uint64SignedInFloat16": Planted(with_source(uint64="int64"), (f"{ONNX}/uint64/float16/",)),
    "Mlx4135": Planted(
        only(lambda case, bits: bits & 0x7F == 0x7F, nan_as_number),
        (f"{ONNX}/float8e4m3fn/float32/",),
    ),
    "InnerZeroLost": Planted(without_inner_zeros, (f"{ONNX}/int32/string/",)),
    "ExponentTooLarge": Planted(only(exponent_too_large, zeros), (f"{ONNX}/string/float64/",)),
    "FloatTextIsRounded": Planted(with_no_decimals, (f"{ONNX}/float32/string/",)),
    "CachedByWidth": Planted(
        by_width,
        tuple(
            f"{ONNX}/{each}/"
            for each in ("bfloat16/int8", "int16/bfloat16", "uint32/float64", "float8e5m2/float32",
                         "float8e5m2/bfloat16")
        ),
    ),
    "RoundsToOdd": Planted(to_odd, (f"{ONNX}/float32/bfloat16/",)),
    "StickyByteLost": Planted(
        without_low_byte, tuple(f"{ONNX}/float32/{each}/" for each in ("bfloat16", "float16"))
    ),
    "NarrowStickyMask": Planted(with_narrow_mask, (f"{ONNX}/float32/bfloat16/",)),
    "SubnormalsRoundedAsNormal": Planted(
        rounded_as_normal_first,
        tuple(f"{ONNX}/float32/{each}" for each in ("float16/", "float8e4m3fn/saturate:1")),
    ),
    "NanCarried": Planted(carried, (f"{ONNX}/float32/bfloat16/",)),
    "LastIsZero": Planted(
        only(lambda case, bits: bits == 0xFFFFFFFF, zeros), (f"{ONNX}/float32/float16/",)
    ),
    "NegativeZeroIsNan": Planted(
        only(becomes_zero, signs),
        tuple(
            f"{ONNX}/{each}/saturate:1/"
            for each in ("float16/float8e5m2fnuz", "float32/float8e4m3fnuz")
        ),
    ),
    "MinusZeroText": Planted(without_minus_zero, (f"{ONNX}/string/float32/",)),
    "SaturatedAsInt8": Planted(only(is_byte, saturated_as_int8), (f"{ONNX}/float16/uint8/",)),
    "ByWayOfFloat8": Planted(by_float8, (f"{ONNX}/float16/float4e2m1/",)),
    "ByWayOfInt32": Planted(by_int32, (f"{ONNX}/float16/float32/",)),
    "SmallIsFalse": Planted(rounded_halves, (f"{ONNX}/float16/bool/",)),
    "ByWayOfInt16": Planted(through("int16"), (f"{ONNX}/int32/float32/",)),
    "Random": Planted(
        random,
        (
            f"{ONNX}/float16/uint4/",
            *(
                f"{ONNX}/{source}/{target}/"
                for source in ("int8", "float8e5m2")
                for target in ("float8e4m3fn", "int8", "bool", "float32", "uint4")
            ),
        ),
    ),
}  # fmt: skip
"""The faults, by the names of the backends in which they were first planted."""


def reversed_groups(bits: Any, size: int) -> Any:
    """Reverse each group of ``size`` neighbors."""
    return bits.reshape(-1, size)[:, ::-1].reshape(bits.shape).copy()


def narrower_swapped(case: Case, bits: Any) -> Any:
    """Answer narrower elements in the order of a big-endian machine."""
    right = RIGHT.bitcast(case, bits)
    ratio = format_named(case.source).bits // format_named(case.target).bits
    return reversed_groups(right, ratio) if ratio > 1 else right


def nan_quieted(case: Case, bits: Any) -> Any:
    """Make NaNs of float32 quiet, as some load and store instructions do."""
    is_nan = bits & 0x7FFFFFFF > 0x7F800000
    return RIGHT.bitcast(case, np.where(is_nan, bits | 0x400000, bits).reshape(bits.shape))


def nibbles_swapped(case: Case, bits: Any) -> Any:
    """Swap the two halves of each byte; the last of an odd number of elements swaps with a zero."""
    flat = RIGHT.bitcast(case, bits).reshape(-1)
    if flat.size > 1:
        pairs = np.append(flat, np.zeros(flat.size % 2, flat.dtype)).reshape(-1, 2)
        flat = pairs[:, ::-1].reshape(-1)[: flat.size]
    return flat.reshape(RIGHT.bitcast(case, bits).shape)


def bytes_swapped(case: Case, bits: Any) -> Any:
    return np.asarray(RIGHT.bitcast(case, bits).byteswap())


def bits_inverted(case: Case, bits: Any) -> Any:
    return np.asarray(~RIGHT.bitcast(case, bits))


def empty_keeps_shape(case: Case, bits: Any) -> Any:
    right = RIGHT.bitcast(case, bits)
    return right if bits.size else right.reshape(-1)[:0].reshape(bits.shape)


VIEW = "torch-view:2"
PLANTED_BITCASTS: dict[str, Planted] = {
    "NarrowerSwapped": Planted(
        narrower_swapped, (f"{VIEW}/int32/int16/", f"{VIEW}/int32/int8/", f"{VIEW}/int16/int8/")
    ),
    "BitcastNanQuieted": Planted(nan_quieted, (f"{VIEW}/float32/int32/", f"{VIEW}/float32/int16/")),
    "OddNibbles": Planted(
        nibbles_swapped, ("onnx-bitcast:26/int4/uint4/", "xla-bitcast-convert:2023/int4/uint4/")
    ),
    "BytesSwapped": Planted(bytes_swapped, (f"{VIEW}/int32/float32/", f"{VIEW}/int8/int16/")),
    "BitsInverted": Planted(bits_inverted, (f"{VIEW}/int32/int16/",)),
    "EmptyKeepsShape": Planted(empty_keeps_shape, (f"{VIEW}/int32/int16/", f"{VIEW}/int8/int16/")),
}
"""Faults of bitcasts."""
