"""Checks and decodes a program's replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from oracles.backend.frames import (
    READ_CHUNK,
    STORAGES,
    TEXT,
    ArrayFields,
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
        return _storage(self.dtype)

    def max_payload(self, elements: int) -> int:
        """Return the most bytes that a reply may have."""
        if STORAGES[self.storage] == TEXT:
            return MAX_TEXT_BYTES
        return _with_room(elements * self.storage.itemsize)

    def decode(self, reply: Frame) -> Bits | BaseException:
        """Return the elements, or the exception that the reply stands for.

        Raises FrameError if the reply is malformed or not an answer to a cast, sweep or bitcast.
        """
        match schema.parse_answer(reply.header):
            case schema.Values(shape=shape, in_memory=True):
                return self._decode_memory(reply, shape)
            case schema.Values(shape=shape):
                return self._decode_payload(shape, reply.payload)
            case answer:
                return _refusal(answer, reply.payload)

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


@dataclass(frozen=True)
class TensorsDecoder:
    """Decodes replies with named tensors; ``dtypes`` are those that the request names."""

    dtypes: Mapping[str, str]

    def max_payload(self, elements: int) -> int:
        """Return the most bytes that a reply may have, at ``elements`` elements per tensor."""
        return _with_room(
            elements * sum(_storage(dtype).itemsize for dtype in self.dtypes.values())
        )

    def decode(self, reply: Frame) -> dict[str, Bits] | BaseException:
        """Return the tensors by name, or the exception that the reply stands for.

        Raises FrameError if the reply is malformed or has a tensor that was not asked for.
        """
        match schema.parse_answer(reply.header):
            case schema.Tensors(tensors=tensors):
                return unpack_arrays(self._fields(tensors), reply.payload)
            case answer:
                return _refusal(answer, reply.payload)

    def _fields(self, tensors: Sequence[schema.ResultShape]) -> ArrayFields:
        fields: dict[str, dict[str, Any]] = {}
        for each in tensors:
            if each.name not in self.dtypes:
                raise FrameError(f"a tensor `{each.name}` that was not asked for")
            if each.name in fields:
                raise FrameError(f"two tensors `{each.name}`")
            storage = _storage(self.dtypes[each.name])
            fields[each.name] = {
                "name": each.name,
                "storage": STORAGES[storage],
                "shape": each.shape,
                "bytes": prod(each.shape) * storage.itemsize,
            }
        return list(fields.values())


def _storage(dtype: str) -> np.dtype[Any]:
    return np.dtype(format_named(dtype).storage)


def _with_room(size: int) -> int:
    """Return more bytes than a right answer has, because one of a wrong shape is read, too."""
    return max(READ_CHUNK, 2 * size)


def _refusal(answer: schema.Answer, payload: bytearray) -> BaseException:
    """Return the exception that an answer without elements stands for."""
    match answer:
        case schema.Unsupported(reason=reason):
            refusal: BaseException = Unsupported(plain_line(reason, MAX_TEXT))
        case schema.Error(kind=kind, text=text):
            refusal = remote_error((kind, "Exception"), plain_line(text, MAX_TEXT))
        case _:
            raise FrameError(f"an answer `{answer.answer}` that was not asked for")
    if payload:
        raise FrameError(f"an answer `{answer.answer}` with a payload")
    return refusal
