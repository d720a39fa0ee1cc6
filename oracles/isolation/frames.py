"""Frames: a header in JSON and a payload of raw bytes, each of a length that is said before.

A frame is the four bytes ``CST1``, the header's length (32 bits) and the payload's (64 bits), both
with their lowest byte first, the header (a JSON object in UTF-8) and the payload. A reader takes no
length at its word: both are bounded, and memory is taken for what has come, not for what is said.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import Any, NoReturn

import numpy as np

from oracles.protocol import Bits

MAGIC = b"CST1"
MOST_HEADER = 1 << 20
MOST_PAYLOAD = 1 << 31
UTF8 = ("utf-8", "surrogatepass")
"""Lone surrogates are texts too; as JSON's escapes two of them would become one letter."""
AT_ONCE = 1 << 20
"""Bytes that are asked for in one go."""

Read = Callable[[int], bytes]
"""Gives at least one and at most so many bytes; none at the end."""


class FrameError(Exception):
    """What came is no frame; the message says in which way."""


class BrokenOff(FrameError):
    """What came is the beginning of a frame, and nothing more comes."""


@dataclass(frozen=True)
class Frame:
    """What was sent in one go."""

    header: dict[str, Any]
    payload: bytearray


def written(header: dict[str, Any], payload: bytes | bytearray = b"") -> list[bytes | bytearray]:
    """The bytes of a frame, in pieces that stand one after another."""
    words = _ENCODER.encode(header).encode(*UTF8)
    if len(words) > MOST_HEADER:
        raise FrameError(f"a header of {len(words)} bytes; {MOST_HEADER} are the most")
    if len(payload) > MOST_PAYLOAD:
        raise FrameError(f"a payload of {len(payload)} bytes; {MOST_PAYLOAD} are the most")
    start = _START.pack(MAGIC, len(words), len(payload)) + words
    if len(payload) <= AT_ONCE:
        return [start + payload]
    return [start, payload]


def read_frame(read: Read, most_payload: int = MOST_PAYLOAD) -> Frame | None:
    """The next frame; nothing where the stream has ended before it."""
    start = _exactly(read, _START.size)
    if not start:
        return None
    if len(start) < _START.size:
        raise BrokenOff(f"the stream ends after {len(start)} bytes of a frame's start")
    magic, header_length, payload_length = _START.unpack(start)
    if magic != MAGIC:
        raise FrameError(f"a frame begins with {MAGIC!r}, this with {magic!r}")
    for what, length, most in (
        ("header", header_length, MOST_HEADER),
        ("payload", payload_length, most_payload),
    ):
        if length > most:
            raise FrameError(f"a {what} of {length} bytes; {most} are the most")
    words, payload = _exactly(read, header_length), _exactly(read, payload_length)
    if len(words) < header_length or len(payload) < payload_length:
        raise BrokenOff("the stream ends within a frame")
    return Frame(_header(words), payload)


def _header(words: bytearray) -> dict[str, Any]:
    try:
        header = _DECODER.decode(words.decode(*UTF8))
    except (ValueError, RecursionError):
        raise FrameError("a header is not JSON in UTF-8") from None
    if not isinstance(header, dict):
        raise FrameError("a header is not a JSON object")
    return header


def _exactly(read: Read, count: int) -> bytearray:
    """So many bytes, or all that there are."""
    found = bytearray()
    while len(found) < count:
        more = read(min(count - len(found), AT_ONCE))
        if not more:
            break
        found += more
    return found


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_START = Struct("<4sIQ")
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False)
_DECODER = json.JSONDecoder(parse_constant=_refused)


TEXT = "text"
MOST_RANK = 64
MOST_ELEMENTS = 1 << 40
KEYS = ("name", "storage", "shape", "bytes")

STORAGES: dict[np.dtype[Any], str] = {
    np.dtype(name): name
    for name in (
        *(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)),
        *("float16", "float32", "float64", "complex64", "complex128", "bool", "V16"),
    )
} | {np.dtype(object): TEXT}
"""What can be carried: all that a pattern is stored in, and what an answer may be by mistake."""

