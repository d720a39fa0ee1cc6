"""Each stream of bytes from a program is values, errors of its own, or a ``FrameError``."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections import Counter
from random import Random
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from oracles.backend.frames import MAGIC, FrameError, read_frame
from oracles.wire.program_client import ReplyDecoder
from tests.search import examples
from tests.wire.streams import DECODERS, MAX_PAYLOAD, read_all, stream

MAX_MEMORY = 20 << 20


@examples(300)
@given(st.randoms(use_true_random=True))
def test_any_malformed_stream_is_values_errors_or_a_frame_error(chance: Random) -> None:
    read_all(stream(chance))


@examples(300)
@given(st.binary(max_size=200))
def test_any_bytes_are_values_errors_or_a_frame_error(content: bytes) -> None:
    read_all(content)
    read_all(MAGIC + content)


def test_the_random_streams_hold_both_valid_answers_and_many_kinds_of_faults() -> None:
    streams = [stream(Random(seed)) for seed in range(2000)]
    assert sum(map(read_all, streams)) > 500
    faults = Counter(fault_of(content) for content in streams)
    assert len(faults) > 20, faults


def fault_of(content: bytes) -> str:
    """Return the text of a stream's first fault, without its numbers."""
    rest = memoryview(content)

    def read(count: int) -> bytes:
        nonlocal rest
        piece, rest = rest[:count], rest[count:]
        return bytes(piece)

    try:
        while (frame := read_frame(read, MAX_PAYLOAD)) is not None:
            ReplyDecoder("float16").decode(frame)
    except FrameError as fault:
        return re.sub(r"b'.*'|\d+", "…", str(fault))
    return ""


def test_all_answers_of_a_valid_stream_are_read() -> None:
    header = json.dumps({"answer": "error", "number": 1, "text": "no"}).encode()
    frame = MAGIC + pack("<IQ", len(header), 0) + header
    assert read_all(3 * frame) == 3 * len(DECODERS)


def test_no_memory_is_allocated_for_announced_lengths() -> None:
    tracemalloc.start()
    try:
        for header, payload in ((2**32 - 1, 0), (2**20, 2**64 - 1), (2, 2**40), (2**20, 2**16)):
            assert read_all(MAGIC + pack("<IQ", header, payload) + b"{}") == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY
