"""A frame comes back as it was written; whatever is none is a ``FrameError`` that costs little."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.isolation.frames import (
    AT_ONCE,
    MAGIC,
    MOST_HEADER,
    MOST_PAYLOAD,
    Frame,
    FrameError,
    read_frame,
    written,
)

LITTLE = 4 * AT_ONCE
"""More than a reader needs for a frame that never comes, much less than what one announces."""
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


def stream(content: bytes, most: int = AT_ONCE) -> Callable[[int], bytes]:
    """Reads a content in pieces of at most so many bytes."""
    rest = memoryview(content)

    def read(count: int) -> bytes:
        nonlocal rest
        piece, rest = rest[: min(count, most)], rest[min(count, most) :]
        return bytes(piece)

    return read


def framed(words: bytes, payload: bytes = b"", magic: bytes = MAGIC) -> bytes:
    return magic + pack("<IQ", len(words), len(payload)) + words + payload


def read_all(content: bytes) -> list[Frame]:
    """The frames of a stream, up to its end."""
    read = stream(content)
    return list(iter(lambda: read_frame(read), None))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(HEADERS, st.binary()), max_size=3), st.integers(1, 40))
def test_frames_come_back_one_after_another(frames: list[tuple[dict, bytes]], most: int) -> None:
    read = stream(b"".join(b"".join(written(*frame)) for frame in frames), most)
    found = list(iter(lambda: read_frame(read), None))
    assert [(frame.header, frame.payload) for frame in found] == frames


@pytest.mark.parametrize("size", [AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + 5])
def test_a_payload_of_more_than_is_read_at_once(size: int) -> None:
    payload = bytes(range(251)) * (size // 251 + 1)
    [frame] = read_all(b"".join(written({"size": size}, payload[:size])))
    assert (frame.header, frame.payload) == ({"size": size}, payload[:size])


def test_the_layout_is_what_is_documented() -> None:
    assert b"".join(written({"a": 1}, b"xyz")) == b'CST1\7\0\0\0\3\0\0\0\0\0\0\0{"a":1}xyz'


@settings(max_examples=200, deadline=None)
@given(st.binary())
def test_no_bytes_end_in_anything_but_frames_or_a_frame_error(content: bytes) -> None:
    for tried in (content, MAGIC + content, framed(content), framed(b"{}", content)[:-1]):
        with suppress(FrameError):
            read_all(tried)


@settings(max_examples=50, deadline=None)
@given(HEADERS, st.binary(), st.data())
def test_a_frame_that_breaks_off_is_a_frame_error(
    header: dict, payload: bytes, data: st.DataObject
) -> None:
    whole = b"".join(written(header, payload))
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(FrameError, match="the stream ends"):
        read_all(whole[:cut])
    assert read_all(b"") == []


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=4, max_size=4).filter(lambda magic: magic != MAGIC))
def test_another_beginning_is_a_frame_error(magic: bytes) -> None:
    with pytest.raises(FrameError, match="a frame begins with b'CST1', this with "):
        read_all(framed(b"{}", magic=magic))


DEEP = 100_000
NO_HEADERS = {
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


@pytest.mark.parametrize("words", NO_HEADERS.values(), ids=NO_HEADERS)
def test_what_is_no_header_is_a_frame_error(words: bytes) -> None:
    with pytest.raises(FrameError, match="a header is not "):
        read_all(framed(words, b"payload"))


@pytest.mark.parametrize(
    ("header", "payload", "what"),
    [
        (MOST_HEADER + 1, 0, "header"),
        (2**32 - 1, 0, "header"),
        (2, MOST_PAYLOAD + 1, "payload"),
        (2, 2**63, "payload"),
        (2, 2**64 - 1, "payload"),
        (2**32 - 1, 2**64 - 1, "header"),
    ],
)
def test_a_length_over_the_most_is_refused_before_anything_is_read(
    header: int, payload: int, what: str
) -> None:
    read = stream(MAGIC + pack("<IQ", header, payload) + b"{}" + bytes(10))
    with pytest.raises(FrameError, match=f"a {what} of [0-9]+ bytes; [0-9]+ are the most"):
        read_frame(read)
    assert len(read(100)) == 12


@pytest.mark.parametrize("header", [0, MOST_HEADER])
def test_memory_is_taken_for_what_has_come_not_for_what_is_announced(header: int) -> None:
    start = MAGIC + pack("<IQ", header, MOST_PAYLOAD)
    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match="the stream ends within a frame"):
            read_frame(stream(start + bytes(1000)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < LITTLE


def test_nobody_is_asked_for_more_than_is_left() -> None:
    asked: list[int] = []
    content = stream(framed(b"{}", bytes(3 * AT_ONCE)) + b"more")

    def read(count: int) -> bytes:
        asked.append(count)
        return content(count)

    assert read_frame(read) is not None
    assert max(asked) == AT_ONCE
    assert content(100) == b"more"


def test_what_cannot_be_read_is_not_written() -> None:
    class Endless(bytes):
        def __len__(self) -> int:
            return MOST_PAYLOAD + 1

    with pytest.raises(FrameError, match=f"a header of [0-9]+ bytes; {MOST_HEADER} are the most"):
        written({"long": "x" * MOST_HEADER})
    with pytest.raises(FrameError, match=f"a payload of [0-9]+ bytes; {MOST_PAYLOAD} are the most"):
        written({}, Endless())
    with pytest.raises(ValueError, match="JSON"):
        written({"a": float("nan")})


def test_the_longest_header_comes_back() -> None:
    text = "x" * (MOST_HEADER - len(json.dumps({"a": ""}, separators=(",", ":"))))
    [frame] = read_all(b"".join(written({"a": text})))
    assert frame.header == {"a": text}


def test_two_lone_surrogates_do_not_become_one_letter() -> None:
    header = {"\ud83d": ["\ud83d\ude00", "\U0001f600", "\udcff", "\0"]}
    [frame] = read_all(b"".join(written(header)))
    assert frame.header == header
