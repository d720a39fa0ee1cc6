"""How tensors lie in memory: strides, alignment, and pages.

Small pages get any physical addresses from the system. Those of a megabyte then collide in a cache
of two megabytes, by chance more or less, and a cast takes up to a quarter longer. The elements of
arrays in huge pages do not compete for the same places of a processor's cache.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BOUNDARY = 64
"""Bytes: the alignment of the widest vectors and of the frameworks' own memory."""

NATURAL = 16
"""Bytes: the alignment of any memory that numpy allocates."""


@dataclass(frozen=True)
class Layout:
    """Strides in elements, and how many elements after a boundary the memory begins."""

    strides: tuple[int, ...]
    offset: int = 0


def with_layout(values: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Copy the values into fresh memory of this layout; texts are copied without a layout.

    Values at the same place in memory must be equal, as along a stride of 0.
    """
    size = values.dtype.itemsize
    if values.dtype == object or not values.size:
        return values.copy()
    ends = [(length - 1) * step for length, step in zip(values.shape, layout.strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    span = sum(map(abs, ends)) + 1
    memory = np.zeros((span + layout.offset) * size + BOUNDARY, np.uint8)
    first = -_address(memory) % BOUNDARY + (layout.offset + below) * size
    strides = [step * size for step in layout.strides]
    array: NDArray[Any] = np.ndarray(values.shape, values.dtype, memory, first, strides)
    array[...] = values
    return array


def copied(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array into fresh memory of the same layout."""
    layout = layout_of(array)
    return array.copy() if layout is None else with_layout(array, layout)


def layout_of(array: NDArray[Any]) -> Layout | None:
    """Return the array's layout, or None if a fresh array of the same shape would lie the same."""
    size = array.dtype.itemsize
    if array.dtype == object or not array.size:
        return None
    lowest = _address(array)
    if array.flags.c_contiguous:
        # In a dimension of one element a stride of 0 has no effect, but a kernel may read it.
        if not lowest % NATURAL and 0 not in array.strides:
            return None
    else:
        lowest += sum(_lowest_offsets(array))
    if lowest % size or any(stride % size for stride in array.strides):
        return None  # misaligned for its own dtype: no framework's tensor can lie like that
    return Layout(tuple(stride // size for stride in array.strides), lowest % BOUNDARY // size)


def storage_offset(array: NDArray[Any]) -> int:
    """Return how many elements after a boundary the array's memory begins."""
    layout = layout_of(array)
    return 0 if layout is None else layout.offset


def _lowest_offsets(array: NDArray[Any]) -> Iterable[int]:
    """Yield, for each dimension, the lowest byte offset from the first element (0 or negative)."""
    for length, stride in zip(array.shape, array.strides, strict=True):
        yield min(0, (length - 1) * stride)


def _address(array: NDArray[Any]) -> int:
    """Return the first element's address, several times as fast as ``array.ctypes`` does."""
    address: int = array.__array_interface__["data"][0]
    return address


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
