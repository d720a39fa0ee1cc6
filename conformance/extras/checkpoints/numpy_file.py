"""Reads npy and npz files; members of npz are decompressed as they are read."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from numpy.lib import format as npy

from conformance.extras.checkpoints.stored_tensors import (
    ByteSpan,
    Order,
    OtherTensor,
    StoredContents,
    StoredTensor,
    check_shape,
    check_spans,
    stream_chunks,
)
from oracles.protocol import Bits
from specs.errors import CastigateError, quoted
from specs.formats import format_named

NPY_MAGIC = npy.MAGIC_PREFIX
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
FLOATS = ("float16", "float32", "float64")
SUFFIX = ".npy"
LATEST = (3, 0)
BROKEN = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors that zipfile raises for a damaged, encrypted or unusually compressed archive."""


def read_npy(path: Path) -> StoredContents:
    """Read the header of a file; raise CastigateError if it is malformed."""
    with open(path, "rb") as file:
        found, others, begin = _tensor(path, path.stem, file, partial(_of_file, path))
    if found is not None:
        check_spans(path, [ByteSpan(path.stem, begin, begin + found.bytes)])
        return StoredContents((found,))
    return StoredContents((), others)


def read_npz(path: Path) -> StoredContents:
    """Read the headers of all arrays; raise CastigateError if one is malformed."""
    floats: list[StoredTensor] = []
    others: list[OtherTensor] = []
    with _reading(path), ZipFile(path) as archive:
        for member in archive.namelist():
            if not member.endswith(SUFFIX):
                continue
            name = member.removesuffix(SUFFIX)
            with archive.open(member) as stream:
                found, left, begin = _tensor(path, name, stream, partial(_of_member, path, member))
            if found is None:
                others += left
            elif begin + found.bytes != archive.getinfo(member).file_size:
                raise CastigateError(
                    f"{path}: array {quoted(name)} has not the size of its shape; write the file"
                    " again"
                )
            else:
                floats.append(found)
    return StoredContents(tuple(floats), tuple(others))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except BROKEN as error:
        raise CastigateError(
            f"{path} cannot be unpacked ({error}); copy or download it again"
        ) from None


def _tensor(
    path: Path, name: str, stream: Any, chunks: Any
) -> tuple[StoredTensor | None, tuple[OtherTensor, ...], int]:
    """Read the header of an array at the beginning of a stream.

    Return the tensor, or what to say of one that holds no floats of numpy, and the header's size.
    """
    try:
        version = npy.read_magic(stream)
        if version > LATEST:
            raise ValueError(f"its version is {version[0]}.{version[1]}")
        # The reader of version 2 reads version 3 too, whose only difference is UTF-8 in names.
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        with warnings.catch_warnings(action="ignore"):  # about headers of Python 2
            shape, is_column_major, dtype = read(stream)
    except Exception as error:
        # A header is a Python expression, and numpy's parser raises errors of many classes.
        raise CastigateError(
            f"{path}: the header of array {quoted(name)} is malformed"
            f" ({str(error).partition(chr(10))[0]}); write the file again"
        ) from None
    begin = stream.tell()
    if dtype.name not in FLOATS:
        return None, (OtherTensor(name, str(dtype)),), begin
    check_shape(path, name, shape)
    form = format_named(dtype.name)
    size = prod(shape) * dtype.itemsize
    order: Order = ">" if dtype.str.startswith(">") else "<"
    read_chunks = partial(chunks, name, begin, size, form.storage, order)
    return StoredTensor(name, form.name, shape, read_chunks, is_column_major), (), begin


def _of_file(
    path: Path, name: str, begin: int, size: int, storage: str, order: Order
) -> Iterator[Bits]:
    with open(path, "rb", buffering=0) as file:
        file.seek(begin)
        yield from stream_chunks(path, name, file, size, storage, order)


def _of_member(
    path: Path, member: str, name: str, begin: int, size: int, storage: str, order: Order
) -> Iterator[Bits]:
    with _reading(path), ZipFile(path) as archive, archive.open(member) as stream:
        stream.read(begin)
        unpacked: Any = stream  # its type in typeshed lacks readinto
        yield from stream_chunks(path, name, unpacked, size, storage, order)


def members_of(path: Path) -> list[str]:
    """Return the names in a zip archive; raise CastigateError if it is damaged."""
    with _reading(path), ZipFile(path) as archive:
        return archive.namelist()
