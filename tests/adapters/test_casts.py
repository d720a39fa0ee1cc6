"""Bits in, bits out: identity, known values, shapes and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.protocol import Unsupported
from specs.formats import format_named, formats
from tests.adapters.common import (
    ADAPTERS,
    ALL,
    WITH_TEXT,
    assert_same,
    bits_of,
    layouts,
    onnx_case,
    patterns_of,
    some_patterns,
)


class TestIdentity:
    @pytest.mark.parametrize("dtype", formats())
    def test_bits_come_out_as_they_went_in(self, oracle: Any, dtype: str) -> None:
        bits = some_patterns(dtype)
        if dtype in ADAPTERS[oracle.name].lacks:
            with pytest.raises(Unsupported):
                oracle.identity(dtype, bits)
        else:
            views = [bits, bits[:0], bits[1:2].reshape(()), np.resize(bits, (1, 3, 1, 5, 1))]
            for view in (*views, *layouts(np.resize(bits, 12)).values()):
                assert_same(oracle.identity(dtype, view), view)

    @pytest.mark.parametrize("name", ["onnx", "ml_dtypes"])
    def test_what_lies_above_a_code_is_dropped(self, name: str) -> None:
        bits = np.array([0xF5, 0x7A], np.uint8)
        assert ADAPTERS[name].make().identity("int4", bits).tolist() == [0x5, 0xA]


# Computed by hand from the formats' fields: source, target, the pairs of patterns, who has both.
KNOWN: list[tuple[str, str, dict[Any, Any], tuple[str, ...]]] = [
    ("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}, ALL),
    ("float16", "float64", {0x3E00: 0x3FF8 << 48, 0x0001: 0x3E70 << 48}, ALL),
    ("float32", "bfloat16", {0x3FC00000: 0x3FC0, 0xC0000000: 0xC000}, ALL),
    ("bfloat16", "float32", {0x3FC0: 0x3FC00000}, ALL),
    ("float32", "float8e4m3fn", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}, ALL),
    ("float32", "float8e4m3fnuz", {0x3FC00000: 0x44, 0xC0000000: 0xC8}, ALL),
    ("float32", "float8e5m2", {0x3FC00000: 0x3E, 0xC0000000: 0xC0}, ALL),
    ("float32", "float8e5m2fnuz", {0x3FC00000: 0x42, 0xC0000000: 0xC4}, ALL),
    ("float32", "float8e4m3", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}, ("ml_dtypes",)),
    ("float32", "float8e3m4", {0x3FC00000: 0x38, 0xC0000000: 0xC0}, ("ml_dtypes",)),
    ("float32", "float8e4m3b11fnuz", {0x3FC00000: 0x5C, 0xC0000000: 0xE0}, ("ml_dtypes",)),
    ("float8e4m3", "float32", {0x77: 0x43700000, 0x78: 0x7F800000}, ("ml_dtypes",)),
    ("float8e3m4", "float32", {0x6F: 0x41780000, 0x70: 0x7F800000}, ("ml_dtypes",)),
    ("float8e4m3b11fnuz", "float32", {0x7F: 0x41F00000, 0x01: 0x39000000}, ("ml_dtypes",)),
    ("float8e4m3fn", "float32", {0x3C: 0x3FC00000}, ALL),
    ("float8e8m0", "float32", {0x80: 0x40000000, 0x7F: 0x3F800000}, ALL),
    (
        "float4e2m1",
        "float32",
        {0x7: 0x40C00000, 0xB: 0xBFC00000, 0x1: 0x3F000000},
        ("onnx", "ml_dtypes"),
    ),
    ("float32", "float4e2m1", {0xC0C00000: 0xF, 0x3FC00000: 0x3}, ("onnx", "ml_dtypes")),
    ("float6e2m3", "float32", {0x1F: 0x40F00000, 0x28: 0xBF800000}, ("ml_dtypes",)),
    ("float32", "float6e3m2", {0x41E00000: 0x1F, 0xBF800000: 0x2C}, ("ml_dtypes",)),
    ("int16", "int8", {200: 0xC8, 0xFFFF: 0xFF, 5: 5}, ALL),
    ("uint32", "uint64", {0xFFFFFFFF: 0xFFFFFFFF, 7: 7}, ALL),
    ("int64", "int32", {0xFFFFFFFFFFFFFFFE: 0xFFFFFFFE, 9: 9}, ALL),
    ("uint16", "float32", {3: 0x40400000}, ALL),
    ("int4", "int8", {0x1: 0x01, 0xF: 0xFF, 0x8: 0xF8, 0x7: 0x07, 0x2: 0x02}, WITH_TEXT),
    ("int8", "int4", {0x05: 0x5, 0xFD: 0xD, 0x00: 0x0, 0xF8: 0x8, 0x01: 0x1}, WITH_TEXT),
    ("uint4", "uint8", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}, WITH_TEXT),
    ("uint8", "uint4", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}, WITH_TEXT),
    ("int2", "int8", {0x1: 0x01, 0x2: 0xFE, 0x3: 0xFF}, WITH_TEXT),
    ("int8", "uint2", {0x1: 0x1, 0x3: 0x3, 0x2: 0x2, 0x0: 0x0}, WITH_TEXT),
    ("bool", "float32", {1: 0x3F800000, 0: 0}, ALL),
    ("float32", "bool", {0x40000000: 1, 0: 0}, ALL),
    ("complex64", "float32", {0xC0000000_3FC00000: 0x3FC00000}, ("torch", "ml_dtypes")),
    (
        "complex64",
        "complex128",
        {0xC0000000_3FC00000: (0xC000 << 112) | (0x3FF8 << 48)},
        ("torch", "ml_dtypes"),
    ),
    (
        "complex128",
        "complex64",
        {(0xC000 << 112) | (0x3FF8 << 48): 0xC0000000_3FC00000},
        ("torch", "ml_dtypes"),
    ),
    ("string", "float32", {"1.5": 0x3FC00000, "-2": 0xC0000000}, WITH_TEXT),
    ("string", "int32", {"-7": 0xFFFFFFF9}, WITH_TEXT),
    ("string", "bfloat16", {"1.5": 0x3FC0}, ("ort",)),
    ("int32", "string", {0xFFFFFFF9: "-7", 12: "12"}, WITH_TEXT),
    ("float32", "string", {0x3FC00000: "1.5"}, WITH_TEXT),
]


class TestKnownValues:
    @pytest.mark.parametrize(
        ("source", "target", "pairs", "who"), KNOWN, ids=[f"{row[0]}-{row[1]}" for row in KNOWN]
    )
    def test_cast(
        self, oracle: Any, source: str, target: str, pairs: dict[Any, Any], who: tuple[str, ...]
    ) -> None:
        if oracle.name not in who:
            with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
                oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
            return
        answer = oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert patterns_of(answer) == list(pairs.values())

    def test_an_answer_shares_no_memory_with_the_question(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x3FC00000, 0x40000000])
        answer = oracle.cast(onnx_case("float32", "float32"), bits)
        bits[:] = 0
        answer[1] += 1
        assert patterns_of(answer) == [0x3FC00000, 0x40000001]

    def test_signalling_nans_keep_their_bits_on_the_way_in(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x7F800001, 0xFFBFFFFF])
        assert_same(oracle.cast(onnx_case("float32", "float32"), bits), bits)


SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 5), (1, 2, 3, 2), (2, 1, 2, 1, 3), (0,), (2, 0, 3)]
PAIRS = [
    ("float32", "float16", ALL),
    ("int4", "int8", WITH_TEXT),
    ("int8", "int4", WITH_TEXT),
    ("int8", "string", WITH_TEXT),
    ("string", "int8", WITH_TEXT),
    ("complex128", "complex64", ("torch", "ml_dtypes")),
]


class TestShapes:
    @pytest.mark.parametrize(("source", "target", "who"), PAIRS)
    def test_any_rank_any_layout(
        self, oracle: Any, source: str, target: str, who: tuple[str, ...]
    ) -> None:
        if oracle.name not in who:
            pytest.skip(f"{oracle.name} lacks the pair")
        case = onnx_case(source, target)
        patterns = [str(n) for n in range(12)] if source == "string" else list(range(12))
        flat = bits_of(source, patterns)
        expected = dict(zip(patterns, patterns_of(oracle.cast(case, flat)), strict=True))
        views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
        for name, view in views.items():
            answer = oracle.cast(case, view)
            assert isinstance(answer, np.ndarray), name
            assert answer.shape == view.shape, name
            assert answer.dtype == np.dtype(format_named(target).storage), name
            wanted = [expected[pattern] for pattern in patterns_of(view.ravel())]
            assert patterns_of(answer.ravel()) == wanted, name
