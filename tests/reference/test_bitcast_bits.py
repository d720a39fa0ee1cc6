"""Bitcasts by one integer and by memory agree with each other and with worked examples."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.bitcast.bits import by_integer, by_memory, fills_bytes
from conformance.families.bitcast.ruling import BitcastRuling, Widths, bitcast_ruling, output_shape
from specs.cases import Shape
from specs.formats import Format, format_named, formats
from specs.selection import select

NUMERIC = [form for form in formats().values() if form.kind != "text"]
BYTES = [form for form in NUMERIC if form.bits % 8 == 0]
LENGTHS = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def bitcast(source: Format, target: Format, shape: Shape, rule: str) -> BitcastRuling:
    """The ruling of a document that counts bits; ``rule`` names how the shape changes."""
    widths = Widths(source.bits, target.bits)
    result = output_shape(rule, shape, widths)
    return BitcastRuling(
        source,
        target,
        widths,
        shape,
        rule="any",
        clause="1",
        level="required",
        is_rejection=False,
        is_open=False,
        result=result,
        keeps_bits=True,
        bits_level="required",
        error_class=None,
    )


def lossless_bitcast(source: Format, target: Format, shape: Shape) -> BitcastRuling:
    """A bitcast that keeps all bits; ``shape`` is that of the array with the wider elements."""
    if target.bits > source.bits:
        return bitcast(source, target, (*shape, target.bits // source.bits), "drop-last")
    rule = "same-shape" if target.bits == source.bits else "append-ratio"
    return bitcast(source, target, shape, rule)


def patterns(data: st.DataObject, form: Format, shape: Shape) -> Any:
    count, storage = prod(shape), np.dtype(form.storage)
    codes = data.draw(st.lists(st.integers(0, form.mask), min_size=count, max_size=count))
    raw = b"".join(code.to_bytes(storage.itemsize, "little") for code in codes)
    return np.frombuffer(raw, storage.newbyteorder("<")).astype(storage).reshape(shape)


def divides(one: Format, other: Format) -> bool:
    return max(one.bits, other.bits) % min(one.bits, other.bits) == 0


PAIRS = [(one, other) for one in NUMERIC for other in NUMERIC if divides(one, other)]
OF_BYTES = [(one, other) for one in BYTES for other in BYTES]


def same(one: Any, other: Any) -> bool:
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


@given(st.sampled_from(OF_BYTES), LENGTHS, st.data())
def test_integer_and_memory_agree_where_elements_fill_their_bytes(
    pair: tuple[Format, Format], shape: Shape, data: st.DataObject
) -> None:
    ruling = lossless_bitcast(*pair, shape)
    assert fills_bytes(ruling)
    bits = patterns(data, ruling.source, ruling.shape)
    before = bits.copy()
    whole, memory = by_integer(ruling, bits), by_memory(ruling, bits)
    assert same(whole, memory)
    assert whole.shape == ruling.result
    assert same(bits, before)


@given(st.sampled_from(OF_BYTES), st.integers(1, 3), st.data())
def test_the_memory_order_of_the_input_does_not_matter(
    pair: tuple[Format, Format], length: int, data: st.DataObject
) -> None:
    ruling = lossless_bitcast(*pair, (length, 2))
    bits = patterns(data, ruling.source, ruling.shape)
    fortran = np.asfortranarray(bits)
    assert same(by_memory(ruling, fortran), by_memory(ruling, bits))
    assert same(by_integer(ruling, fortran), by_integer(ruling, bits))


@given(st.sampled_from(PAIRS), LENGTHS, st.data())
def test_a_bitcast_there_and_back_returns_the_same_bits(
    pair: tuple[Format, Format], shape: Shape, data: st.DataObject
) -> None:
    there, (source, target) = lossless_bitcast(*pair, shape), pair
    bits = patterns(data, source, there.shape)
    there_shape = there.result
    assert there_shape is not None
    rule = "append-ratio" if target.bits > source.bits else "drop-last"
    if source.bits == target.bits:
        rule = "same-shape"
    back = bitcast(target, source, there_shape, rule)
    answer = by_integer(back, by_integer(there, bits))
    assert same(answer, bits)
    assert int(by_integer(there, bits).size) * target.bits == bits.size * source.bits


# Source, target, shape and codes; the shape and codes of the result. The low end comes first.
WORKED: list[tuple[str, str, Shape, list[int], Shape, list[int]]] = [
    ("float32", "float16", (), [0x3F80_1234], (2,), [0x1234, 0x3F80]),
    ("float16", "float32", (2,), [0x1234, 0x3F80], (), [0x3F80_1234]),
    ("uint8", "uint64", (8,), [1, 2, 3, 4, 5, 6, 7, 8], (), [0x0807_0605_0403_0201]),
    ("float32", "float32", (), [0x7F80_0001], (), [0x7F80_0001]),
    ("float64", "float16", (0,), [], (0, 4), []),
    ("int8", "int32", (2, 0, 4), [], (2, 0), []),
    ("complex64", "float32", (1,), [0x40000000_3F800000], (1, 2), [0x3F800000, 0x40000000]),
    ("float64", "complex128", (2,), [1, 2], (), [2 << 64 | 1]),
    ("complex128", "uint8", (), [0x0F << 120 | 0xA0], (16,), [0xA0, *[0] * 14, 0x0F]),
    ("uint8", "uint4", (2,), [0x21, 0xFE], (2, 2), [1, 2, 0xE, 0xF]),
    ("int2", "uint8", (1, 4), [1, 2, 3, 0], (1,), [0b00_11_10_01]),
    ("float6e3m2", "float6e2m3", (3,), [1, 63, 32], (3,), [1, 63, 32]),
    ("bool", "uint8", (8,), [1, 0, 0, 0, 0, 0, 0, 1], (), [0x81]),
    ("uint4", "bool", (1,), [0b0110], (1, 4), [0, 1, 1, 0]),
    ("bool", "bool", (2,), [1, 0], (2,), [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "shape", "codes", "result", "expected"),
    WORKED,
    ids=[f"{row[0]}{row[2]}-{row[1]}" for row in WORKED],
)
def test_results_worked_out_by_hand(
    source: str,
    target: str,
    shape: Shape,
    codes: list[int],
    result: Shape,
    expected: list[int],
) -> None:
    def array(name: str, codes: list[int], shape: Shape) -> Any:
        storage = np.dtype(format_named(name).storage)
        raw = b"".join(code.to_bytes(storage.itemsize, "little") for code in codes)
        return np.frombuffer(raw, storage.newbyteorder("<")).astype(storage).reshape(shape)

    rule = "append-ratio" if len(result) > len(shape) else "drop-last"
    rule = "same-shape" if len(result) == len(shape) else rule
    ruling = bitcast(format_named(source), format_named(target), shape, rule)
    expected_bits = array(target, expected, result)
    bits = array(source, codes, shape)
    assert same(by_integer(ruling, bits), expected_bits)
    if fills_bytes(ruling):
        assert same(by_memory(ruling, bits), expected_bits)


def test_elements_narrower_than_a_byte_do_not_fill_it() -> None:
    def fills(source: str, target: str) -> bool:
        return fills_bytes(lossless_bitcast(format_named(source), format_named(target), (1,)))

    assert fills("float32", "int32")
    assert fills("complex128", "int8")
    for source, target in (
        ("bool", "bool"),
        ("uint8", "uint4"),
        ("int4", "int8"),
        ("bool", "int8"),
    ):
        assert not fills(source, target), source


def test_a_bool_counts_eight_bits_where_a_document_counts_bytes() -> None:
    # torch's page counts whole bytes, XLA's code counts bits.
    by_document = {
        case.document: bitcast_ruling(case).widths
        for case in select(["torch-view", "xla-bitcast-convert"])
        if (case.source, case.target) == ("bool", "int8")
    }
    assert by_document == {"torch-view": Widths(8, 8), "xla-bitcast-convert": Widths(1, 8)}
