"""Arrays in huge pages, whose elements do not compete for the same places of a processor's cache.

The system gives small pages any physical addresses. Those of a megabyte then collide in a cache of
two megabytes, by chance more or less, and a cast takes up to a quarter longer.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

SMALL = 1 << 16
"""Bytes of arrays that are not worth a huge page."""
HUGE_PAGE = 1 << 21
"""Bytes of a huge page."""


def in_huge_pages(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros that begins at a huge page; memory around it is never touched.

    It has a mapping of its own: memory that was freed before may keep its small pages.
    """
    size = count * np.dtype(dtype).itemsize
    if size < SMALL:
        return np.zeros(count, dtype)
    pages = -(-size // HUGE_PAGE) * HUGE_PAGE
    mapping = mmap.mmap(-1, pages + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):
        mapping.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(mapping, np.uint8)
    begin = -memory.ctypes.data % HUGE_PAGE
    return memory[begin : begin + size].view(dtype)
