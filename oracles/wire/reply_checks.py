"""Checks and decodes a program's replies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from oracles.backend.frames import (
    READ_CHUNK,
    STORAGES,
    TEXT,
    Frame,
    FrameError,
    unpack_arrays,
)
from oracles.backend.remote_errors import MAX_TEXT, remote_error
from oracles.backend.shared_memory import SharedMemory
from oracles.protocol import Bits, Unsupported
from oracles.wire import schema
from specs.formats import format_named
from specs.plain_text import plain_line

MAX_TEXT_BYTES = 1 << 26


@dataclass(frozen=True)
class ReplyDecoder:
    """Decodes replies whose elements are of a dtype, in the payload or in a slot of the memory."""

    dtype: str
    memory: SharedMemory | None = None
    slot: schema.MemorySlot | None = None

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy dtype that an element is stored in."""
        return np.dtype(format_named(self.dtype).storage)

    def max_payload(self, elements: int) -> int:
        """Return the most bytes that a reply may have.

        That is more than these elements need: an answer of a wrong shape is an error of the
        backend, so it has to be read.
        """
        if STORAGES[self.storage] == TEXT:
            return MAX_TEXT_BYTES
        return max(READ_CHUNK, 2 * elements * self.storage.itemsize)

    def decode(self, reply: Frame) -> Bits | BaseException:
        """Return the elements, or the exception that the reply stands for.

        Raises FrameError if the reply is malformed or not an answer to a cast, sweep or bitcast.
        """
        answer = schema.parse_answer(reply.header)
        if reply.payload and not isinstance(answer, schema.Values):
            raise FrameError(f"an answer `{answer.answer}` with a payload")
        match answer:
            case schema.Values(shape=shape, in_memory=True):
                return self._decode_memory(reply, shape)
            case schema.Values(shape=shape):
                return self._decode_payload(shape, reply.payload)
            case schema.Unsupported(reason=reason):
                return Unsupported(plain_line(reason, MAX_TEXT))
            case schema.Error(kind=kind, text=text):
                return remote_error((kind, "Exception"), plain_line(text, MAX_TEXT))
            case _:
                raise FrameError(f"an answer `{answer.answer}` that was not asked for")

    def _decode_payload(self, shape: list[int], payload: bytearray) -> Bits:
        storage = STORAGES[self.storage]
        field = {"name": "", "storage": storage, "shape": shape, "bytes": len(payload)}
        return unpack_arrays([field], payload)[""]

    def _decode_memory(self, reply: Frame, shape: list[int]) -> Bits:
        size = prod(shape) * self.storage.itemsize
        if self.memory is None or self.slot is None or reply.payload or size > self.slot.bytes:
            raise FrameError("an answer in memory that was not offered for it")
        content = np.frombuffer(self.memory.content(self.slot.offset, size), self.storage)
        answers = content.reshape(shape)
        if format_named(self.dtype).bits == 8 * self.storage.itemsize:
            # No copy: whatever the program writes there later is still a valid code of the dtype.
            return answers
        return answers.copy()
