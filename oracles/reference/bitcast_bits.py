"""Bitcasts computed in two independent ways: through integers, and through memory."""

from __future__ import annotations

from math import lcm

import numpy as np

from oracles.protocol import Bits
from specs.bitcast_ruling import BitcastRuling
from specs.formats import Format


def by_integer(ruling: BitcastRuling, bits: Bits) -> Bits:
    """Bitcast by joining elements to an integer, the first lowest, and splitting it anew.

    As many are joined as make whole elements of both dtypes; what follows does not depend on them.
    """
    assert ruling.result is not None
    width, new_width = ruling.widths.source, ruling.widths.target
    joined = lcm(width, new_width) // width
    given, codes = codes_of(bits), list[int]()
    for first in range(0, len(given), joined):
        part = given[first : first + joined]
        whole = sum(code << (index * width) for index, code in enumerate(part))
        codes += [
            whole >> (index * new_width) & (1 << new_width) - 1
            for index in range(len(part) * width // new_width)
        ]
    return elements(ruling.target, codes).reshape(ruling.result)


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
