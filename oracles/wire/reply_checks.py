"""What an answer of a program must be, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from oracles.isolation.frames import AT_ONCE, STORAGES, TEXT, Frame, FrameError, unpacked
from oracles.isolation.remote_errors import error_named
from oracles.protocol import Bits
from oracles.protocol import Unsupported as NotOffered
from oracles.wire.schema import Error, Room, Unsupported, Values, answer_of, in_one_line
from oracles.wire.shared_memory import SharedMemory
from specs.formats import format_named

MOST_TEXT = 1 << 26


@dataclass(frozen=True)
class Expected:
    """Elements of a dtype, in the payload or in a part of the shared memory."""

    dtype: str
    memory: SharedMemory | None = None
    room: Room | None = None

    @property
    def storage(self) -> np.dtype[Any]:
        """What an element is stored in."""
        return np.dtype(format_named(self.dtype).storage)

    def most(self, elements: int) -> int:
        """What a payload of so many elements may weigh; one of another shape is still heard."""
        if STORAGES[self.storage] == TEXT:
            return MOST_TEXT
        return max(AT_ONCE, 2 * elements * self.storage.itemsize)

    def value(self, frame: Frame) -> Bits | BaseException:
        """The elements, or the error to be raised; a ``FrameError`` where it is neither."""
        answer = answer_of(frame.header)
        if frame.payload and not isinstance(answer, Values):
            raise FrameError(f"an answer `{answer.answer}` with a payload")
        match answer:
            case Values(shape=shape, in_memory=True):
                return self._from_memory(frame, shape)
            case Values(shape=shape):
                return self._array(shape, frame.payload)
            case Unsupported(reason=reason):
                return NotOffered(in_one_line(reason))
            case Error(kind=kind, text=text):
                return error_named((kind, "Exception"), in_one_line(text))
            case _:
                raise FrameError(f"an answer `{answer.answer}` that was not asked for")

    def _array(self, shape: list[int], elements: bytearray) -> Bits:
        storage = STORAGES[self.storage]
        field = {"name": "", "storage": storage, "shape": shape, "bytes": len(elements)}
        return unpacked([field], elements)[""]

    def _from_memory(self, frame: Frame, shape: list[int]) -> Bits:
        size = prod(shape) * self.storage.itemsize
        if self.memory is None or self.room is None or frame.payload or size > self.room.bytes:
            raise FrameError("an answer in memory that was not given to it")
        there = np.frombuffer(self.memory.content(self.room.offset, size), self.storage)
        answers = there.reshape(shape)
        if format_named(self.dtype).bits == 8 * self.storage.itemsize:
            # Whatever the program writes later, it is a code of the dtype.
            return answers
        return answers.copy()
