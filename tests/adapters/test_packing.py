"""Packing: low bits first, in as few bytes as hold the codes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.memory_layouts import SPREADS, Bytes, pack, unpack

WIDTHS = st.integers(1, 8)


def one_by_one(packed: bytes, count: int, bits: int) -> list[int]:
    """Unpack codes from bytes, which are read as one little-endian integer."""
    number = int.from_bytes(packed, "little")
    return [number >> (bits * place) & ((1 << bits) - 1) for place in range(count)]


@given(
    WIDTHS.flatmap(lambda bits: st.tuples(st.just(bits), st.lists(st.integers(0, (1 << bits) - 1))))
)
def test_round_trip(drawn: tuple[int, list[int]]) -> None:
    bits, codes = drawn
    packed = pack(np.array(codes, np.uint8), bits)
    assert packed.size == -(-len(codes) * bits // 8)
    assert unpack(packed, len(codes), bits).tolist() == codes


@given(WIDTHS, st.binary(max_size=40), st.data())
def test_any_bytes_any_count(bits: int, packed: bytes, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(packed) * 8 // bits))
    codes = unpack(np.frombuffer(packed, np.uint8), count, bits)
    assert (codes.dtype.name, codes.shape) == ("uint8", (count,))
    assert codes.tolist() == one_by_one(packed, count, bits)


@pytest.mark.parametrize("bits", SPREADS)
def test_every_byte_at_every_place_in_a_vector(bits: int) -> None:
    packed: Bytes = np.random.default_rng(bits).permutation(256 * 9).astype(np.uint8)
    for count in range(packed.size * 8 // bits - 70, packed.size * 8 // bits + 1):
        codes = unpack(packed, count, bits).tolist()
        assert codes == one_by_one(packed.tobytes(), count, bits)


def test_strided_bytes() -> None:
    packed = np.array([0xF1, 0, 0x07, 0], np.uint8)[::2]
    assert unpack(packed, 3, 4).tolist() == [0x1, 0xF, 0x7]


def test_low_bits_come_first() -> None:
    assert pack(np.array([0x1, 0xF, 0x7], np.uint8), 4).tolist() == [0xF1, 0x07]
    assert pack(np.array([1, 2, 3, 0, 2], np.uint8), 2).tolist() == [0b00_11_10_01, 0b10]
    assert unpack(np.array([0xF1, 0x07], np.uint8), 3, 4).tolist() == [0x1, 0xF, 0x7]
