"""``count_into`` of ``pattern_counts`` compiled by numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits


def count_into(patterns: Bits, low_bits: int, counts: NDArray[np.uint32]) -> None:
    """Do what ``pattern_counts.count_into`` does, in compiled code."""
    if low_bits:
        kind = patterns.dtype.type
        _count_folded(patterns, kind(low_bits), kind((1 << low_bits) - 1), kind(1), counts)
    else:
        _count(patterns, counts)


@numba.njit(cache=True, nogil=True)
def _count(patterns: Any, counts: Any) -> None:
    for at in range(patterns.size):
        counts[patterns[at]] += 1


@numba.njit(cache=True, nogil=True)
def _count_folded(patterns: Any, low_bits: Any, mask: Any, one: Any, counts: Any) -> None:
    for at in range(patterns.size):
        pattern = patterns[at]
        key = (pattern >> low_bits) << one
        if pattern & mask:
            key |= one
        counts[key] += 1
