"""paddle's Tensor.view: the same bits in the shape that paddle gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.adapters import paddle as adapter
from oracles.protocol import Unsupported, WithBitcast
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import (
    bits_of,
    skip_without,
    some_patterns,
)


@pytest.fixture(scope="module")
def eager() -> Any:
    skip_without("paddle")
    return adapter.Paddle()


BOOL_BYTES = [0, 1, 2, 128, 255]


def bitcast_case(source: str, target: str) -> Case:
    return Case("xla-bitcast-convert", "1", source, target)


# source, target, shape, the answer's shape: the last dimension is scaled.
VIEWS: list[tuple[str, str, tuple[int, ...], tuple[int, ...]]] = [
    ("float32", "int32", (2, 3), (2, 3)),
    ("float32", "int32", (), ()),
    ("float32", "float16", (10,), (20,)),
    ("float64", "int8", (2, 1), (2, 8)),
    ("float32", "uint64", (2, 4), (2, 2)),
    ("bool", "int64", (1024,), (128,)),
    ("complex128", "float64", (3,), (6,)),
    ("float16", "int16", (0,), (0,)),
    ("float16", "bfloat16", (3, 0, 2), (3, 0, 2)),
    ("uint32", "uint32", (2,), (2,)),
]


class TestBitcast:
    @pytest.mark.parametrize(("source", "target", "shape", "answered"), VIEWS)
    def test_the_same_bits_in_paddles_shape(
        self,
        eager: Any,
        source: str,
        target: str,
        shape: tuple[int, ...],
        answered: tuple[int, ...],
    ) -> None:
        assert isinstance(eager, WithBitcast)
        bits = np.resize(some_patterns(source), shape)
        answer = eager.bitcast(bitcast_case(source, target), bits)
        assert answer.shape == answered
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert answer.tobytes() == bits.tobytes()
        assert not np.shares_memory(answer, bits)

    def test_a_byte_that_is_neither_0_nor_1_stays_in_a_bool(self, eager: Any) -> None:
        answer = eager.bitcast(bitcast_case("uint8", "bool"), bits_of("uint8", BOOL_BYTES))
        assert answer.tolist() == BOOL_BYTES

    @pytest.mark.parametrize(
        ("source", "target", "shape", "words"),
        [
            ("float32", "float16", (), r"strides\[-1\] must be 1"),
            ("float32", "float64", (2, 3), "must be multiple of 2"),
            ("bool", "int64", (1,), "must be multiple of 8"),
            ("float16", "int8", (0,), "must be 1"),
            ("float16", "float32", (3, 0, 2), "must be 1"),
        ],
    )
    def test_a_refusal_is_paddles_own(
        self, eager: Any, source: str, target: str, shape: tuple[int, ...], words: str
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(ValueError, match=words):
            eager.bitcast(bitcast_case(source, target), bits)

    @pytest.mark.parametrize("source", ["uint16", "uint32", "uint64"])
    def test_a_source_without_a_kernel_is_unsupported(self, eager: Any, source: str) -> None:
        bits = np.zeros(4, format_named(source).storage)
        with pytest.raises(Unsupported, match="`view_dtype` is not registered"):
            eager.bitcast(bitcast_case(source, "uint8"), bits)

    @pytest.mark.parametrize("variant", adapter.VARIANTS)
    def test_paddle_makes_no_static_program_of_a_view(self, variant: str) -> None:
        skip_without("paddle")
        reason = r"^no static program: We only support 'view\(\)' in dynamic graph mode"
        with pytest.raises(Unsupported, match=reason) as caught:
            adapter.Paddle(variant).bitcast(
                bitcast_case("float32", "int32"), bits_of("float32", [0])
            )
        assert "\n" not in str(caught.value)