_DTYPES = {name: dtype for dtype, name in STORAGES.items()}

Fields = list[dict[str, Any]]
"""What a header says of the arrays in a payload, in their order."""


def is_carried(thing: object) -> bool:
    """Whether something is an array that a frame can carry."""
    return type(thing) is np.ndarray and thing.dtype in STORAGES


def packed(arrays: Mapping[str, Bits]) -> tuple[Fields, bytes]:
    """Arrays by name, as fields and a payload."""
    fields: Fields = []
    pieces: list[bytes] = []
    for name, array in arrays.items():
        pieces.append(_elements(array))
        fields.append(
            {
                "name": name,
                "storage": STORAGES[array.dtype],
                "shape": array.shape,
                "bytes": len(pieces[-1]),
            }
        )
    return fields, pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unpacked(fields: object, payload: bytearray) -> dict[str, Bits]:
    """The arrays by name, or a ``FrameError`` where fields and payload are not those of arrays."""
    if not isinstance(fields, list):
        raise FrameError("the fields of arrays are no list")
    found: dict[str, Bits] = {}
    at = 0
    for field in fields:
        name, storage, shape, size = _field(field)
        elements = payload if size == len(payload) else payload[at : at + size]
        if len(elements) != size:
            raise FrameError(f"{size} bytes of an array, of which {len(elements)} came")
        found[name] = _array(storage, shape, elements)
        at += size
    if at != len(payload):
        raise FrameError(f"a payload of {len(payload)} bytes, for arrays of {at}")
    return found


def _field(field: object) -> tuple[str, str, tuple[int, ...], int]:
    try:
        name, storage, shape, size = (field[key] for key in KEYS)  # type: ignore[index]
    except (TypeError, LookupError):
        raise FrameError("the fields of an array are no JSON object of these") from None
    if not isinstance(name, str) or not isinstance(storage, str) or storage not in _DTYPES:
        raise FrameError("an array without a name or a known storage")
    if not isinstance(shape, list) or len(shape) > MOST_RANK or not all(map(_is_count, shape)):
        raise FrameError("an array's shape is not a list of whole numbers")
    if not _is_count(size) or prod(shape) > MOST_ELEMENTS:
        raise FrameError("an array without its number of bytes, or of too many elements")
    return name, storage, tuple(shape), size


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_ELEMENTS


def _elements(array: Bits) -> bytes:
    if array.dtype == object:
        # What is no text is for the receiver to complain of.
        texts = [text if isinstance(text, str) else None for text in array.reshape(-1).tolist()]
        return json.dumps(texts, separators=(",", ":"), ensure_ascii=False).encode(*UTF8)
    return (array.byteswap() if sys.byteorder == "big" else array).tobytes()


def _array(storage: str, shape: tuple[int, ...], elements: bytearray) -> Bits:
    count, dtype = prod(shape), _DTYPES[storage]
    if storage == TEXT:
        return _texts(shape, count, elements)
    if len(elements) != count * dtype.itemsize:
        raise FrameError(
            f"{len(elements)} bytes of {count} elements of {storage}, {dtype.itemsize} bytes each"
        )
    try:
        array = np.frombuffer(elements, dtype).reshape(shape)
    except ValueError as error:
        raise FrameError(f"no array has the shape {shape}: {error}") from None
    return array.byteswap() if sys.byteorder == "big" else array


def _texts(shape: tuple[int, ...], count: int, elements: bytearray) -> Bits:
    try:
        texts = json.loads(elements.decode(*UTF8))
    except (ValueError, RecursionError):
        raise FrameError("texts are not a JSON list") from None
    if not isinstance(texts, list) or len(texts) != count:
        raise FrameError(f"texts are not a JSON list of {count}")
    if not all(isinstance(text, str | None) for text in texts):
        raise FrameError("texts hold something else than texts")
    try:
        return np.array(texts, object).reshape(shape)
    except ValueError as error:
        raise FrameError(f"no array has the shape {shape}: {error}") from None
