"""The tensors that readers of checkpoints return; callers read their elements in chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from oracles.protocol import Bits
from specs.errors import CastigateError, quoted
from specs.formats import format_named

CHUNK_BYTES = 1 << 22
"""The bytes that are read at a time; they stay in a core's cache while they are counted."""

MOST_DIMENSIONS = 64
LARGEST = (1 << 63) - 1
"""The largest size of a dimension, and the largest offset in a file."""

Order = Literal["<", ">"]
"""The order of bytes in a number, as numpy writes it."""

Chunks = Callable[[], Iterator[Bits]]
"""Yields a tensor's elements in their order, as bit patterns; each array is valid until the next.

Raises CastigateError if the file ends too early, or cannot be decompressed.
"""


class Readable(Protocol):
    """A stream of bytes that fills buffers."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill a buffer from its beginning; return the number of bytes, 0 at the end."""
        ...


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of floats in a file.

    ``dtype`` is Castigate's name, and ``chunks`` reads the elements, from the first on at each
    call. With ``is_column_major`` the first index of ``shape`` moves fastest, otherwise the last.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    chunks: Chunks
    is_column_major: bool = False

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes of all elements."""
        return self.elements * np.dtype(format_named(self.dtype).storage).itemsize

    def place(self, element: int) -> tuple[int, ...]:
        """Return the index in the tensor of the element with this position in the file."""
        order, place = "F" if self.is_column_major else "C", []
        for size in self.shape if order == "F" else reversed(self.shape):
            element, index = divmod(element, size)
            place.append(index)
        return tuple(place if order == "F" else reversed(place))


class OtherTensor(NamedTuple):
    """A tensor that is not checked, and its dtype as the file names it."""

    name: str
    dtype: str


@dataclass(frozen=True)
class StoredContents:
    """The tensors of a checkpoint: those of floats, and others, whose elements are not read.

    ``notes`` are lines about what a check of the floats passes over.
    """

    floats: tuple[StoredTensor, ...]
    others: tuple[OtherTensor, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        return [each.name for each in self.floats] + [each.name for each in self.others]


class ByteSpan(NamedTuple):
    """The bytes of a tensor in a file: from ``begin`` to before ``end``."""

    name: str
    begin: int
    end: int


def check_shape(path: Path, name: str, shape: Sequence[int]) -> None:
    """Raise CastigateError for a shape that no tensor has: its size might be a huge integer."""
    if len(shape) > MOST_DIMENSIONS or any(not 0 <= size <= LARGEST for size in shape):
        raise CastigateError(
            f"{path}: tensor {quoted(name)} has an impossible shape; write the file again"
        )


def check_spans(path: Path, spans: Iterable[ByteSpan]) -> None:
    """Raise CastigateError if bytes of tensors lie beyond the end of their file, or overlap."""
    size, last = path.stat().st_size, ByteSpan("", 0, 0)
    for each in sorted(spans, key=lambda span: (span.begin, span.end)):
        if each.end > size:
            raise CastigateError(
                f"{path}: tensor {quoted(each.name)} ends at byte {each.end:,}, and the file has"
                f" {size:,}; it was cut off, so copy or download it again"
            )
        if each.begin < last.end and each.begin < each.end:
            raise CastigateError(
                f"{path}: tensors {quoted(last.name)} and {quoted(each.name)} overlap at byte"
                f" {each.begin:,}; write the file again"
            )
        if each.end > last.end:
            last = each


def file_chunks(path: Path, span: ByteSpan, storage: str) -> Iterator[Bits]:
    """Yield the elements of a span of a file, which has them in little-endian order."""
    with open(path, "rb", buffering=0) as file:
        file.seek(span.begin)
        yield from stream_chunks(path, span.name, file, span.end - span.begin, storage)


def stream_chunks(
    path: Path, name: str, stream: Readable, size: int, storage: str, order: Order = "<"
) -> Iterator[Bits]:
    """Yield the next ``size`` bytes of a stream as elements; ``order`` is their byte order.

    All arrays share one buffer. Raise CastigateError if the stream ends before.
    """
    buffer = bytearray(min(CHUNK_BYTES, size))
    stored = np.dtype(storage).newbyteorder(order)
    while size:
        part = memoryview(buffer)[: min(CHUNK_BYTES, size)]
        filled = 0
        while filled < len(part):
            count = stream.readinto(part[filled:])
            if not count:
                raise CastigateError(
                    f"{path} ends inside of tensor {quoted(name)}; it was cut off, so copy or"
                    " download it again"
                )
            filled += count
        size -= filled
        yield np.frombuffer(part[:filled], stored).astype(storage, copy=False)


def file_size(path: Path) -> int:
    """Return the size of a file in bytes."""
    return os.stat(path).st_size
