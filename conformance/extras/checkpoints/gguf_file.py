"""Reads GGUF of versions 2 and 3: metadata, the table of tensors, then the elements.

The gguf package maps whole files into memory and builds an object for each metadata value. This
reader passes over the metadata, and needs no package.
"""

from __future__ import annotations

import struct
from functools import partial
from math import prod
from pathlib import Path
from typing import BinaryIO, NamedTuple

from conformance.extras.checkpoints.stored_tensors import (
    MOST_DIMENSIONS,
    ByteSpan,
    OtherTensor,
    StoredContents,
    StoredTensor,
    check_spans,
    file_chunks,
    file_size,
)
from specs.errors import CastigateError, quoted
from specs.formats import format_named

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_KEY, DEFAULT_ALIGNMENT = b"general.alignment", 32
STRING, ARRAY, UINT32 = 8, 9, 4
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The sizes of metadata values by their type, except strings and arrays."""
DEEPEST = 8
"""The most arrays inside of each other."""
TYPE_NAMES = (
    "F32 F16 Q4_0 Q4_1 - - Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS"
    " IQ1_S IQ4_NL IQ3_S IQ2_S IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 - - - TQ1_0 TQ2_0 - - - MXFP4"
    " NVFP4 Q1_0"
)
"""The types of tensors in the order of their numbers; `-` stands for one that is not used."""
TYPES = TYPE_NAMES.split()
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The types that are checked, by Castigate's names; the others are integers and blocks."""


class TensorInfo(NamedTuple):
    """A line of the table of tensors; ``offset`` counts from the first element of the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def read_gguf(path: Path) -> StoredContents:
    """Read the table of tensors; raise CastigateError if the file is malformed."""
    with open(path, "rb") as file:
        infos, alignment = _Header(path, file).tensors()
        begin = -(-file.tell() // alignment) * alignment
    floats, others, spans = [], [], []
    for each in infos:
        kind = TYPES[each.kind] if each.kind < len(TYPES) else f"type {each.kind}"
        if kind not in FLOATS:
            others.append(OtherTensor(each.name, kind))
            continue
        dtype = format_named(FLOATS[kind])
        first = begin + each.offset
        spans.append(ByteSpan(each.name, first, first + prod(each.shape) * dtype.bits // 8))
        chunks = partial(file_chunks, path, spans[-1], dtype.storage)
        floats.append(StoredTensor(each.name, dtype.name, each.shape, chunks))
    check_spans(path, spans)
    return StoredContents(tuple(floats), tuple(others))


class _Header:
    """Reads the fields of a header one after the other."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._size = path, file, file_size(path)

    def tensors(self) -> tuple[list[TensorInfo], int]:
        """Return the table of tensors, and the alignment of elements in bytes."""
        self._file.seek(len(MAGIC))
        version = self._number("I")
        if version not in VERSIONS:
            is_big = version in (each << 24 for each in VERSIONS)
            what = "is big-endian" if is_big else f"has version {version}"
            raise CastigateError(
                f"{self._path} {what}; give a little-endian GGUF file of version 2 or 3"
            )
        tensors, values = self._number("Q"), self._number("Q")
        alignment = DEFAULT_ALIGNMENT
        for _ in range(values):
            key, kind = self._string(), self._number("I")
            if key == ALIGNMENT_KEY and kind == UINT32:
                alignment = self._number("I")
            else:
                self._pass_over(kind)
        if not alignment or alignment & (alignment - 1):
            raise self._malformed(f"its alignment {alignment} is no power of two")
        infos: dict[str, TensorInfo] = {}
        for _ in range(tensors):
            info = self._info()
            if info.name in infos:
                raise self._malformed(f"tensor {quoted(info.name)} stands there twice")
            infos[info.name] = info
        return list(infos.values()), alignment

    def _info(self) -> TensorInfo:
        name, count = self._string().decode(errors="replace"), self._number("I")
        if count > MOST_DIMENSIONS:
            raise self._malformed(f"tensor {quoted(name)} has {count:,} dimensions")
        # The file begins with the dimension whose index moves fastest.
        shape = tuple(reversed([self._number("Q") for _ in range(count)]))
        return TensorInfo(name, shape, self._number("I"), self._number("Q"))

    def _pass_over(self, kind: int, depth: int = 0) -> None:
        """Pass over a metadata value of a type."""
        if kind == STRING:
            self._skip(self._number("Q"))
        elif kind == ARRAY and depth < DEEPEST:
            inner, count = self._number("I"), self._number("Q")
            if inner in SCALAR_BYTES:
                self._skip(count * SCALAR_BYTES[inner])
            else:
                for _ in range(count):
                    self._pass_over(inner, depth + 1)
        elif kind in SCALAR_BYTES:
            self._skip(SCALAR_BYTES[kind])
        else:
            raise self._malformed(f"type {kind} of a metadata value is unknown")

    def _number(self, code: str) -> int:
        value: int = struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))[0]
        return value

    def _string(self) -> bytes:
        return self._bytes(self._number("Q"))

    def _bytes(self, count: int) -> bytes:
        self._check_left(count)
        return self._file.read(count)

    def _skip(self, count: int) -> None:
        self._check_left(count)
        self._file.seek(count, 1)

    def _check_left(self, count: int) -> None:
        if count > self._size - self._file.tell():
            raise CastigateError(
                f"{self._path} ends inside of its header; it was cut off, so copy or download it"
                " again"
            )

    def _malformed(self, what: str) -> CastigateError:
        return CastigateError(f"{self._path}: {what}; write the file again")
