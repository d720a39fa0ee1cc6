"""Random streams of bytes that a program could write, most of them malformed, and a reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from struct import pack
from typing import Any

import numpy as np

from oracles.backend.frames import MAGIC, FrameError, read_frame
from oracles.wire.program_client import ReplyDecoder, TensorsDecoder

MAX_PAYLOAD = 1 << 16
DECODERS: tuple[ReplyDecoder | TensorsDecoder, ...] = (
    *map(ReplyDecoder, ("float16", "float32", "int4", "string", "complex128")),
    TensorsDecoder({"y": "int8", "scale": "float32"}),
)
LENGTHS = (0, 1, 2, 15, 16, 300, 2**16, 2**16 + 1, 2**20, 2**20 + 1, 2**31, 2**32 - 1)
LONG_LENGTHS = (*LENGTHS, 2**32, 2**40, 2**63, 2**64 - 1)
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 2**64, 10**30, 1.5, float("nan"), float("inf"),
    "", "values", "hello", "\0", "\ud800", "\x1b[31m", "é", "x" * 70_000,
    [], [0], [-1], [True], [1.0], [2**40, 2**40], [1] * 65, [[1]], ["a"], {}, {"answer": "bye"},
)  # fmt: skip
VALID_ANSWERS: tuple[dict[str, Any], ...] = (
    {"answer": "values", "shape": [2]},
    {"answer": "values", "shape": [2], "in_memory": False},
    {"answer": "values", "shape": [2], "in_memory": True},
    {"answer": "values", "shape": []},
    {"answer": "values", "shape": [2, 0]},
    {"answer": "tensors", "tensors": [{"name": "y", "shape": [2]}]},
    {"answer": "tensors", "tensors": [{"name": "scale", "shape": []}, {"name": "y", "shape": [1]}]},
    {"answer": "unsupported", "reason": "no such dtype"},
    {"answer": "error", "text": "out of range", "kind": "ValueError"},
    {"answer": "hello", "protocol": 1, "name": "a", "version": "1", "dtypes": [], "operations": []},
    {"answer": "bye"},
)
KEYS = sorted(
    {key for answer in VALID_ANSWERS for key in answer} | {"number", "more", "claims", ""}
)
PAYLOADS = (
    b"", b"\1", b"\1\2", b"\1\2\3\4", bytes(8), b"\xff" * 8, bytes(32), b'["a","b"]', b'["a",null]',
    b"[]", b"[1,2]", b'["\xff",""]', b"[" * 50_000, bytes(MAX_PAYLOAD), bytes(MAX_PAYLOAD + 1),
)  # fmt: skip
MALFORMED_HEADERS = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}{}",
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"\xff",
    b"9" * 9999,
)


def stream(chance: Random) -> bytes:
    """Return some frames, most of which are malformed."""
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(200))
    return b"".join(_frame(chance) for _ in range(chance.randrange(5)))


def _frame(chance: Random) -> bytes:
    header, payload = _header(chance), b""
    if chance.random() < 0.7:
        payload = chance.choice(PAYLOADS[: chance.choice((4, len(PAYLOADS)))])
    frame = bytearray(MAGIC + pack("<IQ", len(header), len(payload)) + header + payload)
    at = chance.randrange(min(len(frame), 300))
    match chance.randrange(12):
        case 0:
            frame[4:16] = pack("<IQ", chance.choice(LENGTHS), chance.choice(LONG_LENGTHS))
        case 1:
            del frame[at:]
        case 2:
            frame[at] = chance.randrange(256)
        case 3:
            frame[at:at] = chance.randbytes(chance.randrange(9))
        case 4:
            del frame[at : at + chance.randrange(9)]
    return bytes(frame)


def _header(chance: Random) -> bytes:
    if chance.random() < 0.05:
        return chance.choice(MALFORMED_HEADERS)
    answer = {"number": 1, **chance.choice(VALID_ANSWERS)}
    while chance.random() < 0.3:
        key = chance.choice(KEYS)
        if chance.random() < 0.3:
            answer.pop(key, None)
        else:
            answer[key] = chance.choice(ODD_VALUES)
    text = json.dumps(answer, ensure_ascii=chance.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def read_all(content: bytes) -> int:
    """Read a stream up to its end or first fault, by each decoder; return the number of answers."""
    answers = 0
    for decoder in DECODERS:
        read = _reader(content)
        with suppress(FrameError):
            while (frame := read_frame(read, MAX_PAYLOAD)) is not None:
                value = decoder.decode(frame)
                assert isinstance(value, np.ndarray | dict | Exception), value
                answers += 1
    return answers


def _reader(content: bytes) -> Callable[[int], bytes]:
    at = 0

    def read(count: int) -> bytes:
        nonlocal at
        piece = content[at : at + count]
        at += len(piece)
        return piece

    return read
