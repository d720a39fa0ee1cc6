"""How a tensor lies in memory: steps between its elements, and where it begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oracles.protocol import Bits

BOUNDARY = 64
"""Bytes: what the widest vectors, and the frameworks' own memory, are aligned to."""

NATURAL = 16
"""Bytes: what any memory of numpy's is aligned to."""


@dataclass(frozen=True)
class Layout:
    """Strides in elements, and how many elements after a boundary the memory begins."""

    strides: tuple[int, ...]
    offset: int = 0


def placed(values: Bits, layout: Layout) -> Bits:
    """The values in fresh memory, the same along a stride of 0; texts have no layout."""
    size = values.dtype.itemsize
    if values.dtype == object or not values.size:
        return values.copy()
    ends = [(length - 1) * step for length, step in zip(values.shape, layout.strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    span = sum(map(abs, ends)) + 1
    memory = np.zeros((span + layout.offset) * size + BOUNDARY, np.uint8)
    first = -_address(memory) % BOUNDARY + (layout.offset + below) * size
    strides = [step * size for step in layout.strides]
    array: Bits = np.ndarray(values.shape, values.dtype, memory, first, strides)
    array[...] = values
    return array


def layout_of(array: Bits) -> Layout | None:
    """What cannot be had of a fresh array; nothing where the array lies as a fresh one does."""
    size = array.dtype.itemsize
    if array.dtype == object or not array.size:
        return None
    lowest = _address(array) + sum(_below(array))
    if array.flags.c_contiguous and not lowest % NATURAL:
        return None
    if lowest % size or any(stride % size for stride in array.strides):
        return None  # no tensor of the dtype lies so
    return Layout(tuple(stride // size for stride in array.strides), lowest % BOUNDARY // size)


def _below(array: Bits) -> Iterable[int]:
    """How far before the first element the others lie, dimension by dimension."""
    for length, stride in zip(array.shape, array.strides, strict=True):
        yield min(0, (length - 1) * stride)


def _address(array: Bits) -> int:
    """Where the first element is; ``array.ctypes`` tells it too, at several times the cost."""
    address: int = array.__array_interface__["data"][0]
    return address
