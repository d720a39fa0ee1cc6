"""The values of the contract: casts and bitcasts with answers computed by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.adapters.common import onnx_case


@dataclass(frozen=True)
class KnownValues:
    """A cast whose answers were computed by hand from the formats' fields."""

    source: str
    target: str
    answers: dict[Any, Any] = field(hash=False)


KNOWN = [
    KnownValues("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}),
    KnownValues("float16", "float64", {0x3E00: 0x3FF8 << 48, 0x0001: 0x3E70 << 48}),
    KnownValues("float32", "bfloat16", {0x3FC00000: 0x3FC0, 0xC0000000: 0xC000}),
    KnownValues("bfloat16", "float32", {0x3FC0: 0x3FC00000}),
    KnownValues("float32", "float8e4m3fn", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}),
    KnownValues("float32", "float8e4m3fnuz", {0x3FC00000: 0x44, 0xC0000000: 0xC8}),
    KnownValues("float32", "float8e5m2", {0x3FC00000: 0x3E, 0xC0000000: 0xC0}),
    KnownValues("float32", "float8e5m2fnuz", {0x3FC00000: 0x42, 0xC0000000: 0xC4}),
    KnownValues("float32", "float8e4m3", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}),
    KnownValues("float32", "float8e3m4", {0x3FC00000: 0x38, 0xC0000000: 0xC0}),
    KnownValues("float32", "float8e4m3b11fnuz", {0x3FC00000: 0x5C, 0xC0000000: 0xE0}),
    KnownValues("float8e4m3", "float32", {0x77: 0x43700000, 0x78: 0x7F800000}),
    KnownValues("float8e3m4", "float32", {0x6F: 0x41780000, 0x70: 0x7F800000}),
    KnownValues("float8e4m3b11fnuz", "float32", {0x7F: 0x41F00000, 0x01: 0x39000000}),
    KnownValues("float8e4m3fn", "float32", {0x3C: 0x3FC00000, 0x7E: 0x43E00000}),
    KnownValues("float8e8m0", "float32", {0x80: 0x40000000, 0x7F: 0x3F800000}),
    KnownValues("float4e2m1", "float32", {0x7: 0x40C00000, 0xB: 0xBFC00000, 0x1: 0x3F000000}),
    KnownValues("float32", "float4e2m1", {0xC0C00000: 0xF, 0x3FC00000: 0x3}),
    KnownValues("float6e2m3", "float32", {0x1F: 0x40F00000, 0x28: 0xBF800000}),
    KnownValues("float32", "float6e3m2", {0x41E00000: 0x1F, 0xBF800000: 0x2C}),
    KnownValues("int16", "int8", {200: 0xC8, 0xFFFF: 0xFF, 5: 5}),
    KnownValues("uint32", "uint64", {0xFFFFFFFF: 0xFFFFFFFF, 7: 7}),
    KnownValues("int64", "int32", {0xFFFFFFFFFFFFFFFE: 0xFFFFFFFE, 9: 9}),
    KnownValues("uint16", "float32", {3: 0x40400000, 0xFFFF: 0x477FFF00}),
    KnownValues("int4", "int8", {0x1: 0x01, 0xF: 0xFF, 0x8: 0xF8, 0x7: 0x07, 0x2: 0x02}),
    KnownValues("int8", "int4", {0x05: 0x5, 0xFD: 0xD, 0x00: 0x0, 0xF8: 0x8, 0x01: 0x1}),
    KnownValues("uint4", "uint8", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}),
    KnownValues("uint8", "uint4", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}),
    KnownValues("int2", "int8", {0x1: 0x01, 0x2: 0xFE, 0x3: 0xFF}),
    KnownValues("int8", "uint2", {0x1: 0x1, 0x3: 0x3, 0x2: 0x2, 0x0: 0x0}),
    KnownValues("bool", "float32", {1: 0x3F800000, 0: 0}),
    KnownValues("float32", "bool", {0x40000000: 1, 0: 0}),
    KnownValues("complex64", "float32", {0xC0000000_3FC00000: 0x3FC00000}),
    KnownValues("complex64", "complex128", {0xC0000000_3FC00000: (0xC000 << 112) | (0x3FF8 << 48)}),
    KnownValues("complex128", "complex64", {(0xC000 << 112) | (0x3FF8 << 48): 0xC0000000_3FC00000}),
    KnownValues("string", "float32", {"1.5": 0x3FC00000, "-2": 0xC0000000}),
    KnownValues("string", "int32", {"-7": 0xFFFFFFF9}),
    KnownValues("string", "bfloat16", {"1.5": 0x3FC0}),
    KnownValues("int32", "string", {0xFFFFFFF9: "-7", 12: "12"}),
    KnownValues("float32", "string", {0x3FC00000: "1.5"}),
]
MORE_KNOWN = [
    KnownValues("float64", "float32", {0x3FF8 << 48: 0x3FC00000, 0xC000 << 48: 0xC0000000}),
    KnownValues("float32", "float64", {0x3FC00000: 0x3FF8 << 48}),
    KnownValues("float16", "float32", {0x3E00: 0x3FC00000, 0x0001: 0x33800000}),
    KnownValues("float8e5m2", "float32", {0x3E: 0x3FC00000}),
    KnownValues("float32", "float8e8m0", {0x40000000: 0x80, 0x3F800000: 0x7F}),
    KnownValues(
        "float32",
        "int32",
        {0x3FC00000: 1, 0xC0400000: 0xFFFFFFFD, 0x40200000: 2, 0xC0200000: 0xFFFFFFFE},
    ),
    KnownValues("int8", "int64", {0xFE: 0xFFFFFFFFFFFFFFFE, 9: 9}),
    KnownValues("uint8", "uint2", {0x1: 0x1, 0x3: 0x3, 0x2: 0x2, 0x0: 0x0}),
    KnownValues("uint8", "float32", {200: 0x43480000}),
    KnownValues("float32", "uint16", {0x40400000: 3, 0x477FFF00: 0xFFFF}),
    KnownValues("uint64", "uint32", {0x1_0000_0007: 7}),
    KnownValues("int32", "int32", {7: 7, 0xFFFFFFFF: 0xFFFFFFFF}),
]

