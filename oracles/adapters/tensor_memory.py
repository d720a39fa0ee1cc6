"""How patterns lie in the raw memory of onnxruntime's and openvino's tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from oracles.memory_layouts import Bytes, is_packed, pack, unpack
from oracles.protocol import Bits
from specs.formats import Format


def ort_value_buffer(source: Format, bits: Bits) -> Bits:
    """Return the array from which an OrtValue of these patterns is made.

    It has their shape. Codes of less than a byte are packed into its first bytes, from the low
    bits.
    """
    if not is_packed(source):
        return np.require(bits, requirements=["C", "A"])
    packed, buffer = pack(bits, source.bits), np.zeros(bits.shape, np.uint8)
    buffer.reshape(-1)[: packed.size] = packed
    return buffer


def tensor_content(entry: Format, bits: Bits) -> Bits:
    """Return the content of a tensor's memory: contiguous patterns, packed if codes are small.

    Codes of less than a byte become a row of bytes, the first code in the low bits.
    """
    return pack(bits, entry.bits) if is_packed(entry) else np.require(bits, requirements=["C", "A"])


def initializer_content(source: Format, bits: Bits) -> bytes | list[bytes]:
    """Return the content of an initializer: encoded texts, or the raw bytes of the patterns."""
    if source.kind == "text":
        return [text.encode() for text in bits.ravel()]
    return tensor_content(source, bits).tobytes()


def patterns_of_ort_value(target: Format, value: Any) -> Bits:
    """Return a copy of the patterns in an OrtValue of this format.

    It reads the memory, but for texts: the ``numpy()`` of an OrtValue lacks most small formats.
    """
    if target.kind == "text":
        return np.asarray(value.numpy(), dtype=object)
    shape = value.shape()
    count = prod(shape)
    content = ctypes.string_at(value.data_ptr(), _size(target, count))
    memory = np.frombuffer(content, np.uint8).copy()
    return patterns_in(memory, target, count).reshape(shape)


def tensor_memory(
    target: Format, count: int, allocate: Callable[[int, type[np.uint8]], Bytes] = np.empty
) -> Bytes:
    """Return new memory of the size of a tensor of ``count`` elements.

    ``allocate`` takes the number of bytes and the dtype ``uint8``, and may leave the memory unset.
    """
    return allocate(_size(target, count), np.uint8)


def _size(target: Format, count: int) -> int:
    bits = target.bits if is_packed(target) else 8 * np.dtype(target.storage).itemsize
    return -(-count * bits // 8)


def patterns_in(memory: Bytes, target: Format, count: int) -> Bits:
    """Return the patterns in the memory of a tensor, one per element, as a row.

    They lie in this memory unless several codes share a byte.
    """
    codes = unpack(memory, count, target.bits) if is_packed(target) else memory
    return codes.view(target.storage)
