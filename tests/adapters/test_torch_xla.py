"""torch_xla on XLA's CPU; it has an environment of its own, with the torch it was built for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters.torch_xla import TYPES
from oracles.protocol import Unsupported, WithBitcast
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.formats import format_named, formats
from tests.adapters.checks import (
    assert_casts_any_layout,
    assert_follows_its_buffer,
    assert_known,
    assert_moves_any_layout,
    assert_repeats,
    assert_shares_no_memory,
    built,
    known,
)
from tests.adapters.common import Adapter, bits_of, onnx_case, patterns_of, some_patterns

ADAPTER = Adapter("torch_xla", "TorchXla", ("torch", "torch_xla"), frozenset())


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    with built("torch_xla", ADAPTER.make) as made:
        yield made


def bitcast(source: str, target: str) -> Case:
    return Case("any", "1", source, target)


class TestCasts:
    def test_bits_come_out_as_they_went_in(self, oracle: Any) -> None:
        assert smoke(Backend("torch_xla", oracle)) == {}

    @pytest.mark.parametrize("dtype", formats())
    def test_any_layout(self, oracle: Any, dtype: str) -> None:
        if dtype in TYPES:
            assert_moves_any_layout(lambda bits: oracle.identity(dtype, bits), some_patterns(dtype))
        else:
            with pytest.raises(Unsupported, match=f"has no {dtype} on its device"):
                oracle.identity(dtype, some_patterns(dtype))

    @pytest.mark.parametrize(("source", "target", "pairs"), known(TYPES))
    def test_known_values(
        self, oracle: Any, source: str, target: str, pairs: dict[Any, Any]
    ) -> None:
        assert_known(oracle, source, target, pairs)

    @pytest.mark.parametrize("source", TYPES)
    def test_every_pair_answers(self, oracle: Any, source: str) -> None:
        bits = np.zeros(3, format_named(source).storage)
        for target in TYPES:
            assert not oracle.cast(onnx_case(source, target), bits).tobytes().strip(b"\0")

    def test_a_cast_in_any_shape_and_layout(self, oracle: Any) -> None:
        same = {0x3FC00000: 0x3E00, 0xC0000000: 0xC000}
        assert_casts_any_layout(oracle, "float32", "float16", same)

    def test_answers_share_no_memory_with_questions(self, oracle: Any) -> None:
        for dtype in ("float32", "uint8", "complex64"):
            assert_shares_no_memory(oracle, dtype)

    @pytest.mark.parametrize("pair", [("float32", "float16"), ("complex64", "complex128")])
    def test_bound_calls(self, oracle: Any, pair: tuple[str, str]) -> None:
        assert_follows_its_buffer(oracle, onnx_case(*pair))

    def test_the_road_is_the_pair(self, oracle: Any) -> None:
        assert oracle.road(onnx_case("float32", "float16", 13)) == "float32->float16"

    @pytest.mark.parametrize(
        "case",
        [
            onnx_case("float32", "float16", mode="CAST_FLOOR"),
            onnx_case("float32", "float8e5m2fnuz"),
            onnx_case("float32", "string"),
        ],
        ids=str,
    )
    def test_what_is_not_offered(self, oracle: Any, case: Case) -> None:
        bits = bits_of("float32", [0])
        for ask in (oracle.cast, oracle.reproduce):
            with pytest.raises(Unsupported):
                ask(case, bits)
        with pytest.raises(Unsupported):
            oracle.road(case)

    @pytest.mark.parametrize(
        ("source", "target", "patterns"),
        [
            ("float32", "bfloat16", [0x3FC00000, 0x7F800001, 0xFFFFFFFF]),
            ("complex64", "complex128", [0xC0000000_3FC00000]),
            ("complex128", "uint8", [0x3FF8 << 48]),
        ],
    )
    def test_a_reproduction_prints_the_same_answers(
        self, oracle: Any, source: str, target: str, patterns: list[int]
    ) -> None:
        assert_repeats(oracle, onnx_case(source, target), patterns)

    def test_no_variants(self, oracle: Any) -> None:
        with pytest.raises(Unsupported, match="no variant `nonsense`"):
            ADAPTER.make("nonsense")


class TestBitcasts:
    """XLA adds a last dimension, or takes it away."""

    @pytest.mark.parametrize(
        ("source", "target", "shape", "patterns", "new_shape", "expected"),
        [
            ("float32", "uint32", (2,), [0x7F800001, 1], (2,), [0x7F800001, 1]),
            ("float16", "bfloat16", (2,), [0x7C01, 0xFDFF], (2,), [0x7C01, 0xFDFF]),
            ("uint8", "float8e4m3fn", (2,), [0x7F, 0x80], (2,), [0x7F, 0x80]),
            ("float32", "float16", (2,), [0x3C000001, 2], (2, 2), [1, 0x3C00, 2, 0]),
            ("float16", "float32", (2, 2), [1, 0x3C00, 2, 0], (2,), [0x3C000001, 2]),
            ("int64", "int8", (), [0x0807060504030201], (8,), list(range(1, 9))),
            ("uint8", "float64", (8,), list(range(1, 9)), (), [0x0807060504030201]),
            ("float32", "uint8", (0, 3), [], (0, 3, 4), []),
            ("complex64", "complex64", (1,), [0x7F800001_FFBFFFFF], (1,), [0x7F800001_FFBFFFFF]),
            ("bool", "bool", (2,), [0, 1], (2,), [0, 1]),
        ],
    )
    def test_patterns_and_shapes(
        self,
        oracle: Any,
        source: str,
        target: str,
        shape: tuple[int, ...],
        patterns: list[int],
        new_shape: tuple[int, ...],
        expected: list[int],
    ) -> None:
        assert isinstance(oracle, WithBitcast)
        bits = bits_of(source, patterns).reshape(shape)
        answer = oracle.bitcast(bitcast(source, target), bits)
        assert answer.shape == new_shape
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert patterns_of(answer.ravel()) == expected

    @pytest.mark.parametrize(
        ("source", "target", "reason"),
        [
            ("float16", "float32", "Last dimension of input shape=3"),
            ("float32", "complex64", "Conversion between complex and real"),
        ],
    )
    def test_xlas_own_refusals(self, oracle: Any, source: str, target: str, reason: str) -> None:
        with pytest.raises(RuntimeError, match=reason):
            oracle.bitcast(bitcast(source, target), bits_of(source, [1, 2, 3]))

    @pytest.mark.parametrize("dtype", ["int4", "float8e8m0", "string"])
    def test_what_is_not_on_the_device(self, oracle: Any, dtype: str) -> None:
        with pytest.raises(Unsupported, match=f"has no {dtype}"):
            oracle.bitcast(bitcast("uint8", dtype), bits_of("uint8", [1]))
