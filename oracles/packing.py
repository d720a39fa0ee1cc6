"""Codes of less than a byte, packed as frameworks store them: low bits first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

Bytes = NDArray[np.uint8]


def is_packed(entry: Format) -> bool:
    """Whether several codes of this format share a byte."""
    return entry.kind in ("float", "integer") and entry.bits < 8


def pack(codes: Bytes, bits: int) -> Bytes:
    """Codes of so many bits, one per byte, into as few bytes as hold them."""
    stream = np.unpackbits(codes.reshape(-1, 1), axis=1, count=bits, bitorder="little")
    return np.packbits(stream, bitorder="little")


def unpack(packed: Bytes, count: int, bits: int) -> Bytes:
    """The first ``count`` codes of so many bits, one per byte."""
    stream = np.unpackbits(packed, count=count * bits, bitorder="little")
    return np.packbits(stream.reshape(count, bits), axis=1, bitorder="little").ravel()
