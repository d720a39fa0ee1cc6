"""GGUF files after ggml-org/ggml docs/gguf.md (version 3, little-endian), and blocks in them.

A file names dimensions from the innermost. A tensor of a block type has only codes here: every
block has the scale one. Element j of its 32 lies in the low half of byte j, element j + 16 in the
high half, as ggml comments `block_q4_0` and `block_mxfp4`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from conformance.extras.containers.parties.party import tensor
from oracles.protocol import Bits, Tensor, Unsupported
from specs.formats import format_named

ALIGNMENT = 32
BLOCK = 32
NAME = b"x"
ARCHITECTURE = "general.architecture"
TYPES: Mapping[str, int] = {
    "float32": 0,
    "float16": 1,
    "int8": 24,
    "int16": 25,
    "int32": 26,
    "int64": 27,
    "float64": 28,
    "bfloat16": 30,
}
NAMES = {number: name for name, number in TYPES.items()}
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a metadata value by its type; strings and arrays contain their lengths."""


@dataclass(frozen=True)
class BlockType:
    """A GGUF block type: its number, the dtype of its codes, and the bytes of a scale of one."""

    number: int
    dtype: str
    one: bytes

    @property
    def halves(self) -> bool:
        """Whether a byte holds two codes, in its low and its high half."""
        return format_named(self.dtype).bits == 4

    @property
    def block_bytes(self) -> int:
        """The number of bytes of a block: those of its scale and of its codes."""
        return len(self.one) + BLOCK // (2 if self.halves else 1)


BLOCK_TYPES: Mapping[str, BlockType] = {
    "gguf-q4_0": BlockType(2, "uint4", b"\x00\x3c"),
    "gguf-q8_0": BlockType(8, "int8", b"\x00\x3c"),
    "gguf-mxfp4": BlockType(39, "float4e2m1", b"\x7f"),
}
"""By container: its type of blocks. A code of Q4_0 stands for the code less 8."""


def require_blocks(container: str, dtype: str, shape: tuple[int, ...]) -> BlockType:
    """Return the block type of a container.

    Raises Unsupported if its codes have another dtype, or if a tensor of ``shape`` is empty or its
    rows do not consist of whole blocks.
    """
    kind = BLOCK_TYPES[container]
    if dtype != kind.dtype:
        raise Unsupported(f"the codes of {container} are {kind.dtype}")
    if not shape or shape[-1] % BLOCK or not prod(shape):
        raise Unsupported(f"{container} holds rows of whole blocks of {BLOCK}")
    return kind


def write_gguf(container: str, dtype: str, bits: Bits) -> bytes:
    """Return a GGUF file with one tensor; raise Unsupported if the container cannot hold it."""
    if container in BLOCK_TYPES:
        kind = require_blocks(container, dtype, bits.shape)
        number, content = kind.number, _blocks(kind, bits)
    elif dtype in TYPES:
        number, content = TYPES[dtype], np.ascontiguousarray(bits).tobytes()
    else:
        raise Unsupported(f"gguf has no type {dtype}")
    if not bits.ndim:
        raise Unsupported("a tensor of gguf has dimensions")
    dimensions = struct.pack(f"<{bits.ndim}Q", *reversed(bits.shape))
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    header += _string(ARCHITECTURE.encode()) + struct.pack("<I", STRING) + _string(b"none")
    header += _string(NAME) + struct.pack("<I", bits.ndim) + dimensions
    header += struct.pack("<IQ", number, 0)
    return _padded(header) + _padded(content)


def read_gguf(container: str, content: bytes) -> Tensor:
    """Return the only tensor of a GGUF file; of a block type, the tensor of its codes.

    Raises ValueError if the bytes do not begin as a GGUF file, if the file has several tensors or
    none, if the tensor has an unknown type or not the container's block type, or if a scale is not
    one. The version is not checked; a damaged file may raise KeyError or ``struct.error`` too.
    """
    if content[:4] != b"GGUF":
        raise ValueError("the file does not begin with GGUF")
    _, count, pairs = struct.unpack_from("<IQQ", content, 4)
    if count != 1:
        raise ValueError(f"the file has {count} tensors, not one")
    at, alignment = 24, ALIGNMENT
    for _ in range(pairs):
        key, at = _text(content, at)
        [kind], at = struct.unpack_from("<I", content, at), at + 4
        if key == b"general.alignment":
            [alignment] = struct.unpack_from("<I", content, at)
        at = _after_value(content, at, kind)
    _, at = _text(content, at)
    [rank], at = struct.unpack_from("<I", content, at), at + 4
    shape = struct.unpack_from(f"<{rank}Q", content, at)[::-1]
    number, offset = struct.unpack_from("<IQ", content, at + 8 * rank)
    start = -(-(at + 8 * rank + 12) // alignment) * alignment + offset
    if container in BLOCK_TYPES:
        return _read_blocks(BLOCK_TYPES[container], number, shape, content[start:])
    if number not in NAMES:
        raise ValueError(f"the tensor has the unknown type {number}")
    dtype = NAMES[number]
    size = prod(shape) * format_named(dtype).bits // 8
    codes = np.frombuffer(content[start : start + size], format_named(dtype).storage)
    return tensor(dtype, codes.reshape(shape))


def _blocks(kind: BlockType, bits: Bits) -> bytes:
    codes = np.ascontiguousarray(bits).reshape(-1, BLOCK)
    if kind.halves:
        low, high = np.hsplit(codes, 2)
        codes = low | high << np.uint8(4)
    return b"".join(kind.one + block.tobytes() for block in codes)


def _read_blocks(kind: BlockType, number: int, shape: tuple[int, ...], content: bytes) -> Tensor:
    if number != kind.number:
        raise ValueError(f"the tensor has type {number}, not {kind.number}")
    count = prod(shape) // BLOCK
    blocks = np.frombuffer(content[: count * kind.block_bytes], np.uint8).reshape(count, -1)
    scales, codes = np.hsplit(blocks, [len(kind.one)])
    wrong = (scale for scale in map(bytes, scales) if scale != kind.one)
    if (scale := next(wrong, None)) is not None:
        raise ValueError(f"a scale is {scale.hex()}, not one")
    if kind.halves:
        codes = np.concatenate([codes & np.uint8(15), codes >> np.uint8(4)], axis=1)
    return tensor(kind.dtype, codes.reshape(shape))


def _after_value(content: bytes, at: int, kind: int) -> int:
    """Return the position after the metadata value that begins at ``at``; ``kind`` is its type."""
    if kind == STRING:
        return _text(content, at)[1]
    if kind == ARRAY:
        inner, count = struct.unpack_from("<IQ", content, at)
        at += 12
        for _ in range(count):
            at = _after_value(content, at, inner)
        return at
    return at + SIZES[kind]


def _text(content: bytes, at: int) -> tuple[bytes, int]:
    [length] = struct.unpack_from("<Q", content, at)
    return content[at + 8 : at + 8 + length], at + 8 + length


def _string(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT)
