"""The tensors that are put into containers: few elements first, then every pattern.

All patterns of up to 16 bits are asked, of wider dtypes those that the quick tier asks of any
target. Elements of a row are distinct as far as the dtype allows, so that a wrong order shows.
Packed elements are asked in every combination of a byte, and in rows that end within one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod

import numpy as np

from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.bit_packing import is_packed
from oracles.memory_layouts import Layout, with_layout
from oracles.protocol import Bits
from specs.formats import EXHAUSTIVE_BITS, Format, format_named, formats

ROWS = (1, 2, 3, 5, 7, 8)
"""Lengths of short rows: with odd ones the last byte of packed elements is not full."""
SHAPES: tuple[tuple[int, ...], ...] = ((1, 1), (3, 5), (2, 3, 5), (4, 1, 3))
EMPTY: tuple[tuple[int, ...], ...] = ((0,), (2, 0, 3))
BLOCKS: tuple[tuple[int, ...], ...] = ((32,), (3, 64))
"""Rows of whole blocks, as block formats want them."""
BYTES_IN_ORDER = 0x0102030405060708090A0B0C0D0E0F1D
"""A pattern of which no two bytes are equal."""
ODD_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""An odd number far from any power of two: its multiples are distinct in any width."""


@dataclass(frozen=True)
class Probe:
    """A tensor as it lies in memory; one of the other byte order has the same patterns."""

    name: str
    bits: Bits
    is_big: bool = False
    layout: str = ""
    """The statement with which a script gives ``bits`` its layout."""

    @property
    def is_strided(self) -> bool:
        """Whether neighbors in the tensor are no neighbors in memory, or are in another order."""
        return not self.bits.flags.c_contiguous


def storable() -> list[str]:
    """The names of the dtypes that containers hold: all but texts."""
    return [name for name, entry in formats().items() if entry.kind != "text"]


@cache
def probes(dtype: str) -> tuple[Probe, ...]:
    """Return the tensors of a dtype, those with few elements first."""
    return tuple(_probes(format_named(dtype)))


def row_of(entry: Format, count: int) -> Bits:
    """Return a row of patterns that differ from each other as far as the dtype allows."""
    words = [(BYTES_IN_ORDER + at * ODD_STEP) & entry.mask for at in range(count)]
    return _words(entry, words)


def _words(entry: Format, words: list[int]) -> Bits:
    if entry.bits <= 64:
        return np.array(words, entry.storage)
    width = entry.bits // 8
    content = b"".join(word.to_bytes(width, "little") for word in words)
    return np.frombuffer(content, entry.storage).copy()


def _probes(entry: Format) -> Iterator[Probe]:
    for count in ROWS:
        yield Probe(f"row of {count}", row_of(entry, count))
    yield Probe("scalar", row_of(entry, 1).reshape(()))
    for shape in EMPTY:
        yield Probe(f"empty, {_written(shape)}", np.zeros(shape, entry.storage))
    for shape in SHAPES:
        yield Probe(f"shape {_written(shape)}", row_of(entry, prod(shape)).reshape(shape))
    yield from _layouts(entry)
    if entry.bits > 8:
        yield Probe("big-endian", row_of(entry, 3), True, "bits = bits.byteswap()\n")
    for shape in BLOCKS:
        yield Probe(f"blocks, {_written(shape)}", _blocks(entry, shape))
    yield Probe(
        "every pattern" if entry.bits <= EXHAUSTIVE_BITS else "telling patterns", whole(entry)
    )


def _layouts(entry: Format) -> Iterator[Probe]:
    table, row = row_of(entry, 15).reshape(3, 5), row_of(entry, 8)
    for name, bits, layout, statement in (
        ("columns first", table, Layout((1, 3)), "np.asfortranarray(bits)"),
        ("every second element", row, Layout((2,)), "np.repeat(bits, 2)[::2]"),
        ("backwards", row, Layout((-1,)), "bits[::-1].copy()[::-1]"),
        ("begins after a boundary", row, Layout((1,), 1), "np.append(bits[:1], bits)[1:]"),
        ("part of a wider table", table, Layout((7, 1), 1), "np.tile(bits, 2)[:, :5]"),
    ):
        yield Probe(name, with_layout(bits, layout), layout=f"bits = {statement}\n")


def _blocks(entry: Format, shape: tuple[int, ...]) -> Bits:
    """Return rows of blocks; signed bytes have the largest number in each, the smallest in none."""
    row = row_of(entry, prod(shape))
    if entry.kind == "integer" and entry.bits == 8:
        row[row == 0x80] = 0x81
        row[::32] = 0x7F
    return row.reshape(shape)


def whole(entry: Format) -> Bits:
    """Return every pattern of up to 16 bits in a row, of wider dtypes the telling ones.

    Packed elements come in all combinations of a byte.
    """
    if entry.kind == "complex":
        part = few_patterns(entry.entry.part, "string", 0).astype(object)
        pairs = zip(part, np.roll(part, part.size // 2 + 1), strict=True)
        half = entry.bits // 2
        return _words(entry, [int(real) | int(imaginary) << half for real, imaginary in pairs])
    if entry.bits > EXHAUSTIVE_BITS:
        return few_patterns(entry.name, "string", 0)
    if is_packed(entry):
        count = 8 // entry.bits if entry.bits != 6 else 4
        if entry.bits == 6:
            # Each pattern at each of the four places in three bytes.
            rows = [
                np.roll([code, 0x15, 0x2A, 0x3F], place) for code in range(64) for place in range(4)
            ]
            return np.array(rows, np.uint8).ravel()
        return np.array([*product(range(1 << entry.bits), repeat=count)], np.uint8).ravel()
    return every_pattern(entry)


def _written(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
