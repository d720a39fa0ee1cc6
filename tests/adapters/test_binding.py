"""Bound calls: what ``cast`` answers, from a buffer that is refilled in between."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from oracles.protocol import Bits, Unsupported, WithBind
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.bound_calls import BoundCalls
from tests.adapters.common import (
    ADAPTERS,
    ALL,
    WITH_TEXT,
    assert_same,
    bits_of,
    onnx_case,
    patterns_of,
)

COUNT = 101
"""Odd, so that packed answers end within a byte and vectors short of their end.

Of some types onnxruntime folds no constant of 128 bytes and more: "Element type mismatch".
"""

NUMPY = ("onnx", "ml_dtypes")
COMPLEX = ("torch", "ml_dtypes")
BOUND = [
    (onnx_case("float32", "float32"), ALL),
    (onnx_case("float32", "float16"), ALL),
    (onnx_case("float32", "bfloat16", 13), ALL),
    (onnx_case("float32", "float8e4m3fn", saturate="0"), ALL),
    (onnx_case("float32", "float8e8m0", saturate="1", round_mode="down"), ALL),
    (onnx_case("float32", "float64"), ALL),
    (onnx_case("float32", "int32"), ALL),
    (onnx_case("float32", "bool"), ALL),
    (onnx_case("float32", "int4"), WITH_TEXT),
    (onnx_case("float32", "uint2"), WITH_TEXT),
    (onnx_case("float32", "float4e2m1"), NUMPY),
    (onnx_case("float32", "float6e2m3"), ("ml_dtypes",)),
    (onnx_case("float32", "string"), WITH_TEXT),
    (onnx_case("float32", "complex64"), COMPLEX),
    (onnx_case("int32", "float32"), ALL),
    (onnx_case("uint32", "uint64"), ALL),
    (onnx_case("uint64", "float32"), ALL),
    (onnx_case("int16", "int8"), ALL),
    (onnx_case("bool", "float32"), ALL),
    (onnx_case("float8e5m2", "float64"), ALL),
    (onnx_case("int4", "int8"), WITH_TEXT),
    (onnx_case("int2", "int2"), WITH_TEXT),
    (onnx_case("uint8", "uint4"), WITH_TEXT),
    (onnx_case("complex64", "complex128"), COMPLEX),
    (onnx_case("complex64", "float32"), COMPLEX),
    (onnx_case("complex128", "complex64"), COMPLEX),
]


def refill(bits: Bits, dtype: str, seed: int) -> None:
    """Put patterns of a seed into a buffer."""
    entry = format_named(dtype)
    raw = np.frombuffer(np.random.default_rng(seed).bytes(bits.nbytes), bits.dtype)
    bits[:] = raw & entry.mask if entry.bits < 8 else raw


class TestAnswers(BoundCalls):
    @pytest.mark.parametrize(
        ("case", "who"), BOUND, ids=[f"{row[0].source}-{row[0].target}" for row in BOUND]
    )
    def test_every_refill_is_answered_as_cast_answers_it(
        self, oracle: Any, case: Case, who: tuple[str, ...]
    ) -> None:
        bits = np.zeros(COUNT, format_named(case.source).storage)
        if oracle.name not in who:
            with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
                oracle.bind(case, bits)
            return
        call = oracle.bind(case, bits)
        for seed in range(4):
            refill(bits, case.source, seed)
            asked = bits.copy()
            answer = call()
            assert_same(answer, oracle.cast(case, asked.copy()))
            assert_same(bits, asked)

    def test_a_call_sees_what_the_buffer_holds_then(self, oracle: Any) -> None:
        assert isinstance(oracle, WithBind)
        bits = bits_of("float32", [0x3FC00000, 0xC0000000, 0])
        call = oracle.bind(onnx_case("float32", "float16"), bits)
        assert patterns_of(call()) == [0x3E00, 0xC000, 0]
        bits[:] = [0x40000000, 0x3FC00000, 0x80000000]
        assert patterns_of(call()) == [0x4000, 0x3E00, 0x8000]

    @pytest.mark.parametrize("name", WITH_TEXT)
    def test_codes_of_less_than_a_byte_come_one_per_byte(self, name: str) -> None:
        bits = bits_of("float32", [0xC0400000, 0x40A00000, 0xBF800000])  # -3, 5, -1
        call = ADAPTERS[name].make().bind(onnx_case("float32", "int4"), bits)
        assert patterns_of(call()) == [0xD, 0x5, 0xF]

    @pytest.mark.parametrize("name", NUMPY)
    def test_what_lies_above_a_code_is_dropped(self, name: str) -> None:
        bits = np.array([0xF5, 0x7A], np.uint8)
        call = ADAPTERS[name].make().bind(onnx_case("int4", "int4"), bits)
        assert patterns_of(call()) == [0x5, 0xA]


REFUSED = [
    (onnx_case("float32", "float16", mode="CAST_FLOOR"), ALL),
    (onnx_case("float6e2m3", "float32"), ("torch",)),
    (onnx_case("float32", "float4e2m1"), ("ort", "torch")),
    (onnx_case("int4", "int2"), (*NUMPY, "torch")),
    (onnx_case("float32", "int32", 1), ("ort", "onnx")),
]


class TestRefusals:
    @pytest.mark.parametrize(("case", "who"), REFUSED, ids=[row[0].id for row in REFUSED])
    def test_bind_refuses_in_the_words_of_cast(
        self, oracle: Any, case: Case, who: tuple[str, ...]
    ) -> None:
        if oracle.name not in who:
            pytest.skip(f"{oracle.name} answers")
        bits = np.zeros(3, format_named(case.source).storage)
        with pytest.raises(Unsupported) as by_cast:
            oracle.cast(case, bits)
        with pytest.raises(Unsupported) as by_bind:
            oracle.bind(case, bits)
        assert str(by_bind.value) == str(by_cast.value)

    def test_every_call_of_the_folded_road_is_folded_anew(self) -> None:
        oracle = ADAPTERS["ort"].make("folded")
        oracle._session_with_constant = Mock(wraps=oracle._session_with_constant)
        bits = bits_of("float32", [0x3FC00000] * 3)
        call = oracle.bind(onnx_case("float32", "float16"), bits)
        before = oracle._session_with_constant.call_count
        for _ in range(2):
            call()
        assert oracle._session_with_constant.call_count == before + 2

    def test_onnxruntime_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        oracle = ADAPTERS["ort"].make()
        for target in ("complex64", "float4e2m1", "string", "int8"):
            with suppress(Exception):
                oracle.bind(onnx_case("float16", target), bits_of("float16", [0]))()
        assert capfd.readouterr() == ("", "")
