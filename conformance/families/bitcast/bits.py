"""The requests for bitcasts, and their bits computed in two independent ways.

One way shifts integers; the other reads the same memory as elements of the other dtype.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling
from oracles.backend.replies import stored
from oracles.backend.requests import AboutTensor
from oracles.protocol import Bits
from oracles.reference.reference_oracle import RejectedError
from specs.cases import SHAPE, Case, format_shape
from specs.formats import format_named

WORD = 64
"""The bits of the integers that are shifted."""
ANY_BYTE = 0xFF
"""The bits that a bool may have after a bitcast: bytes are moved, and no document limits them."""


class Bitcast(AboutTensor):
    """Request a bitcast of one tensor; the reply holds the target's patterns, in any shape."""

    method = "bitcast"
    lacks = "has no bitcast"
    script = "reproduce_bitcast"

    def checked(self, answer: Any) -> Bits:
        """Return patterns of the target in any shape; raise ``Unanswered`` for another answer."""
        target = format_named(self.case.target)
        return stored(target, answer, ANY_BYTE if target.kind == "boolean" else None)


class BitcastInStorage(Bitcast):
    """Request a bitcast of one tensor that begins in the middle of its storage."""

    method = "bitcast_in_storage"
    lacks = "has no tensors that begin in the middle of their storage"


class SharesMemory(AboutTensor):
    """Request whether the result of a bitcast lies in the memory of its input."""

    method = "bitcast_shares_memory"
    lacks = "does not say where a bitcast's result lies"


def answer(case: Case, bits: Bits) -> Bits:
    """Return the reference's answer to a bitcast: the same bits in the shape that the ruling gives.

    Return zeros in the tensor's own shape if the case is open; raise RejectedError if the document
    refuses it.
    """
    rules = bitcast_ruling(case)
    if rules.is_rejection:
        raise RejectedError(f"{case.document}:{case.version} refuses this: {rules.rule}")
    if rules.result is None:
        return np.zeros(bits.shape, rules.target.storage)
    return by_memory(rules, bits) if fills_bytes(rules) else by_integer(rules, bits)


def by_integer(ruling: BitcastRuling, bits: Bits) -> Bits:
    """Compute a bitcast by shifts: narrow elements are the parts of a wide one, the lowest first.

    One width must divide the other, and the ruling must give a shape. An element of 128 bits is two
    words of 64.
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
    """Return all elements in row-major order as words of 64 bits.

    An element of 128 bits is two words, the low one first.
    """
    flat = bits.reshape(-1)
    return (flat.copy().view("<u8") if flat.dtype.kind == "V" else flat).astype(np.uint64)


def by_memory(ruling: BitcastRuling, bits: Bits) -> Bits:
    """Compute a bitcast by reading a tensor's bytes as target elements.

    The result is right only if ``fills_bytes`` holds.
    """
    assert ruling.result is not None
    little = np.dtype(ruling.source.storage).newbyteorder("<")
    memory = np.ascontiguousarray(bits).astype(little, copy=False).tobytes()
    storage = np.dtype(ruling.target.storage).newbyteorder("<")
    answer: Bits = np.frombuffer(memory, storage).astype(ruling.target.storage)
    return answer.reshape(ruling.result)


def fills_bytes(ruling: BitcastRuling) -> bool:
    """Whether elements of both dtypes have as many bits in memory as the document counts."""
    pairs = ((ruling.source, ruling.widths.source), (ruling.target, ruling.widths.target))
    return all(8 * np.dtype(fmt.storage).itemsize == width for fmt, width in pairs)


def in_shape(case: Case, bits: Bits) -> Bitcast:
    """Return the request for a bitcast of a tensor, by the case of the same pair for its shape."""
    return Bitcast(replace(case, modes=((SHAPE, format_shape(bits.shape)),)), bits)


def comes_back(case: Case, bits: Bits) -> bool:
    """Whether a document's ruling of a bitcast keeps a tensor's shape and bits.

    Only the first reading counts, at any level. Raise DocumentError as ``bitcast_ruling`` does.
    """
    rules = bitcast_ruling(in_shape(case, bits).case)
    return rules.result == bits.shape and rules.keeps_bits