# float32 and float16 of 0, 1.5, -2, 3 … 11
LAYOUT_FLOATS = {
    0: 0,
    0x3FC00000: 0x3E00,
    0xC0000000: 0xC000,
    0x40400000: 0x4200,
    0x40800000: 0x4400,
    0x40A00000: 0x4500,
    0x40C00000: 0x4600,
    0x40E00000: 0x4700,
    0x41000000: 0x4800,
    0x41100000: 0x4880,
    0x41200000: 0x4900,
    0x41300000: 0x4980,
}
FLOAT64_BITS = [0x3FF8 << 48, 0xC000 << 48, 0]
FLOAT32_BITS = [0x3FC00000, 0xC0000000, 0]
LAYOUT_VALUES: dict[str, dict[Any, Any]] = {
    "float32-float16": LAYOUT_FLOATS,
    "int4-int8": {code: code | (0xF0 if code & 8 else 0) for code in range(12)},
    "int8-int4": {code | (0xF0 if code & 8 else 0): code for code in range(12)},
    "uint8-uint2": {code: code for code in range(4)},
    "int8-string": {code: str(code) for code in range(12)},
    "string-int8": {str(code): code for code in range(12)},
    "complex128-complex64": {
        imaginary << 64 | real: FLOAT32_BITS[i] << 32 | FLOAT32_BITS[r]
        for i, imaginary in enumerate(FLOAT64_BITS)
        for r, real in enumerate(FLOAT64_BITS)
    },
}
"""By pair, up to 12 different patterns and their answers."""

BOUND_PAIRS = """
    float32/float32 float32/float16 float32/float8e5m2 float32/float64 float32/int32 float32/uint16
    float32/bool float32/int4 float32/uint2 float32/float4e2m1 float32/float6e2m3 float32/string
    float32/complex64 float64/float32 float64/int64 float16/float32 float16/int4 bfloat16/float32
    float8e4m3fn/float32 float8e5m2/float32 float8e5m2/float64 float8e8m0/float64 int64/int32
    int64/bool int64/float8e4m3fn int32/int32 int32/float32 uint64/float32 uint64/uint32
    uint32/uint64 uint16/float32 int16/int8 uint8/float32 bool/float32 int4/int8 int4/uint2
    int2/int2 uint8/uint4 complex64/complex128 complex64/float32 complex128/complex64
"""
BOUND = [
    *(onnx_case(*pair.split("/")) for pair in BOUND_PAIRS.split()),
    onnx_case("float32", "bfloat16", 13),
    onnx_case("float32", "float8e4m3fn", saturate="0"),
    onnx_case("float32", "float8e8m0", saturate="1", round_mode="down"),
]

