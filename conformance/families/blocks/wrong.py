"""The type of a row in the tables of blocks' mechanisms, and rounding to narrower floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from oracles.protocol import Bits, Floats

Judged = TypeVar("Judged")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Wrong(Generic[Judged, Made]):
    """A mechanism: its name, the sentence of a finding, and the function that makes its answers."""

    name: str
    says: str
    answers: Callable[[Judged], Made]


def rounded_to(dtype: str, numbers: Floats) -> Floats:
    """Round numbers to float32, and then to ``bfloat16`` or ``float16`` if that is the dtype.

    The result is float64.
    """
    narrow = numbers.astype(np.float32)
    match dtype:
        case "float16":
            return narrow.astype(np.float16).astype(np.float64)
        case "bfloat16":
            bits = narrow.view(np.uint32)
            odd = bits >> np.uint32(16) & np.uint32(1)
            bits = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
            return bits.view(np.float32).astype(np.float64)
    return narrow.astype(np.float64)


def patterns_of(dtype: str, numbers: Floats) -> Bits:
    """Return the patterns of numbers rounded to float32, ``bfloat16`` or ``float16``."""
    rounded = rounded_to(dtype, numbers).astype(np.float32)
    if dtype == "float16":
        return rounded.astype(np.float16).view(np.uint16)
    bits = rounded.view(np.uint32)
    return (bits >> np.uint32(16)).astype(np.uint16) if dtype == "bfloat16" else bits
