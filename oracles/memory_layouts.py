"""How tensors lie in memory: strides, alignment, pages, codes of less than a byte, and batches.

Where codes share a byte, the first is in the low bits. A batch has many tensors of one dtype: their
elements one after another, and their shapes.

Arrays in small pages may compete, by chance, for the same places of a processor's cache: then a
cast takes up to a quarter longer. Arrays in huge pages do not.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from specs.formats import Format

BOUNDARY = 64
"""Bytes: the alignment of the widest vectors, and of memory that frameworks allocate."""

NATURAL = 16
"""Bytes: the alignment of any memory that numpy allocates."""


@dataclass(frozen=True)
class Layout:
    """Strides, and how far the lowest element lies after a ``BOUNDARY``; both count elements."""

    strides: tuple[int, ...]
    offset: int = 0


def with_layout(values: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Copy the values into fresh memory of this layout; texts and empty arrays get no layout.

    Elements that share a place in memory, as along a stride of 0, must be equal.
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
    """Copy an array into fresh memory, in the layout that ``layout_of`` finds."""
    layout = layout_of(array)
    return array.copy() if layout is None else with_layout(array, layout)


def layout_of(array: NDArray[Any]) -> Layout | None:
    """Return the array's layout; None if a fresh array of the same shape could have it, too.

    It is also None for texts, for an empty array, and for one that is misaligned for its own dtype.
    """
    size = array.dtype.itemsize
    if array.dtype == object or not array.size:
        return None
    lowest = _address(array)
    if array.flags.c_contiguous:
        # In a dimension of one element a stride of 0 has no effect, but a kernel may read it.
        if not lowest % NATURAL and 0 not in array.strides:
            return None
    else:
        ends = zip(array.shape, array.strides, strict=True)
        lowest += sum(min(0, (length - 1) * stride) for length, stride in ends)
    if lowest % size or any(stride % size for stride in array.strides):
        return None  # misaligned for its own dtype: no framework's tensor can lie like that
    return Layout(tuple(stride // size for stride in array.strides), lowest % BOUNDARY // size)


def storage_offset(array: NDArray[Any]) -> int:
    """Return the offset in the array's layout; 0 where ``layout_of`` returns None."""
    layout = layout_of(array)
    return 0 if layout is None else layout.offset


def _address(array: NDArray[Any]) -> int:
    """Return the first element's address, several times as fast as ``array.ctypes`` does."""
    address: int = array.__array_interface__["data"][0]
    return address


SMALL = 1 << 16
"""An array of fewer bytes is not put into a huge page."""
HUGE_PAGE = 1 << 21
"""Bytes of a huge page."""


