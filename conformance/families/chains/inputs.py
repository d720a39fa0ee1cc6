"""The inputs on which a chain of casts may differ from a shorter one.

These are where some step changes its answer. Of the first step they are breakpoints as of a single
cast. A breakpoint of a later step is a value on the way: it is asked by the inputs that become it,
and by their neighbors, which round to it or just do not. Breakpoints of the direct cast show what a
chain keeps that the direct cast loses. Sources of up to 16 bits are asked whole.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.protocol import Bits
from oracles.reference.breakpoints import breakpoints, distinct
from specs.formats import EXHAUSTIVE_BITS, Format, format_named

PER_PAIR = 1500
"""About how many inputs of a wide source are asked for each pair of dtypes on a path."""
SOURCES_KEPT = 64


def chain_inputs(dtypes: tuple[str, ...], most: int = PER_PAIR) -> Bits:
    """The inputs of a path of dtypes, in the order of their patterns."""
    source = format_named(dtypes[0])
    if source.bits <= EXHAUSTIVE_BITS:
        return every_pattern(source)
    return _of_wide_source(dtypes, most)


@lru_cache(SOURCES_KEPT)
def _of_wide_source(dtypes: tuple[str, ...], most: int) -> Bits:
    source = format_named(dtypes[0])
    parts = [_few(source.name, each, most) for each in dict.fromkeys(dtypes[1:])]
    for middle, target in pairwise(dtypes[1:]):
        parts.append(_becoming(source, format_named(middle), target, most))
    inputs = distinct(np.concatenate(parts)).astype(source.storage)
    inputs.flags.writeable = False
    return inputs


def _few(source: str, target: str, most: int) -> NDArray[np.uint64]:
    return few_patterns(source, target, most).astype(np.uint64)


def _becoming(source: Format, middle: Format, target: str, most: int) -> NDArray[np.uint64]:
    """Source patterns at and beside ``middle`` values at which the cast to ``target`` changes."""
    if middle.bits <= EXHAUSTIVE_BITS:
        codes = every_pattern(middle).astype(np.uint64)
    else:
        codes = _few(middle.name, target, most)
    values = codes[codes <= middle.max_code]
    # Each value of the middle dtype has up to a dozen patterns of the source around it.
    room = max(2, most // 12)
    if values.size > room:
        values = values[np.linspace(0, values.size - 1, room).astype(np.intp)]
    return breakpoints(source, middle, values)
