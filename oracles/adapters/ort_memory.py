"""The memory of onnxruntime's tensors: how patterns lie in it, and how they come out."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from oracles.bit_packing import Bytes, is_packed, pack, unpack
from oracles.protocol import Bits
from specs.formats import Format


def buffer_of(source: Format, bits: Bits) -> Bits:
    """What an OrtValue wraps: its shape is the tensor's, its first bytes are the packed codes."""
    if not is_packed(source):
        return np.require(bits, requirements=["C", "A"])
    packed, buffer = pack(bits, source.bits), np.zeros(bits.shape, np.uint8)
    buffer.reshape(-1)[: packed.size] = packed
    return buffer


def content_of(source: Format, bits: Bits) -> bytes | list[bytes]:
    """What an initializer holds."""
    if source.kind == "text":
        return [text.encode() for text in bits.ravel()]
    return (pack(bits, source.bits) if is_packed(source) else bits).tobytes()


def answer_of(target: Format, value: Any) -> Bits:
    """The patterns in an OrtValue, whose ``numpy()`` lacks most of the small formats."""
    if target.kind == "text":
        return np.asarray(value.numpy(), dtype=object)
    shape = value.shape()
    count = int(np.prod(shape, dtype=int))
    raw = room_for(target, count)
    ctypes.memmove(raw.ctypes.data, value.data_ptr(), raw.nbytes)
    return patterns_in(raw, target, count).reshape(shape)


def room_for(target: Format, count: int) -> Bytes:
    """The memory of a tensor that is not there yet."""
    bits = target.bits if is_packed(target) else 8 * np.dtype(target.storage).itemsize
    return np.empty(-(-count * bits // 8), np.uint8)


def patterns_in(raw: Bytes, target: Format, count: int) -> Bits:
    """The patterns in a tensor's memory, one per element."""
    return (unpack(raw, count, target.bits) if is_packed(target) else raw).view(target.storage)
