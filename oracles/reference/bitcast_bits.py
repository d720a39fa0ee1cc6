"""The bits of a bitcast, told twice: by one large integer, and by the bytes in memory."""

from __future__ import annotations

from math import prod

import numpy as np

from oracles.protocol import Bits
from specs.bitcast_ruling import BitcastRuling
from specs.formats import Format


def by_integer(ruling: BitcastRuling, bits: Bits) -> Bits:
    """All elements as one number, the first lowest, cut anew."""
    assert ruling.result is not None
    width, cut = ruling.widths.source, ruling.widths.target
    whole = 0
    for place, code in enumerate(codes_of(bits)):
        whole |= code << (place * width)
    codes = [whole >> (place * cut) & (1 << cut) - 1 for place in range(prod(ruling.result))]
    return elements(ruling.target, codes).reshape(ruling.result)


def by_memory(ruling: BitcastRuling, bits: Bits) -> Bits:
    """The same memory read as other elements; only where every element fills its bytes."""
    assert ruling.result is not None
    little = np.dtype(ruling.source.storage).newbyteorder("<")
    memory = np.ascontiguousarray(bits).astype(little, copy=False).tobytes()
    storage = np.dtype(ruling.target.storage).newbyteorder("<")
    answer: Bits = np.frombuffer(memory, storage).astype(ruling.target.storage)
    return answer.reshape(ruling.result)


def fills_bytes(ruling: BitcastRuling) -> bool:
    """Whether elements lie in memory as the document counts them."""
    pairs = ((ruling.source, ruling.widths.source), (ruling.target, ruling.widths.target))
    return all(8 * np.dtype(form.storage).itemsize == width for form, width in pairs)


def codes_of(bits: Bits) -> list[int]:
    """The patterns of all elements, one after another."""
    if bits.dtype.kind == "V":
        return [int.from_bytes(each.tobytes(), "little") for each in bits.reshape(-1)]
    return [int(each) for each in bits.reshape(-1).tolist()]


def elements(form: Format, codes: list[int]) -> Bits:
    """Patterns in a format's storage."""
    storage = np.dtype(form.storage)
    if storage.kind == "V":
        raw = b"".join(code.to_bytes(storage.itemsize, "little") for code in codes)
        return np.frombuffer(raw, storage).copy()
    return np.array(codes, storage)
