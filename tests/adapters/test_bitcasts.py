"""Bits read as another dtype: which patterns come out, in which shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.protocol import Unsupported, WithBitcast
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import ADAPTERS, Road, bits_of, layouts, onnx_case, patterns_of

ROADS: list[Road] = [
    ("ort", None),
    ("ort", "folded"),
    ("onnx", None),
    ("ml_dtypes", None),
    ("torch", None),
    ("torch", "view"),
    ("torch", "compile"),
]
KEEP_THE_SHAPE = ("ort", "onnx")
ALL = ("ort", "onnx", "ml_dtypes", "torch")
NOT_ORT = ALL[1:]


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: ":".join(filter(None, road)))
def oracle(request: pytest.FixtureRequest) -> Any:
    name, variant = request.param
    return ADAPTERS[name].make(variant)


@pytest.fixture(scope="module", params=ROADS[3:], ids=lambda road: ":".join(filter(None, road)))
def scaling(request: pytest.FixtureRequest) -> Any:
    """The oracles whose bitcast knows other widths too; ONNX's knows one."""
    name, variant = request.param
    return ADAPTERS[name].make(variant)


def bitcast(source: str, target: str) -> Case:
    return Case("any", "1", source, target)


# Patterns are the same on both sides: NaNs with payloads, single bits, all ones.
SAME_WIDTH: list[tuple[str, str, list[int], tuple[str, ...]]] = [
    ("float64", "int64", [0x7FF0000000000001, 1 << 63, 0x3FF8 << 48], ALL),
    ("float32", "uint32", [0x7F800001, 0xFFBFFFFF, 0x00000001, 0x80000000], ALL),
    ("uint32", "float32", [0x7F800001, 0xFFBFFFFF, 0x00000001, 0x80000000], ALL),
    ("float16", "bfloat16", [0x7C01, 0xFDFF, 0x0001, 0x8000, 0x3C00], ALL),
    ("uint16", "float16", [0x7C01, 0xFDFF, 0x0001, 0x8000, 0x3C00], ALL),
    ("int8", "uint8", list(range(256)), ALL),
    ("float32", "float32", [0x7F800001, 0xFFBFFFFF], ALL),
    ("uint8", "float8e4m3fn", list(range(256)), NOT_ORT),
    ("float8e5m2fnuz", "float8e8m0", list(range(256)), NOT_ORT),
    ("bool", "uint8", [0, 1, 2, 128, 255], NOT_ORT),
    ("uint8", "bool", [0, 1, 2, 128, 255], NOT_ORT),
    ("bool", "bool", [0, 1, 2, 128, 255], NOT_ORT),
    ("complex64", "uint64", [0x7F800001_FFBFFFFF, 1], NOT_ORT),
    ("complex128", "complex128", [(1 << 127) | 1], NOT_ORT),
    ("float4e2m1", "float4e2m1", list(range(16)), NOT_ORT),
    ("uint4", "float4e2m1", list(range(16)), ("onnx", "ml_dtypes")),
    ("int4", "uint4", [*range(16), 9], ("onnx", "ml_dtypes")),
    ("int2", "uint2", [*range(4), 3], ("onnx", "ml_dtypes")),
    ("float6e2m3", "float6e3m2", list(range(64)), ("ml_dtypes",)),
]


@pytest.mark.parametrize(
    ("source", "target", "patterns", "who"),
    SAME_WIDTH,
    ids=[f"{row[0]}-{row[1]}" for row in SAME_WIDTH],
)
def test_the_patterns_stay(
    oracle: Any, source: str, target: str, patterns: list[int], who: tuple[str, ...]
) -> None:
    assert isinstance(oracle, WithBitcast)
    bits = bits_of(source, patterns)
    if oracle.name not in who:
        with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
            oracle.bitcast(bitcast(source, target), bits)
        return
    answer = oracle.bitcast(bitcast(source, target), bits)
    assert answer.dtype == np.dtype(format_named(target).storage)
    assert patterns_of(answer) == patterns


SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 5), (2, 1, 2, 1, 3), (0,), (2, 0, 3)]


def test_one_width_keeps_every_shape_in_every_layout(oracle: Any) -> None:
    flat = bits_of("float32", [0x7F800001 + 7 * n for n in range(12)])
    views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
    for name, view in views.items():
        answer = oracle.bitcast(bitcast("float32", "int32"), view)
        assert isinstance(answer, np.ndarray), name
        assert answer.shape == view.shape, name
        assert answer.tolist() == view.tolist(), name


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "float32"), ("float32", "int32"), ("uint16", "float16")]
)
def test_an_answer_shares_no_memory_with_the_question(
    oracle: Any, source: str, target: str
) -> None:
    bits = bits_of(source, [0x3C00, 0x4000])
    answer = oracle.bitcast(bitcast(source, target), bits)
    bits[:] = 0
    answer[1] += 1
    assert patterns_of(answer) == [0x3C00, 0x4001]
    assert patterns_of(bits) == [0, 0]


