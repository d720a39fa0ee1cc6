"""Whatever stream of bytes a program writes: values, its errors, or a ``FrameError``."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections import Counter
from random import Random
from struct import pack

from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.isolation.frames import MAGIC, FrameError, read_frame
from oracles.wire.reply_checks import Expected
from tests.wire.streams import MOST, TARGETS, read_all, stream

MOST_MEMORY = 20 << 20


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=True))
def test_no_stream_ends_in_anything_else(chance: Random) -> None:
    read_all(stream(chance))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_end_in_anything_else(content: bytes) -> None:
    read_all(content)
    read_all(MAGIC + content)


def test_the_streams_are_worth_reading() -> None:
    """They hold right answers as well as faults, of all kinds."""
    streams = [stream(Random(seed)) for seed in range(2000)]
    assert sum(map(read_all, streams)) > 500
    ends = Counter(fault_of(content) for content in streams)
    assert len(ends) > 20, ends


def fault_of(content: bytes) -> str:
    """What is wrong about a stream, without numbers."""
    rest = memoryview(content)

    def read(count: int) -> bytes:
        nonlocal rest
        piece, rest = rest[:count], rest[count:]
        return bytes(piece)

    try:
        while (frame := read_frame(read, MOST)) is not None:
            Expected("float16").value(frame)
    except FrameError as fault:
        return re.sub(r"b'.*'|\d+", "…", str(fault))
    return ""


def test_a_stream_that_is_right_is_read() -> None:
    words = json.dumps({"answer": "error", "number": 1, "text": "no"}).encode()
    frame = MAGIC + pack("<IQ", len(words), 0) + words
    assert read_all(3 * frame) == 3 * len(TARGETS)


def test_announced_lengths_take_no_memory() -> None:
    tracemalloc.start()
    try:
        for header, payload in ((2**32 - 1, 0), (2**20, 2**64 - 1), (2, 2**40), (2**20, 2**16)):
            assert read_all(MAGIC + pack("<IQ", header, payload) + b"{}") == 0
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < MOST_MEMORY
