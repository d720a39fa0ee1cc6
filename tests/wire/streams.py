"""Streams of bytes that a program could write, most of them malformed, and a reader for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from struct import pack
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oracles.isolation.frames import MAGIC, FrameError, read_frame
from oracles.wire.expected import Expected

MOST = 1 << 16
TARGETS = ("float16", "float32", "int4", "string", "complex128")
INTEGERS = st.integers(-2, 300) | st.sampled_from([2**31, 2**32, 2**40, 2**63, 2**64, 10**30])
ANY = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
ANSWERS = st.fixed_dictionaries(
    {
        "answer": st.sampled_from(["hello", "values", "unsupported", "error", "bye"]) | ANY,
        "number": st.just(1) | INTEGERS | ANY,
    },
    optional={
        "shape": st.lists(st.integers(0, 4), max_size=3) | st.lists(INTEGERS, max_size=70) | ANY,
        "in_memory": st.booleans() | ANY,
        "reason": st.text(st.characters()) | ANY,
        "text": st.text(st.characters()) | ANY,
        "kind": st.sampled_from(["ValueError", "a b", "__class__"]) | ANY,
        "name": st.text() | ANY,
        "version": st.text() | ANY,
        "protocol": INTEGERS | ANY,
        "dtypes": st.lists(st.sampled_from(["int8", "x"]), max_size=3) | ANY,
        "operations": st.lists(st.sampled_from(["cast", "sweep", "x"]), max_size=3) | ANY,
        "claims": ANY,
        "more": ANY,
    },
)
PAYLOADS = st.binary(max_size=64) | st.sampled_from([b"[]", b'["a"]', b"[1]", b"[" * 50_000])
LENGTHS = INTEGERS.filter(lambda length: length >= 0)


def words_of(header: Any) -> bytes:
    return json.dumps(header).encode("utf-8", "surrogatepass")


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame, about every second time with something wrong about its bytes."""
    words = draw(ANSWERS.map(words_of) | st.binary(max_size=32))
    payload = draw(PAYLOADS)
    whole = MAGIC + pack("<IQ", len(words), len(payload)) + words + payload
    match draw(st.integers(0, 7)):
        case 0:
            lengths = pack("<IQ", draw(LENGTHS) % 2**32, draw(LENGTHS) % 2**64)
            return draw(st.just(MAGIC) | st.binary(max_size=4)) + lengths + words + payload
        case 1:
            return whole[: draw(st.integers(0, len(whole)))]
        case 2:
            at = draw(st.integers(0, len(whole) - 1))
            return whole[:at] + bytes([draw(st.integers(0, 255))]) + whole[at + 1 :]
        case 3:
            at = draw(st.integers(0, len(whole)))
            return whole[:at] + draw(st.binary(max_size=8)) + whole[at:]
    return whole


STREAMS = st.lists(frames(), max_size=4).map(b"".join) | st.binary(max_size=200)


def read_all(content: bytes) -> int:
    """Read a stream to its end or its first fault, for each of some targets; how many answers."""
    found = 0
    for target in TARGETS:
        expected, read = Expected(target), _reader(content)
        with suppress(FrameError):
            while (frame := read_frame(read, MOST)) is not None:
                value = expected.value(frame)
                assert isinstance(value, np.ndarray | Exception), value
                found += 1
    return found


def _reader(content: bytes) -> Callable[[int], bytes]:
    at = 0

    def read(count: int) -> bytes:
        nonlocal at
        piece = content[at : at + count]
        at += len(piece)
        return piece

    return read
