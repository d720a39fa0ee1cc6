"""Counts the bit patterns of a tensor, chunk by chunk; wide patterns are folded before.

A cast to a narrower float keeps the high bits of a pattern, looks at the next bit, and of all lower
ones only whether one is set. A *key* has just these bits, so that few keys stand for all patterns:
2^14 for float32 to float8e4m3fn. Staircases (``oracles/reference/staircase.py``) rest on the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from specs.formats import EXHAUSTIVE_BITS, Format

MOST_KEY_BITS = 24
"""The bits of the widest keys that are counted in one table."""
MANY = 1 << 24
"""The fewest elements for which loading numba, which takes most of a second, saves time."""
FEW = 16
"""Up to this part of the number of keys, sorting patterns is faster than one counter per key."""
MOST_COUNTED = (1 << 32) - 1
"""The most elements that 32-bit counters count."""

Counts = NDArray[np.uint64]
CountInto = Callable[[Bits, int, NDArray[np.uint32]], None]
"""Takes patterns and how many low bits to fold, and adds to the counter of each key."""


@dataclass(frozen=True)
class BitFolding:
    """How patterns of a source become keys: the low bits that are folded into one, 0 for none."""

    source: Format
    low_bits: int

    @property
    def bits(self) -> int:
        """The number of bits of a key."""
        return self.source.bits - self.low_bits + bool(self.low_bits)

    def keys(self, patterns: Bits) -> Bits:
        """Return the key of each pattern."""
        return folded(patterns, self.low_bits)

    def patterns(self) -> Bits:
        """Return for each key, in their order, a pattern that has it."""
        every = np.arange(1 << self.bits, dtype=self.source.storage)
        if not self.low_bits:
            return every
        one = every.dtype.type(1)
        found: Bits = ((every >> one) << every.dtype.type(self.low_bits)) | (every & one)
        return found


def folding(source: Format, target: Format, can_fold: bool) -> BitFolding | None:
    """Return how to count the patterns of a source by keys; None if there are too many keys.

    Without ``can_fold``, patterns of more than 16 bits have no keys.
    """
    low_bits = 0
    if source.bits > EXHAUSTIVE_BITS and can_fold:
        # One bit stays behind those of the target. A target with smaller numbers would keep more.
        beyond = source.entry.mantissa - target.entry.mantissa - 1
        if beyond > 1 and target.lowest_exponent >= source.lowest_exponent:
            low_bits = beyond
    found = BitFolding(source, low_bits)
    return found if found.bits <= MOST_KEY_BITS else None


def folded(patterns: Bits, low_bits: int) -> Bits:
    """Return patterns whose low bits are replaced by one bit: whether any of them is set."""
    if not low_bits:
        return patterns
    one, shift = patterns.dtype.type(1), patterns.dtype.type(low_bits)
    rest = (patterns & patterns.dtype.type((1 << low_bits) - 1)) != 0
    found: Bits = ((patterns >> shift) << one) | rest
    return found


def count_into(patterns: Bits, low_bits: int, counts: NDArray[np.uint32]) -> None:
    """Add to the counter of each pattern's key; a ``CountInto`` in numpy."""
    keys = folded(patterns, low_bits)
    if keys.size < counts.size // FEW:
        distinct, times = np.unique(keys, return_counts=True)
        counts[distinct] += times.astype(np.uint32)
    else:
        counts += np.bincount(keys, minlength=counts.size).astype(np.uint32)


def fastest_count(elements: int) -> CountInto:
    """Return the function to count some number of elements: numba's, or numpy's.

    It is numpy's where numba is not installed, and for few elements.
    """
    if elements < MANY or find_spec("numba") is None:
        return count_into
    from conformance.extras.checkpoints import pattern_counts_numba

    return pattern_counts_numba.count_into


class Histogram:
    """Counts how often each key occurs in a tensor."""

    def __init__(self, fold: BitFolding, count: CountInto) -> None:
        self._fold, self._count = fold, count
        # Counters of 32 bits are twice as fast as wider ones.
        self._recent = np.zeros(1 << fold.bits, np.uint32)
        self._earlier: Counts | None = None
        self._room = MOST_COUNTED

    def add(self, patterns: Bits) -> None:
        """Add the keys of ``patterns`` to the counts."""
        if patterns.size > self._room:
            self._earlier, self._room = self._every().astype(np.uint64), MOST_COUNTED
            self._recent[:] = 0
        self._count(patterns, self._fold.low_bits, self._recent)
        self._room -= patterns.size

    def counts(self) -> tuple[NDArray[np.intp], Counts]:
        """Return the keys that were added, and how often each was."""
        every = self._every()
        keys = np.flatnonzero(every)
        return keys, every[keys].astype(np.uint64)

    def _every(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._recent if self._earlier is None else self._earlier + self._recent
