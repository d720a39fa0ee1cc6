"""Codecs in Python: correct ones that take numbers or arrays, and some with a fault."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def e4m3fn(x: float) -> int:
    """Encode one number."""
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    magnitude = abs(x)
    if math.isnan(x):
        return sign | 0x7F
    if magnitude > 448:
        return sign | 0x7E
    exponent = max(math.frexp(magnitude)[1] - 1, -6) if magnitude else -6
    multiple = round(math.ldexp(magnitude, 3 - exponent))
    return sign | min(multiple + ((exponent + 6) << 3), 0x7E)


def raises_on_infinity(x: float) -> int:
    """Encode one number; raise OverflowError for infinity, which has no floor."""
    return e4m3fn(x) if math.isnan(x) or math.floor(x) is not None else 0


def e4m3fn_of_bits(pattern: int) -> int:
    """Encode the float32 that has this pattern."""
    return e4m3fn(float(np.uint32(pattern).view(np.float32)))


def e5m2(x: Array) -> Array:
    """Encode an array: the high byte of float16, which is e5m2, rounded to nearest even."""
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).view(np.uint16).astype(np.uint32)
    rounded = (half + 0x7F + (half >> 8 & 1)) >> 8
    return np.where(np.isnan(x), half >> 8 | 2, rounded).astype(np.uint8)


def bf16(x: Array) -> Array:
    """Encode an array as bfloat16, and lose NaNs whose payload is in the low bits."""
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF).astype(np.uint16)


def from_e5m2(codes: Array) -> Array:
    """Decode an array."""
    return (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float32)


def from_e2m1_without_subnormals(code: int) -> float:
    """Decode one code; 0.5 becomes 0."""
    value = [0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code & 7]
    return -value if code & 8 else value


def text_of(x: float) -> str:
    """Return a hex text instead of a code."""
    return hex(int(e4m3fn(x)))


def always_zero(x: float) -> int:
    """Return the code 0 for every number."""
    return 0


def ends_its_process(x: float) -> int:
    """Encode one number, but exit the process at 3."""
    if x == 3:
        raise SystemExit(9)
    return e4m3fn(x)
