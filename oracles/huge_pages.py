"""Arrays in huge pages, whose elements do not compete for the same places of a processor's cache.

The system gives small pages any physical addresses. Those of a megabyte then collide in a cache of
two megabytes, by chance more or less, and a cast takes up to a quarter longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

SMALL = 1 << 16
"""Bytes of arrays that are not worth a huge page."""
HUGE_PAGE = 1 << 21
"""Bytes of a huge page."""
ADVISED = 1 << 22
"""Bytes of an array from which on numpy asks the system for huge pages, where it has them."""


def in_huge_pages(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros that begin where a huge page does; what lies around them is never touched."""
    size = count * np.dtype(dtype).itemsize
    if size < SMALL:
        return np.zeros(count, dtype)
    memory = np.empty(max(size, ADVISED) + HUGE_PAGE, np.uint8)
    begin = -memory.ctypes.data % HUGE_PAGE
    pages = memory[begin : begin + size]
    pages[:] = 0
    return pages.view(dtype)
