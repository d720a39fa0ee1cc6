"""The bytes of containers, written down by hand from the texts of their formats."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from conformance.extras.containers.parties.dlpack_memory import (
    DlpackExporter,
    described,
    exported,
    read_described,
)
from conformance.extras.containers.parties.party import container_case
from conformance.extras.containers.parties.text_gguf import read_gguf, write_gguf
from conformance.extras.containers.parties.text_onnx import read_tensor, write_tensor
from conformance.extras.containers.parties.texts import (
    Texts,
    read_npy,
    read_safetensors,
    write_npy,
    write_safetensors,
)
from oracles.protocol import Bits, Tensor, Unsupported

ROW = np.array([1, 2, 3], np.uint8)
NAME = bytes([8 << 3 | 2, 1]) + b"x"


def row(*codes: int, storage: str = "uint8") -> Bits:
    return np.array(codes, storage)


def same(found: Tensor, dtype: str, bits: Bits) -> bool:
    return found.dtype == dtype and np.array_equal(found.bits, bits)


def test_onnx_packs_the_first_of_two_elements_low() -> None:
    content = bytes([8, 3, 16, 22, 9 << 3 | 2, 2, 0x21, 0x03]) + NAME
    assert write_tensor("int4", ROW, is_raw=True) == content
    assert same(read_tensor(content), "int4", ROW)


def test_onnx_packs_four_elements_of_two_bits_from_the_low_end() -> None:
    content = bytes([8, 3, 16, 25, 9 << 3 | 2, 1, 0b00_11_10_01]) + NAME
    assert write_tensor("uint2", ROW, is_raw=True) == content


def test_onnx_packs_four_elements_of_six_bits_in_three_bytes() -> None:
    codes = row(0x3F, 0, 0, 0x20)
    content = bytes([8, 4, 16, 27, 9 << 3 | 2, 3, 0x3F, 0, 0x80]) + NAME
    assert write_tensor("float6e2m3", codes, is_raw=True) == content
    typed = bytes([8, 4, 16, 27, 5 << 3 | 2, 4, 0x3F, 0, 0, 0x20]) + NAME
    assert write_tensor("float6e2m3", codes, is_raw=False) == typed
    assert same(read_tensor(typed), "float6e2m3", codes)


def test_onnx_holds_pairs_in_int32_data_and_negative_numbers_in_ten_bytes() -> None:
    pairs = bytes([8, 3, 16, 22, 5 << 3 | 2, 2, 0x21, 0x03]) + NAME
    assert write_tensor("int4", ROW, is_raw=False) == pairs
    minus_one = bytes([8, 1, 16, 3, 5 << 3 | 2, 10]) + b"\xff" * 9 + b"\x01" + NAME
    assert write_tensor("int8", row(0xFF), is_raw=False) == minus_one
    assert same(read_tensor(minus_one), "int8", row(0xFF))


def test_onnx_reads_fields_that_are_not_packed() -> None:
    content = bytes([8, 2, 16, 2, 5 << 3, 7, 5 << 3, 9])
    assert same(read_tensor(content), "uint8", row(7, 9))


def test_onnx_refuses_lengths_that_disagree() -> None:
    with pytest.raises(ValueError, match="1 bytes for 3 elements of int4"):
        read_tensor(bytes([8, 3, 16, 22, 9 << 3 | 2, 1, 0x21]))


@pytest.mark.parametrize(
    ("ending", "message"),
    [([16], "ends within a number"), ([9 << 3 | 2, 4, 0x21], "ends 3 bytes too early")],
)
def test_onnx_refuses_a_message_that_ends_too_early(ending: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_tensor(bytes([8, 3, *ending]))


def test_safetensors_is_a_length_a_header_and_the_elements() -> None:
    content = write_safetensors("bfloat16", row(0x3F80, storage="uint16"))
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length]) == {
        "x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}
    }
    assert content[8 + length :] == b"\x80\x3f"
    header = b'{"__metadata__":{"a":"b"},"y":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}'
    found = read_safetensors(len(header).to_bytes(8, "little") + header + b"\x07\x09")
    assert same(found, "uint8", np.array(9, np.uint8))


def test_safetensors_refuses_a_dtype_by_another_name_than_its_page() -> None:
    content = write_safetensors("float32", row(1, storage="uint32"))
    header = content[8:].partition(b"}}")[0].replace(b"F32", b"float32") + b"}}"
    with pytest.raises(Unsupported, match="names no packing of float32"):
        read_safetensors(len(header).to_bytes(8, "little") + header + content[-4:])


def test_npy_keeps_columns_and_the_byte_order() -> None:
    table = np.asfortranarray(np.arange(6, dtype=np.uint16).reshape(2, 3))
    content = write_npy("int16", table, is_big=True)
    assert content[:8] == b"\x93NUMPY\x01\x00"
    assert len(content) == 128 + 12
    assert b"'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }" in content
    assert content[128:] == struct.pack(">6H", 0, 3, 1, 4, 2, 5)
    assert same(read_npy(content), "int16", table)


def test_npy_of_an_unknown_dtype_is_read_as_its_words() -> None:
    content = write_npy("float16", row(0x3F80, storage="uint16"), is_big=False)
    found = read_npy(content.replace(b"'<f2'", b"'<V2'"))
    assert (found.dtype, found.bits.tolist()) == ("V2", [0x3F80])
    content = write_npy("complex128", np.array([1j]).view("V16"), is_big=False)
    found = read_npy(content.replace(b"'<c16'", b"'<f16'"))
    assert same(found, "f16", np.array([1j]).view("V16"))


def test_gguf_halves_of_a_block_are_sixteen_elements_apart() -> None:
    codes = np.arange(32, dtype=np.uint8) % 16
    codes[16:] = 15 - codes[16:]
    content = write_gguf("gguf-q4_0", "uint4", codes)
    assert content[:8] == b"GGUF\x03\x00\x00\x00"
    block = b"\x00\x3c" + bytes(j | (15 - j) << 4 for j in range(16))
    assert content[-32:-14] == block
    assert same(read_gguf("gguf-q4_0", content), "uint4", codes)


def test_gguf_names_dimensions_from_the_innermost() -> None:
    content = write_gguf("gguf", "int8", np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert struct.pack("<IQQI", 2, 3, 2, 24) in content
    with pytest.raises(Unsupported, match="has dimensions"):
        write_gguf("gguf", "int8", np.array(1, np.uint8))


def test_packed_rows_say_their_order() -> None:
    party, low = Texts(), container_case("packed-low-first", "uint4")
    high = container_case("packed-high-first", "uint4")
    assert party.write_container(low, ROW)[8:].tolist() == [0x21, 0x03]
    assert party.write_container(high, ROW)[8:].tolist() == [0x12, 0x30]
    assert same(party.read_container(high, party.write_container(high, ROW)), "uint4", ROW)


def test_dlpack_carries_strides_and_the_offset() -> None:
    words = np.arange(10, dtype=np.int16)[7:1:-2]
    content = described("int16", words.view(np.uint16))
    header = json.loads(content.partition(b"\n")[0])
    assert (header["code"], header["bits"], header["strides"]) == (0, 16, [-2])
    assert header["byte_offset"] > 0
    assert np.array_equal(np.from_dlpack(DlpackExporter(content)), words)
    assert same(read_described(exported(words)), "int16", words.view(np.uint16))


def test_dlpack_packs_four_bits_from_the_low_end() -> None:
    content = described("float4e2m1", ROW)
    assert content.partition(b"\n")[2] == b"\x21\x03"
    assert same(read_described(content), "float4e2m1", ROW)


def test_our_own_import_of_numpy_agrees_with_numpy() -> None:
    for array in (np.array(3, np.float32), np.zeros((2, 0), np.int8), np.eye(3)[::-1, ::2]):
        content = exported(array)
        assert np.array_equal(np.from_dlpack(DlpackExporter(content)), array)


def test_gguf_of_other_tensors_than_one_is_refused() -> None:
    content = write_gguf("gguf", "int8", np.arange(6, dtype=np.uint8))
    with pytest.raises(ValueError, match="has 2 tensors"):
        read_gguf("gguf", content[:8] + struct.pack("<Q", 2) + content[16:])
    with pytest.raises(ValueError, match="unknown type 99"):
        read_gguf("gguf", content.replace(struct.pack("<QI", 6, 24), struct.pack("<QI", 6, 99)))


def test_the_wrong_scale_of_a_later_block_is_shown() -> None:
    content = bytearray(write_gguf("gguf-q4_0", "uint4", np.zeros(64, np.uint8)))
    later = content.rindex(b"\x00\x3c")
    content[later : later + 2] = b"\x00\x40"
    with pytest.raises(ValueError, match="a scale is 0040"):
        read_gguf("gguf-q4_0", bytes(content))