View = tuple[str, str, list[int]]
BYTES = [73 * n % 256 for n in range(256)]
"""All bytes in no order: a compiler may replace consecutive numbers by a loop."""
SAME_WIDTH: list[View] = [
    # NaNs with payloads, single bits, all ones: the same patterns before and after.
    ("float64", "int64", [0x7FF0000000000001, 1 << 63, 0x3FF8 << 48]),
    ("int64", "float64", [0x7FF0000000000001, 1 << 63, 0x3FF8 << 48]),
    ("float32", "uint32", [0x7F800001, 0xFFBFFFFF, 0xFFFFFFFF, 0x00000001, 0x80000000]),
    ("uint32", "float32", [0x7F800001, 0xFFBFFFFF, 0x00000001, 0x80000000]),
    ("float16", "bfloat16", [0x7C01, 0xFDFF, 0x0001, 0x8000, 0x3C00]),
    ("uint16", "float16", [0x7C01, 0xFDFF, 0x0001, 0x8000, 0x3C00]),
    ("int8", "uint8", BYTES),
    ("float32", "float32", [0x7F800001, 0xFFBFFFFF]),
    ("uint8", "float8e4m3fn", BYTES),
    ("float8e4m3fn", "float8e8m0", [0xFF, 0]),
    ("float8e5m2fnuz", "float8e8m0", BYTES),
    ("bool", "uint8", [0, 1, 2, 128, 255]),
    ("uint8", "bool", [0, 1, 2, 128, 255]),
    ("bool", "bool", [0, 1, 2, 128, 255]),
    ("complex64", "uint64", [0x7F800001_FFBFFFFF, 1]),
    ("complex64", "complex64", [0x7F800001_FFBFFFFF, 0xC0000000_3FC00000]),
    ("complex128", "complex128", [(1 << 127) | 1]),
    ("float4e2m1", "float4e2m1", list(range(16))),
    ("uint4", "float4e2m1", list(range(16))),
    ("int4", "uint4", [*range(16), 9]),
    ("int2", "uint2", [*range(4), 3]),
    ("float6e2m3", "float6e3m2", list(range(64))),
]

Shape = tuple[int, ...]
Reshaped = tuple[str, str, Shape, list[int], Shape, list[int]]
# Little-endian: the first of the narrow patterns is the low part of the wide one.
SCALED_DIMENSION: list[Reshaped] = [
    ("float32", "float16", (2,), [0x3C00_0001, 0x7C01_FDFF], (4,), [1, 0x3C00, 0xFDFF, 0x7C01]),
    ("float16", "float32", (4,), [1, 0x3C00, 0xFDFF, 0x7C01], (2,), [0x3C00_0001, 0x7C01_FDFF]),
    ("int32", "uint8", (2, 1), [0x04030201, 0x80], (2, 4), [1, 2, 3, 4, 0x80, 0, 0, 0]),
    ("uint8", "bfloat16", (2, 2), [1, 2, 3, 4], (2, 1), [0x0201, 0x0403]),
    ("bool", "int16", (1, 2), [1, 0], (1, 1), [1]),
    ("uint16", "bool", (2,), [0x8001, 0x02FF], (4,), [1, 128, 255, 2]),
    ("complex64", "float32", (1,), [0x7F800001_FFBFFFFF], (2,), [0xFFBFFFFF, 0x7F800001]),
    ("float64", "complex128", (2,), [1, 1 << 63], (1,), [(1 << 127) | 1]),
    ("complex128", "uint64", (1,), [(1 << 127) | 1], (2,), [1, 1 << 63]),
    ("float64", "int8", (0,), [], (0,), []),
    ("float16", "float64", (0, 4), [], (0, 1), []),
    ("float32", "int16", (3, 0), [], (3, 0), []),
]
ADDED_DIMENSION: list[Reshaped] = [
    ("float32", "uint32", (2,), [0x7F800001, 0xFFFFFFFF], (2,), [0x7F800001, 0xFFFFFFFF]),
    ("int64", "float64", (), [0x7FF0000000000001], (), [0x7FF0000000000001]),
    ("float32", "uint16", (), [0x3FC00001], (2,), [0x0001, 0x3FC0]),
    ("float32", "float16", (2,), [0x3C000001, 2], (2, 2), [1, 0x3C00, 2, 0]),
    ("float32", "uint8", (2,), [0x3FC00000, 0x7F800001], (2, 4),
        [0, 0, 0xC0, 0x3F, 1, 0, 0x80, 0x7F]),
    ("uint8", "float32", (4,), [0, 0, 0xC0, 0x3F], (), [0x3FC00000]),
    ("uint16", "float32", (2, 2), [1, 0x8000, 2, 0], (2,), [0x80000001, 2]),
    ("float16", "float32", (2, 2), [1, 0x3C00, 2, 0], (2,), [0x3C000001, 2]),
    ("int64", "int8", (), [0x0807060504030201], (8,), list(range(1, 9))),
    ("uint8", "float64", (8,), list(range(1, 9)), (), [0x0807060504030201]),
    ("float32", "uint16", (0,), [], (0, 2), []),
    ("float32", "uint8", (0, 3), [], (0, 3, 4), []),
    ("bfloat16", "float32", (3, 0, 2), [], (3, 0), []),
]  # fmt: skip