# Little-endian: the first of the narrow patterns is the low part of the wide one.
LAST_DIMENSION: list[tuple[str, str, tuple[int, ...], list[int], tuple[int, ...], list[int]]] = [
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


@pytest.mark.parametrize(
    ("source", "target", "shape", "patterns", "new_shape", "expected"),
    LAST_DIMENSION,
    ids=[f"{row[0]}{row[2]}-{row[1]}" for row in LAST_DIMENSION],
)
def test_another_width_scales_the_last_dimension(
    scaling: Any,
    source: str,
    target: str,
    shape: tuple[int, ...],
    patterns: list[int],
    new_shape: tuple[int, ...],
    expected: list[int],
) -> None:
    bits = bits_of(source, patterns).reshape(shape)
    answer = scaling.bitcast(bitcast(source, target), bits)
    assert answer.shape == new_shape
    assert answer.dtype == np.dtype(format_named(target).storage)
    assert patterns_of(answer.ravel()) == expected


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("float16", "float32", (3,)),
        ("float16", "float64", (2, 2)),
        ("float32", "float16", ()),
        ("uint8", "uint64", ()),
    ],
)
def test_what_does_not_divide_is_refused_by_the_framework(
    scaling: Any, source: str, target: str, shape: tuple[int, ...]
) -> None:
    bits = np.zeros(shape, format_named(source).storage)
    with pytest.raises(Exception, match=r"divi|dim|0d|shape") as caught:
        scaling.bitcast(bitcast(source, target), bits)
    assert not isinstance(caught.value, Unsupported)


@pytest.mark.parametrize("name", KEEP_THE_SHAPE)
def test_onnx_refuses_another_width(name: str) -> None:
    for source, target in (("float32", "float16"), ("int4", "int8"), ("int8", "int16")):
        with pytest.raises(Exception, match=r"(?i)bit-?width") as caught:
            ADAPTERS[name].make().bitcast(bitcast(source, target), bits_of(source, [0, 1]))
        assert not isinstance(caught.value, Unsupported)


def test_onnxruntime_has_no_complex_tensors() -> None:
    for source, target in (("complex64", "int64"), ("float64", "complex64")):
        with pytest.raises(Unsupported, match="tensor\\(complex64\\) is not currently registered"):
            ADAPTERS["ort"].make().bitcast(bitcast(source, target), bits_of(source, [0, 1]))


def test_no_framework_bitcasts_text_or_takes_a_mode(oracle: Any) -> None:
    for source, target in (("string", "float32"), ("float32", "string")):
        with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
            oracle.bitcast(
                bitcast(source, target), bits_of(source, ["1" if source == "string" else 1])
            )
    with pytest.raises(Unsupported, match="takes no rounding mode: CAST_FLOOR"):
        oracle.bitcast(onnx_case("float32", "int32", mode="CAST_FLOOR"), bits_of("float32", [0]))


class TestLessThanAByte:
    @pytest.mark.parametrize("variant", [None, "view", "compile"])
    def test_torch_holds_two_codes_of_float4e2m1_in_an_element(self, variant: str | None) -> None:
        oracle = ADAPTERS["torch"].make(variant)
        bits = bits_of("uint8", [0x21, 0xFE]).reshape(2, 1)
        pairs = oracle.bitcast(bitcast("uint8", "float4e2m1"), bits)
        assert pairs.tolist() == [[1, 2], [14, 15]]
        back = oracle.bitcast(bitcast("float4e2m1", "uint8"), pairs)
        assert back.tolist() == bits.tolist()
        words = oracle.bitcast(bitcast("float4e2m1", "uint16"), pairs.reshape(1, 4))
        assert words.tolist() == [[0xFE21]]

    def test_torch_has_no_half_pair(self) -> None:
        oracle = ADAPTERS["torch"].make("view")
        for bits in (bits_of("float4e2m1", [1, 2, 3]), bits_of("float4e2m1", [1]).reshape(())):
            with pytest.raises(Unsupported, match="holds pairs along the last dimension"):
                oracle.bitcast(bitcast("float4e2m1", "uint8"), bits)
        with pytest.raises(Unsupported, match="without dimensions holds a pair"):
            oracle.bitcast(bitcast("uint8", "float4e2m1"), bits_of("uint8", [1]).reshape(()))

    @pytest.mark.parametrize("dtype", ["int4", "int2", "uint4", "uint2"])
    def test_whole_bytes_for_less_than_a_byte_are_no_bitcast(self, dtype: str) -> None:
        for name in ("torch", "ml_dtypes"):
            for source, target in ((dtype, "uint8"), ("uint8", dtype)):
                with pytest.raises(Unsupported, match="stores every"):
                    ADAPTERS[name].make().bitcast(bitcast(source, target), bits_of(source, [1, 2]))


class TestVariants:
    def test_view_offers_bitcasts_alone(self) -> None:
        oracle, case = ADAPTERS["torch"].make("view"), onnx_case("float32", "float16")
        bits = bits_of("float32", [0x3FC00000])
        assert patterns_of(oracle.bitcast(case, bits)) == [0, 0x3FC0]
        for ask in (oracle.cast, oracle.bind, oracle.reproduce):
            with pytest.raises(Unsupported, match="torch:view offers bitcasts alone"):
                ask(case, bits)
        with pytest.raises(Unsupported, match="torch:view offers bitcasts alone"):
            oracle.road(case)

    def test_a_bitcast_that_was_not_folded_is_unsupported(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle = ADAPTERS["ort"].make("folded")
        level = oracle._ort.GraphOptimizationLevel
        monkeypatch.setattr(level, "ORT_ENABLE_BASIC", level.ORT_DISABLE_ALL)
        with pytest.raises(Unsupported, match="did not fold this BitCast at load"):
            oracle.bitcast(bitcast("float32", "int32"), bits_of("float32", [0]))
