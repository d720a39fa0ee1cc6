"""Frames, the unit of every message to and from a backend's process, and arrays inside of them.

A frame is the four bytes ``CST1``, the header's length (32 bits) and the payload's length (64
bits), both little-endian, then the header (a JSON object in UTF-8) and the payload (raw bytes).
The other side is not trusted: both lengths are bounded, and memory is allocated only for bytes
that have arrived, never for an announced length.

Where both sides have shared memory, the answers to a sweep lie there, and not in a payload.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from struct import Struct
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from oracles.protocol import Bits
from specs.json_source import JsonError, unique_members

MAGIC = b"CST1"
MAX_HEADER = 1 << 20
MAX_PAYLOAD = 1 << 31
"""The most bytes of a payload."""
READ_CHUNK = 1 << 20
"""The most bytes requested by one read."""
UTF8 = ("utf-8", "surrogatepass")
"""The codec of texts: a lone surrogate is a valid text, and JSON escapes would join two of them."""

Pieces = list[bytes | bytearray]
"""The bytes of a frame, in pieces, so that a large payload is not copied."""
ReadBytes = Callable[[int], bytes]
"""Gets a number of bytes; returns one to that many, or none at the end of the stream."""


class FrameError(Exception):
    """A message is malformed; the text says in what way."""


class TruncatedFrame(FrameError):
    """The stream ended within a frame."""


@dataclass(frozen=True)
class Frame:
    """One decoded frame."""

    header: dict[str, Any]
    payload: bytearray


def encode_frame(header: dict[str, Any], payload: bytes | bytearray = b"") -> Pieces:
    """Encode a frame; raise FrameError if the header or the payload is too long."""
    encoded = _ENCODER.encode(header).encode(*UTF8)
    _check_length("header", len(encoded), MAX_HEADER)
    _check_length("payload", len(payload), MAX_PAYLOAD)
    start = _START.pack(MAGIC, len(encoded), len(payload)) + encoded
    if len(payload) <= READ_CHUNK:
        return [start + payload]
    return [start, payload]


def read_frame(read: ReadBytes, max_payload: int = MAX_PAYLOAD) -> Frame | None:
    """Return the next frame, None at the end; raise FrameError if it is malformed or too long."""
    start = _read_up_to(read, _START.size)
    if not start:
        return None
    if len(start) < _START.size:
        raise TruncatedFrame(f"the stream ends after {len(start)} bytes of a frame")
    magic, header_length, payload_length = _START.unpack(start)
    if magic != MAGIC:
        raise FrameError(f"a frame starts with {MAGIC!r}, not {magic!r}")
    _check_length("header", header_length, MAX_HEADER)
    _check_length("payload", payload_length, max_payload)
    encoded, payload = _read_up_to(read, header_length), _read_up_to(read, payload_length)
    if len(encoded) < header_length or len(payload) < payload_length:
        raise TruncatedFrame("the stream ends within a frame")
    return Frame(_decode_header(encoded), payload)


def _check_length(part: str, length: int, most: int) -> None:
    if length > most:
        raise FrameError(f"a {part} of {length} bytes; at most {most} are allowed")


def _decode_header(encoded: bytearray) -> dict[str, Any]:
    try:
        header = _DECODER.decode(encoded.decode(*UTF8))
    except (ValueError, RecursionError):
        raise FrameError("a header is not JSON in UTF-8") from None
    except JsonError as error:
        raise FrameError(f"a header {error}") from None
    if not isinstance(header, dict):
        raise FrameError("a header is not a JSON object")
    return header


def _read_up_to(read: ReadBytes, count: int) -> bytearray:
    """Read ``count`` bytes, or fewer if the stream ends."""
    content = bytearray()
    while len(content) < count:
        chunk = read(min(count - len(content), READ_CHUNK))
        if not chunk:
            break
        content += chunk
    return content


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_START = Struct("<4sIQ")
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False)
_DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=_reject_constant)


TEXT = "text"
MAX_RANK = 64
MAX_ELEMENTS = 1 << 40
FIELD_KEYS = ("name", "storage", "shape", "bytes")

STORAGES: dict[np.dtype[Any], str] = {
    np.dtype(name): name
    for name in (
        *(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)),
        *("float16", "float32", "float64", "complex64", "complex128", "bool", "V16"),
    )
} | {np.dtype(object): TEXT}
"""The dtypes a frame can carry, with their names in headers.

