"""Frames: a header in JSON and a payload of raw bytes, each of a length that is said before.

A frame is the four bytes ``CST1``, the header's length (32 bits) and the payload's (64 bits), both
with their lowest byte first, the header (a JSON object in UTF-8) and the payload. A reader takes no
length at its word: both are bounded, and memory is taken for what has come, not for what is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, NoReturn

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
