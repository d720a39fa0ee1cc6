"""Whatever stream of bytes a program writes: values, its errors, or a ``FrameError``."""

from __future__ import annotations

import json
import tracemalloc
from struct import pack

from hypothesis import HealthCheck, given, settings

from oracles.isolation.frames import MAGIC
from tests.wire.streams import STREAMS, TARGETS, read_all

MOST_MEMORY = 20 << 20


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STREAMS)
def test_no_stream_ends_in_anything_else(stream: bytes) -> None:
    read_all(stream)


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