They are every format's storage, and some that backends return by mistake.
"""

_DTYPES = {name: dtype for dtype, name in STORAGES.items()}

ArrayFields = list[dict[str, Any]]
"""The part of a header that describes the arrays in the payload, in order, by ``FIELD_KEYS``."""


def is_sendable(value: object) -> bool:
    """Return whether a value is an array that a frame can carry."""
    return type(value) is np.ndarray and value.dtype in STORAGES


def pack_arrays(arrays: Mapping[str, Bits]) -> tuple[ArrayFields, bytes]:
    """Return header fields that describe named sendable arrays, and a payload of their elements."""
    fields: ArrayFields = []
    pieces: list[bytes] = []
    for name, array in arrays.items():
        pieces.append(_encode_elements(array))
        fields.append(
            {
                "name": name,
                "storage": STORAGES[array.dtype],
                "shape": array.shape,
                "bytes": len(pieces[-1]),
            }
        )
    return fields, pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unpack_arrays(fields: object, payload: bytearray) -> dict[str, Bits]:
    """Decode a payload's arrays, by name; raise FrameError if ``fields`` do not describe it."""
    if not isinstance(fields, list):
        raise FrameError("the fields of the arrays are not a list")
    arrays: dict[str, Bits] = {}
    start = 0
    for field in fields:
        name, storage, shape, size = _parse_field(field)
        elements = payload if size == len(payload) else payload[start : start + size]
        if len(elements) != size:
            raise FrameError(f"an array of {size} bytes, of which {len(elements)} came")
        arrays[name] = _decode_array(storage, shape, elements)
        start += size
    if start != len(payload):
        raise FrameError(f"a payload of {len(payload)} bytes for arrays of {start} bytes")
    return arrays


def _parse_field(field: object) -> tuple[str, str, tuple[int, ...], int]:
    try:
        name, storage, shape, size = (field[key] for key in FIELD_KEYS)  # type: ignore[index]
    except (TypeError, LookupError):
        raise FrameError(
            f"an array's fields are not an object of {', '.join(FIELD_KEYS)}"
        ) from None
    if not isinstance(name, str) or not isinstance(storage, str) or storage not in _DTYPES:
        raise FrameError("an array without a name or with an unknown storage")
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(_is_count, shape)):
        raise FrameError(f"an array's shape is not a list of at most {MAX_RANK} whole numbers")
    if not _is_count(size) or prod(shape) > MAX_ELEMENTS:
        raise FrameError("an array without its number of bytes, or with too many elements")
    return name, storage, tuple(shape), size


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_ELEMENTS


def _encode_elements(array: Bits) -> bytes:
    if array.dtype == object:
        # Anything that is not a text becomes null: the receiver judges the answer, not the sender.
        texts = [text if isinstance(text, str) else None for text in array.reshape(-1).tolist()]
        return json.dumps(texts, separators=(",", ":"), ensure_ascii=False).encode(*UTF8)
    return (array.byteswap() if sys.byteorder == "big" else array).tobytes()


def _decode_array(storage: str, shape: tuple[int, ...], elements: bytearray) -> Bits:
    count, dtype = prod(shape), _DTYPES[storage]
    if storage == TEXT:
        return _decode_texts(shape, count, elements)
    if len(elements) != count * dtype.itemsize:
        raise FrameError(
            f"{len(elements)} bytes for {count} elements of {storage}, {dtype.itemsize} bytes each"
        )
    array = _reshape(np.frombuffer(elements, dtype), shape)
    return array.byteswap() if sys.byteorder == "big" else array


def _decode_texts(shape: tuple[int, ...], count: int, elements: bytearray) -> Bits:
    try:
        texts = json.loads(elements.decode(*UTF8))
    except (ValueError, RecursionError):
        raise FrameError("texts are not a JSON list") from None
    if not isinstance(texts, list) or len(texts) != count:
        raise FrameError(f"texts are not a JSON list of {count}")
    if not {*map(type, texts)} <= {str, NoneType}:
        raise FrameError("the list of texts has an element that is not a text")
    return _reshape(np.array(texts, object), shape)


def _reshape(array: Bits, shape: tuple[int, ...]) -> Bits:
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise FrameError(f"no array has the shape {shape}: {error}") from None


SLOT_BYTES = 1 << 23
"""Bytes of a slot: large enough to make a request's overhead small, small enough for a cache."""
SLOTS = 2
"""The number of slots: this side reads one while the backend's process writes the other."""


class SharedMemory:
    """Shared memory of ``SLOTS`` slots: an anonymous file of fixed size, mapped read-only here."""

    def __init__(self) -> None:
        self.size = SLOTS * SLOT_BYTES
        self.descriptor = os.memfd_create("castigate", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, self.size)
        # If the program could shrink the file, reading it here would end this process by SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._view = memoryview(mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ))

    def slot(self, number: int) -> tuple[int, int]:
        """Return the offset and size of the slot for the answer to the request with this number."""
        return number % SLOTS * SLOT_BYTES, SLOT_BYTES

    def content(self, offset: int, size: int) -> memoryview:
        """Return a view of part of the memory; it changes if the program goes on writing there."""
        return self._view[offset : offset + size]
