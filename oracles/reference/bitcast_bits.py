"""Bitcasts computed in two independent ways: through integers, and through memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from specs.bitcast_ruling import BitcastRuling
from specs.formats import Format

WORD = 64
"""The bits of the integers that are shifted."""


def by_integer(ruling: BitcastRuling, bits: Bits) -> Bits:
    """Bitcast by shifts: the narrower elements are the parts of a wider one, the lowest first.

    One width must divide the other. An element of 128 bits is two words of 64.
    """
    assert ruling.result is not None
    storage, words = np.dtype(ruling.target.storage), _words(bits)
    width, new_width = (min(each, WORD) for each in (ruling.widths.source, ruling.widths.target))
    if new_width < width:
        words = words[:, np.newaxis] >> np.arange(0, width, new_width, dtype=np.uint64)
        words &= np.uint64((1 << new_width) - 1)
    elif new_width > width:
        parts = words.reshape(-1, new_width // width)
        words = np.bitwise_or.reduce(parts << np.arange(0, new_width, width, dtype=np.uint64), 1)
    if storage.kind == "V":
        return words.reshape(-1).astype("<u8").view(storage).reshape(ruling.result)
    return words.astype(storage).reshape(ruling.result)


def _words(bits: Bits) -> NDArray[np.uint64]:
    """All elements in row-major order, each as one word of 64 bits or as two, the low one first."""
    flat = bits.reshape(-1)
    return (flat.copy().view("<u8") if flat.dtype.kind == "V" else flat).astype(np.uint64)


def by_memory(ruling: BitcastRuling, bits: Bits) -> Bits:
    """Bitcast by reading the same bytes as other elements; only valid if ``fills_bytes``."""
    assert ruling.result is not None
    little = np.dtype(ruling.source.storage).newbyteorder("<")
    memory = np.ascontiguousarray(bits).astype(little, copy=False).tobytes()
    storage = np.dtype(ruling.target.storage).newbyteorder("<")
    answer: Bits = np.frombuffer(memory, storage).astype(ruling.target.storage)
    return answer.reshape(ruling.result)


def fills_bytes(ruling: BitcastRuling) -> bool:
    """Whether elements take as many bits in memory as the document counts for them."""
    pairs = ((ruling.source, ruling.widths.source), (ruling.target, ruling.widths.target))
    return all(8 * np.dtype(fmt.storage).itemsize == width for fmt, width in pairs)


def codes_of(bits: Bits) -> list[int]:
    """Return the patterns of all elements in row-major order, as Python integers."""
    if bits.dtype.kind == "V":
        return [int.from_bytes(each.tobytes(), "little") for each in bits.reshape(-1)]
    return [int(each) for each in bits.reshape(-1).tolist()]


def elements(fmt: Format, codes: list[int]) -> Bits:
    """Make a one-dimensional array of patterns in a format's storage dtype."""
    storage = np.dtype(fmt.storage)
    if storage.kind == "V":
        raw = b"".join(code.to_bytes(storage.itemsize, "little") for code in codes)
        return np.frombuffer(raw, storage).copy()
    return np.array(codes, storage)
