"""The inputs of a pair: all of a narrow source; of a wide one breakpoints and random patterns."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.breakpoints import distinct
from conformance.families.cast.quick_inputs import quick_inputs
from lab.truths.questions import Patterns
from specs.formats import EXHAUSTIVE_BITS, Format, value_of

SEED = 0


def inputs_of(source: Format, target: Format, random: int) -> Patterns:
    """Return the inputs of a pair in rising order, ``random`` of them random if it is wide.

    The others are those of the tier quick: every value of the target up to 16 bits and every
    midpoint, with the patterns beside them; of a wider target an even and an odd value of each part
    of each binade. Half of a float's random patterns lie anywhere, half in the target's range;
    half of an integer's lie anywhere, half have a uniformly random number of bits.
    """
    if source.bits <= EXHAUSTIVE_BITS:
        return quick_inputs(source.name, target.name, SEED, 0)
    chance = np.random.default_rng([SEED, crc32(f"{source.name}/{target.name}".encode())])
    anywhere = chance.integers(0, source.mask, random // 2, np.uint64, endpoint=True)
    if source.is_integral:
        shifts = chance.integers(0, source.bits, random - anywhere.size, np.uint64)
        near = chance.integers(0, source.mask, shifts.size, np.uint64, endpoint=True) >> shifts
        if source.is_signed:
            signs = chance.integers(0, 2, near.size, bool)
            near = np.where(signs, (np.uint64(0) - near) & np.uint64(source.mask), near)
    else:
        near = _in_range(source, target, random - anywhere.size, chance)
    listed = quick_inputs(source.name, target.name, SEED, 0).astype(np.uint64)
    return distinct(np.concatenate([listed, anywhere, near])).astype(source.storage)


def _in_range(
    source: Format, target: Format, count: int, chance: np.random.Generator
) -> NDArray[np.uint64]:
    """Patterns from a little below the target's smallest value to a little above its largest."""
    smallest = value_of(target, 1 if target.has_zero else 0)
    bounds = [float(smallest) / 8, min(float(value_of(target, target.max_code)) * 8, 1.7e308)]
    with np.errstate(all="ignore"):
        low, high = np.array(bounds).astype(source.name).view(source.storage).tolist()
    high = min(high, source.infinity_code)
    codes = chance.integers(low, high, count, np.uint64, endpoint=True)
    signs = chance.integers(0, 2, count, np.uint64) << np.uint64(source.bits - 1)
    return np.asarray(codes | signs)
