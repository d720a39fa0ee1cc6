"""Faults of bitcasts: the order of bytes and elements, the shape, and bits that change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from lab.mutants.fault import Past, Replaces, TensorFault
from lab.mutants.tensors import overwritten
from oracles.protocol import Bits

OF_SHAPES = (
    "scales-the-last-axis", "adds-or-drops-an-axis", "keeps-the-shape", "other-shape", "malformed",
    "raises-*",
)  # fmt: skip
OF_BITS = (
    "reverse*", "loses-*", "quiets-nans", "replaces-nans", "flushes-bits", "changes-bits",
    "changes-with-layout",
)  # fmt: skip
"""The causes that name a wrong shape, and those that name wrong bits."""


def faults() -> Iterator[TensorFault]:
    """Yield the faults of bitcasts."""
    for name, replaces in BITCASTS.items():
        yield TensorFault(name, "bitcasts", replaces, (*OF_SHAPES, *OF_BITS))
    for name, accepts in ACCEPTED.items():
        causes = (*OF_SHAPES, "accepts-*")
        yield TensorFault(name, "bitcasts", lambda bits, answer, past: answer, causes, accepts)


def _shaped(flat: Bits, like: Bits) -> Bits:
    return flat.reshape(like.shape)


def _grouped(size: int, answer: Bits) -> Bits:
    """Reverse the order of elements within groups of ``size``."""
    flat, whole = answer.reshape(-1).copy(), answer.size // size * size
    flat[:whole] = flat[:whole].reshape(-1, size)[:, ::-1].reshape(-1)
    return _shaped(flat, answer)


def _quieted(bits: Bits, answer: Bits, past: Past) -> Bits:
    """Quiet NaNs as a move through a register of floats does."""
    ieee = {2: (0x7C00, 0x0200), 4: (0x7F800000, 0x00400000), 8: (0x7FF0 << 48, 0x0008 << 48)}
    if answer.dtype.itemsize not in ieee:
        return answer
    infinity, quiet = (answer.dtype.type(each) for each in ieee[answer.dtype.itemsize])
    magnitude = answer & answer.dtype.type((1 << (8 * answer.dtype.itemsize - 1)) - 1)
    return np.where(magnitude > infinity, answer | quiet, answer)


def _first_repeated(bits: Bits, answer: Bits, past: Past) -> Bits:
    return np.full_like(answer, answer.reshape(-1)[0]) if answer.size else answer


def _without_negative_zero(bits: Bits, answer: Bits, past: Past) -> Bits:
    if answer.dtype.kind != "u":
        return answer  # Patterns of 128 bits are no words.
    sign = answer.dtype.type(1 << (8 * answer.dtype.itemsize - 1))
    return np.where(answer == sign, answer ^ sign, answer)


def _in_lowest_bytes(change: Callable[[Bits], Bits], answer: Bits) -> Bits:
    """Change the lowest byte of each pattern, which may be wider than a word."""
    flat = answer.reshape(-1).copy()
    lowest = flat.view(np.uint8).reshape(-1, flat.dtype.itemsize)[:, 0]
    lowest[:] = change(lowest)
    return _shaped(flat, answer)


def _zeros_if(is_wrong: Callable[[Bits], bool]) -> Replaces:
    return lambda bits, answer, past: np.zeros_like(answer) if is_wrong(bits) else answer


def _is_turned(bits: Bits) -> bool:
    return bits.flags.f_contiguous and not bits.flags.c_contiguous


def _is_misaligned(bits: Bits) -> bool:
    return bool(bits.ctypes.data % 16)


def _of_equal_zeros(bits: Bits, answer: Bits, past: Past) -> Any:
    """Answer zeros as the first zeros of that shape: a cache that takes -0 for 0."""
    if bits.dtype.kind != "u" or (bits & (np.iinfo(bits.dtype).max >> 1)).any():
        return answer
    return past.kept.setdefault(bits.shape, answer)


def _in_the_shape_of_as_many(bits: Bits, answer: Bits, past: Past) -> Any:
    shape = past.kept.setdefault((bits.size, answer.size), answer.shape)
    return answer.reshape(shape)


ACCEPTED: Mapping[str, Callable[[Bits], bool]] = {
    "accepts-empty-tensors": lambda bits: bits.ndim > 0 and not bits.size,
    "accepts-rank-5": lambda bits: bits.ndim == 5,
}
"""By fault, the tensors that it answers although their shape must be refused."""
BITCASTS: dict[str, Replaces] = {
    "reverses-the-bytes": lambda bits, answer, past: answer.byteswap(),
    "exchanges-pairs-of-elements": lambda bits, answer, past: _grouped(2, answer),
    "reverses-groups-of-four": lambda bits, answer, past: _grouped(4, answer),
    "reverses-all-elements": lambda bits, answer, past: _shaped(answer.reshape(-1)[::-1], answer),
    "quiets-nans": _quieted,
    "loses-the-sign-of-zero": _without_negative_zero,
    "clears-the-lowest-bit": lambda bits, answer, past: _in_lowest_bytes(
        lambda lowest: lowest & np.uint8(0xFE), answer
    ),
    "flattens": lambda bits, answer, past: answer.reshape(-1),
    "adds-a-dimension": lambda bits, answer, past: answer[..., np.newaxis],
    "turns-the-shape": lambda bits, answer, past: answer.reshape(answer.shape[::-1]),
    "loses-the-last-element": lambda bits, answer, past: answer.reshape(-1)[:-1],
    "repeats-the-first-element": _first_repeated,
    "gives-zeros": lambda bits, answer, past: np.zeros_like(answer),
    "gives-zeros-from-31-elements": lambda bits, answer, past: (
        np.zeros_like(answer) if bits.size > 30 else answer
    ),
    "gives-zeros-from-1000-elements": lambda bits, answer, past: (
        np.zeros_like(answer) if bits.size > 1000 else answer
    ),
    "gives-zeros-for-strides": lambda bits, answer, past: (
        answer if bits.flags.c_contiguous else np.zeros_like(answer)
    ),
    "gives-zeros-for-rank-3": lambda bits, answer, past: (
        np.zeros_like(answer) if bits.ndim == 3 else answer
    ),
    "gives-zeros-from-rank-5": _zeros_if(lambda bits: bits.ndim >= 5),
    "gives-zeros-for-columns-first": _zeros_if(_is_turned),
    "gives-zeros-off-16-bytes": _zeros_if(_is_misaligned),
    "answers-minus-zero-as-zero": _of_equal_zeros,
    "remembers-the-shape-by-the-size": _in_the_shape_of_as_many,
    "overwrites-the-last-answer": overwritten,
    "loses-the-shape-of-empty-tensors": lambda bits, answer, past: (
        answer.reshape(-1) if not answer.size else answer
    ),
    "loses-the-shape-of-scalars": lambda bits, answer, past: (
        answer.reshape(-1) if not bits.ndim else answer
    ),
    "spoils-every-second-call": lambda bits, answer, past: (
        _in_lowest_bytes(lambda lowest: lowest ^ np.uint8(1), answer) if past.calls % 2 else answer
    ),
}
