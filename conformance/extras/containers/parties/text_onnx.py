"""TensorProto after the comments of onnx.proto, written and read byte by byte.

Field numbers, types and packings stand in `onnx/onnx.in.proto` of onnx 1.23: `raw_data`, and the
field that belongs to a dtype. Elements of 2, 4 and 6 bits are packed from the lowest bits in
`raw_data`; in `int32_data` an element of 6 bits has an entry of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from conformance.extras.containers.parties.party import tensor
from oracles.memory_layouts import is_packed, pack, unpack
from oracles.protocol import Bits, Tensor, Unsupported
from specs.formats import format_named

NUMBERS: Mapping[str, int] = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8e4m3fn": 17,
    "float8e4m3fnuz": 18,
    "float8e5m2": 19,
    "float8e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4e2m1": 23,
    "float8e8m0": 24,
    "uint2": 25,
    "int2": 26,
    "float6e2m3": 27,
    "float6e3m2": 28,
}
"""By dtype: its number in the enum DataType of onnx.proto."""
NAMES = {number: name for name, number in NUMBERS.items()}

DIMS, DATA_TYPE, FLOATS, INT32S, INT64S, NAME, RAW, DOUBLES, UINT64S = 1, 2, 4, 5, 7, 8, 9, 10, 11
FIELDS: Mapping[str, int] = {
    "float32": FLOATS,
    "complex64": FLOATS,
    "float64": DOUBLES,
    "complex128": DOUBLES,
    "int64": INT64S,
    "uint32": UINT64S,
    "uint64": UINT64S,
}
"""By dtype: the field that holds its elements; those of all other dtypes are in `int32_data`."""
VARINT, LENGTH, WORD64, WORD32 = 0, 2, 1, 5
SIX = 6
"""Bits of the elements that are packed only in `raw_data`."""


def number_of(dtype: str) -> int:
    """Return a dtype's number in onnx.proto's DataType; raise Unsupported if it has none."""
    try:
        return NUMBERS[dtype]
    except KeyError:
        raise Unsupported(f"onnx.proto has no dtype {dtype}") from None


def write_tensor(dtype: str, bits: Bits, *, is_raw: bool) -> bytes:
    """Return a serialized TensorProto named `x`.

    Its elements are in `raw_data` if ``is_raw``, otherwise in the field for the dtype. Raises
    Unsupported if onnx.proto lacks the dtype.
    """
    message = b"".join(_varint(DIMS << 3 | VARINT) + _varint(length) for length in bits.shape)
    message += _varint(DATA_TYPE << 3 | VARINT) + _varint(number_of(dtype))
    if is_raw:
        field, content = RAW, raw_data(dtype, bits)
    else:
        field, content = FIELDS.get(dtype, INT32S), _typed(dtype, bits)
    message += _delimited(field, content)
    return message + _delimited(NAME, b"x")


def raw_data(dtype: str, bits: Bits) -> bytes:
    """Return the bytes of `raw_data`; elements of less than a byte are packed."""
    entry, row = format_named(dtype), np.ascontiguousarray(bits).reshape(-1)
    if is_packed(entry):
        return pack(row, entry.bits).tobytes()
    return row.tobytes()


def _typed(dtype: str, bits: Bits) -> bytes:
    entry, row = format_named(dtype), np.ascontiguousarray(bits).reshape(-1)
    if FIELDS.get(dtype) in (FLOATS, DOUBLES):
        return row.tobytes()
    if is_packed(entry) and entry.bits != SIX:
        return b"".join(map(_varint, pack(row, entry.bits).tolist()))
    values = row.tolist()
    if entry.kind == "integer" and entry.is_signed:
        # A negative number is sign-extended to 64 bits, whatever its field's width.
        values = [code - (code >> entry.bits - 1 << entry.bits) & (1 << 64) - 1 for code in values]
    return b"".join(map(_varint, values))


def read_tensor(message: bytes) -> Tensor:
    """Return the tensor of a serialized TensorProto.

    Raises ValueError for an unknown data type or wire type, if the message ends too early, and if
    the number of elements does not fit the shape.
    """
    shape: list[int] = []
    contents: dict[int, bytes | list[int]] = {}
    data_type = 0
    for field, value in fields_of(message):
        if field == DIMS:
            shape += [value] if isinstance(value, int) else list(_varints(value))
        elif field == DATA_TYPE and isinstance(value, int):
            data_type = value
        elif field == RAW and isinstance(value, bytes):
            contents[RAW] = value
        elif field in (FLOATS, DOUBLES) and isinstance(value, bytes):
            earlier = contents.get(field, b"")
            assert isinstance(earlier, bytes)
            contents[field] = earlier + value
        elif field in (INT32S, INT64S, UINT64S):
            numbers = [value] if isinstance(value, int) else list(_varints(value))
            earlier = contents.setdefault(field, [])
            assert isinstance(earlier, list)
            earlier += numbers
    if data_type not in NAMES:
        raise ValueError(f"the tensor has the unknown data type {data_type}")
    dtype = NAMES[data_type]
    field = RAW if RAW in contents else FIELDS.get(dtype, INT32S)
    held = contents.get(field, b"")
    codes = _codes(dtype, held, prod(shape)) if held else np.zeros(0, format_named(dtype).storage)
    if codes.size != prod(shape):
        raise ValueError(f"{codes.size} elements for the shape {tuple(shape)}")
    return tensor(dtype, codes.reshape(shape))


def _codes(dtype: str, held: bytes | list[int], count: int) -> Bits:
    entry = format_named(dtype)
    if isinstance(held, bytes):
        if is_packed(entry):
            if len(held) != -(-count * entry.bits // 8):
                raise ValueError(f"{len(held)} bytes for {count} elements of {dtype}")
            return unpack(np.frombuffer(held, np.uint8), count, entry.bits)
        return np.frombuffer(held, entry.storage)
    if is_packed(entry) and entry.bits != SIX:
        packed = np.array([number & 0xFF for number in held], np.uint8)
        return unpack(packed, min(count, packed.size * 8 // entry.bits), entry.bits)
    return np.array([number & entry.mask for number in held], entry.storage)


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a protobuf message.

    The value of a varint is an integer, that of all other wire types is bytes. Raises ValueError
    for wire types that are not in use today, or if the message ends within a field.
    """
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        match key & 7:
            case 0:
                value, at = _read_varint(message, at)
                yield key >> 3, value
                continue
            case 2:
                size, at = _read_varint(message, at)
            case 1:
                size = 8
            case 5:
                size = 4
            case kind:
                raise ValueError(f"a field of wire type {kind}")
        if len(message) - at < size:
            raise ValueError(f"the message ends {at + size - len(message)} bytes too early")
        yield key >> 3, message[at : at + size]
        at += size


def _varints(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _read_varint(content, at)
        yield value


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(content):
            raise ValueError("the message ends within a number")
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _delimited(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | LENGTH) + _varint(len(content)) + content