def in_huge_pages(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of ``count`` zeros that begins at a huge page, in fresh memory of its own.

    The memory is fresh because freed memory may keep its small pages. An array of less than
    ``SMALL`` bytes lies anywhere.
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


Bytes = NDArray[np.uint8]

SPREADS: Mapping[int, tuple[str, tuple[tuple[int, int], ...]]] = {
    4: ("<u2", ((4, 0x0F0F),)),
    2: ("<u4", ((12, 0x000F000F), (6, 0x03030303))),
}
"""By bits per code: the dtype of the word that one packed byte becomes, and the steps to it.

A step is ``(shift, mask)`` and halves the groups of codes. Words are little-endian: the lowest code
is the first byte.
"""


def is_packed(entry: Format) -> bool:
    """Return whether several codes of this format share a byte."""
    return entry.kind in ("float", "integer") and entry.bits < 8


def pack(codes: Bytes, bits: int) -> Bytes:
    """Pack codes of ``bits`` bits, one per byte, into as few bytes as possible."""
    stream = np.unpackbits(codes.reshape(-1, 1), axis=1, count=bits, bitorder="little")
    return np.packbits(stream, bitorder="little")


def unpack(packed: Bytes, count: int, bits: int) -> Bytes:
    """Unpack the first ``count`` codes of ``bits`` bits, one per byte."""
    if bits in SPREADS:
        return _spread(packed[: -(-count * bits // 8)], bits)[:count]
    stream = np.unpackbits(packed, count=count * bits, bitorder="little")
    return np.packbits(stream.reshape(count, bits), axis=1, bitorder="little").ravel()


def _spread(packed: Bytes, bits: int) -> Bytes:
    """Unpack codes of 4 or 2 bits into a byte each, a hundred times as fast as bit by bit.

    ``bits`` must be a key of ``SPREADS``. All codes of the bytes are returned, also those that only
    fill up the last byte.
    """
    dtype, steps = SPREADS[bits]
    words = packed.astype(dtype)
    for shift, mask in steps:
        words |= words << shift
        words &= mask
    return words.view(np.uint8)


def codes_of(bits: NDArray[Any]) -> list[int]:
    """Return the patterns of all elements in row-major order, as Python integers."""
    if bits.dtype.kind == "V":
        return [int.from_bytes(each.tobytes(), "little") for each in bits.reshape(-1)]
    return [int(each) for each in bits.reshape(-1).tolist()]


def elements(fmt: Format, codes: list[int]) -> NDArray[Any]:
    """Return a one-dimensional array of patterns in a format's storage dtype."""
    storage = np.dtype(fmt.storage)
    if storage.kind == "V":
        raw = b"".join(code.to_bytes(storage.itemsize, "little") for code in codes)
        return np.frombuffer(raw, storage).copy()
    return np.array(codes, storage)


@dataclass(frozen=True)
class TensorBatch:
    """Many tensors of one dtype: their elements in one row, their shapes and their layouts.

    ``layouts`` has, by index of the tensor, each layout that differs from a fresh array's. If the
    batch ``is_rewritten``, a process puts each tensor into the memory of the one before, if that
    has the same shape and layout, as a program does that fills one buffer again and again.
    """

    elements: NDArray[Any]
    shapes: Sequence[tuple[int, ...]]
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    is_rewritten: bool = False

    @classmethod
    def of(cls, tensors: Sequence[NDArray[Any]]) -> TensorBatch:
        """Join tensors of one dtype; raise ValueError if there are none."""
        layouts = {index: layout_of(tensor) for index, tensor in enumerate(tensors)}
        return cls(
            np.concatenate([tensor.reshape(-1) for tensor in tensors]),
            [tensor.shape for tensor in tensors],
            {index: layout for index, layout in layouts.items() if layout is not None},
        )

    def after(self, count: int) -> TensorBatch:
        """Return the batch without its first ``count`` tensors."""
        first = sum(map(prod, self.shapes[:count]))
        layouts = {at - count: each for at, each in self.layouts.items() if at >= count}
        return TensorBatch(self.elements[first:], self.shapes[count:], layouts, self.is_rewritten)

    def tensors(self) -> Iterator[NDArray[Any]]:
        """Yield each tensor in fresh memory, in its layout."""
        first = 0
        for index, shape in enumerate(self.shapes):
            tensor = self.elements[first : (first := first + prod(shape))].reshape(shape)
            layout = self.layouts.get(index)
            yield tensor.copy() if layout is None else with_layout(tensor, layout)

    def rewritten(self) -> Iterator[NDArray[Any]]:
        """Yield each tensor, in the memory of the one before if shape and layout are the same."""
        last: tuple[object, NDArray[Any]] | None = None
        for index, tensor in enumerate(self.tensors()):
            lies = tensor.shape, self.layouts.get(index)
            if last is None or last[0] != lies:
                last = lies, tensor
            last[1][...] = tensor
            yield last[1]


@dataclass(frozen=True)
class BatchAnswers:
    """The answers to the first ``count`` tensors of a batch; ``elements`` has them in one row.

    ``error`` is the exception that the next tensor raised, if it raised one. It is that tensor's
    reply, because a second attempt might succeed.
    """

    elements: NDArray[Any]
    count: int
    error: BaseException | None = None

    def split(self, batch: TensorBatch) -> Iterator[NDArray[Any]]:
        """Yield the answer to each tensor that was answered, in the tensor's shape."""
        first = 0
        for shape in batch.shapes[: self.count]:
            yield self.elements[first : (first := first + prod(shape))].reshape(shape)
