"""Ways in which a backend may find a wrong range when it chooses a scale dynamically."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from oracles.protocol import Bits


class WrongRange(NamedTuple):
    """A way to find the range of a tensor, for a dynamic quantization, that leaves something out.

    ``left`` returns those of the tensor's float32 patterns that decide the range.
    """

    name: str
    says: str
    left: Callable[[Bits], Bits]


def _width_alone(x: Bits) -> Bits:
    """Return the pattern of the largest value less the smallest, which has the same range."""
    values = x.view(np.float32).astype(np.float64)
    return np.array([values.max() - values.min()], np.float32).view(np.uint32)


def _whole_vectors(size: int) -> WrongRange:
    return WrongRange(
        f"range-without-the-rest-of-{size}",
        f"looks for the range in whole vectors of {size} elements only",
        lambda x: x[: x.size - x.size % size],
    )


RANGES: tuple[WrongRange, ...] = (
    WrongRange("range-without-zero", "does not extend the range to zero", _width_alone),
    WrongRange(
        "range-without-the-last", "leaves the last element out of the range", lambda x: x[:-1]
    ),
    *map(_whole_vectors, (64, 32, 16, 8, 4)),
)
"""The wrong ranges that are tried; of two that explain as many scales a finding names the first."""
