"""A frame survives a round trip; anything malformed is a ``FrameError`` that costs little."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.backend.frames import (
    MAGIC,
    MAX_HEADER,
    MAX_PAYLOAD,
    READ_CHUNK,
    Frame,
    FrameError,
    encode_frame,
    read_frame,
)
from tests.search import examples

LITTLE_MEMORY = 4 * READ_CHUNK
"""More than a reader needs for a truncated frame, much less than such a frame announces."""
TEXTS = st.text(st.characters())  # lone surrogates too
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
HEADERS = st.dictionaries(TEXTS, VALUES, max_size=4)


def reader(content: bytes, max_piece: int = READ_CHUNK) -> Callable[[int], bytes]:
    """Return a function that reads the content in pieces of at most ``max_piece`` bytes."""
    rest = memoryview(content)

    def read(count: int) -> bytes:
        nonlocal rest
        piece, rest = rest[: min(count, max_piece)], rest[min(count, max_piece) :]
        return bytes(piece)

    return read


def raw_frame(header: bytes, payload: bytes = b"", magic: bytes = MAGIC) -> bytes:
    return magic + pack("<IQ", len(header), len(payload)) + header + payload


def read_all(content: bytes) -> list[Frame]:
    """Return all frames of a stream."""
    read = reader(content)
    return list(iter(lambda: read_frame(read), None))


@examples(50)
@given(st.lists(st.tuples(HEADERS, st.binary()), max_size=3), st.integers(1, 40))
def test_frames_are_read_one_after_another(
    frames: list[tuple[dict, bytes]], max_piece: int
) -> None:
    read = reader(b"".join(b"".join(encode_frame(*frame)) for frame in frames), max_piece)
    found = list(iter(lambda: read_frame(read), None))
    assert [(frame.header, frame.payload) for frame in found] == frames


@pytest.mark.parametrize("size", [READ_CHUNK - 1, READ_CHUNK, READ_CHUNK + 1, 3 * READ_CHUNK + 5])
def test_a_payload_longer_than_one_read_comes_back(size: int) -> None:
    payload = bytes(range(251)) * (size // 251 + 1)
    [frame] = read_all(b"".join(encode_frame({"size": size}, payload[:size])))
    assert (frame.header, frame.payload) == ({"size": size}, payload[:size])


def test_the_bytes_of_a_frame_are_as_documented() -> None:
    assert b"".join(encode_frame({"a": 1}, b"xyz")) == b'CST1\7\0\0\0\3\0\0\0\0\0\0\0{"a":1}xyz'


@examples(200)
@given(st.binary())
def test_any_bytes_are_frames_or_a_frame_error(content: bytes) -> None:
    for stream in (content, MAGIC + content, raw_frame(content), raw_frame(b"{}", content)[:-1]):
        with suppress(FrameError):
            read_all(stream)


@examples(50)
@given(HEADERS, st.binary(), st.data())
def test_a_truncated_frame_is_a_frame_error(
    header: dict, payload: bytes, data: st.DataObject
) -> None:
    whole = b"".join(encode_frame(header, payload))
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(FrameError, match="the stream ends"):
        read_all(whole[:cut])
    assert read_all(b"") == []


@examples(20)
@given(st.binary(min_size=4, max_size=4).filter(lambda magic: magic != MAGIC))
def test_a_wrong_magic_is_a_frame_error(magic: bytes) -> None:
    with pytest.raises(FrameError, match="a frame starts with b'CST1', not "):
        read_all(raw_frame(b"{}", magic=magic))


DEEP = 100_000
MALFORMED_HEADERS = {
    "nothing": b"",
    "no JSON": b"{",
    "two of them": b"{}{}",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "a text": b'"{}"',
    "not UTF-8": b'{"a":"\xff"}',
    "UTF-16": "{}".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":[Infinity]}',
    "-Infinity": b'{"a":{"b":-Infinity}}',
    "deep lists": b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "unclosed": b"[" * DEEP,
    "a number of too many digits": b'{"a":' + b"9" * 5000 + b"}",
    "a control character": b'{"a":"\n"}',
}


@pytest.mark.parametrize("header", MALFORMED_HEADERS.values(), ids=MALFORMED_HEADERS)
def test_a_malformed_header_is_a_frame_error(header: bytes) -> None:
    with pytest.raises(FrameError, match="a header is not "):
        read_all(raw_frame(header, b"payload"))


def test_a_key_twice_is_a_frame_error_at_any_depth() -> None:
    for header in (b'{"b":1,"b":1}', b'{"a":[{"b":1,"b":2}]}'):
        with pytest.raises(FrameError, match="a header has the key `b` twice"):
            read_all(raw_frame(header))


@pytest.mark.parametrize(
    ("header", "payload", "part"),
    [
        (MAX_HEADER + 1, 0, "header"), (2**32 - 1, 0, "header"), (2, MAX_PAYLOAD + 1, "payload"),
        (2, 2**63, "payload"), (2, 2**64 - 1, "payload"), (2**32 - 1, 2**64 - 1, "header"),
    ],
)  # fmt: skip
def test_a_length_over_the_limit_is_refused_before_anything_is_read(
    header: int, payload: int, part: str
) -> None:
    read = reader(MAGIC + pack("<IQ", header, payload) + b"{}" + bytes(10))
    with pytest.raises(FrameError, match=f"a {part} of [0-9]+ bytes; at most [0-9]+ are allowed"):
        read_frame(read)
    assert len(read(100)) == 12


@pytest.mark.parametrize("header", [0, MAX_HEADER])
def test_memory_is_allocated_for_bytes_that_came_not_for_announced_lengths(header: int) -> None:
    start = MAGIC + pack("<IQ", header, MAX_PAYLOAD)
    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match="the stream ends within a frame"):
            read_frame(reader(start + bytes(1000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LITTLE_MEMORY


def test_no_read_asks_for_bytes_beyond_the_frame() -> None:
    counts: list[int] = []
    read_content = reader(raw_frame(b"{}", bytes(3 * READ_CHUNK)) + b"more")

    def read(count: int) -> bytes:
        counts.append(count)
        return read_content(count)

    assert read_frame(read) is not None
    assert max(counts) == READ_CHUNK
    assert read_content(100) == b"more"


def test_a_frame_that_no_reader_would_accept_is_not_encoded() -> None:
    class Endless(bytes):
        def __len__(self) -> int:
            return MAX_PAYLOAD + 1

    with pytest.raises(
        FrameError, match=f"a header of [0-9]+ bytes; at most {MAX_HEADER} are allowed"
    ):
        encode_frame({"long": "x" * MAX_HEADER})
    with pytest.raises(
        FrameError, match=f"a payload of [0-9]+ bytes; at most {MAX_PAYLOAD} are allowed"
    ):
        encode_frame({}, Endless())
    with pytest.raises(ValueError, match="JSON"):
        encode_frame({"a": float("nan")})


def test_the_longest_header_comes_back() -> None:
    text = "x" * (MAX_HEADER - len(json.dumps({"a": ""}, separators=(",", ":"))))
    [frame] = read_all(b"".join(encode_frame({"a": text})))
    assert frame.header == {"a": text}


def test_two_lone_surrogates_do_not_become_one_character() -> None:
    header = {"\ud83d": ["\ud83d\ude00", "\U0001f600", "\udcff", "\0"]}
    [frame] = read_all(b"".join(encode_frame(header)))
    assert frame.header == header
