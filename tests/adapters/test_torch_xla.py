"""torch_xla beyond the contract; its tox environment has the torch that it was built for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters.torch_xla import TYPES
from specs.formats import format_named
from tests.adapters.common import assert_same, bits_of, onnx_case, view_case
from tests.adapters.contract import built


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    with built("torch_xla") as built_oracle:
        yield built_oracle


@pytest.mark.parametrize("source", TYPES)
def test_every_pair_is_cast(oracle: Any, source: str) -> None:
    bits = np.zeros(3, format_named(source).storage)
    for target in TYPES:
        assert not oracle.cast(onnx_case(source, target), bits).tobytes().strip(b"\0")


def test_bools_are_read_as_bools(oracle: Any) -> None:
    bits = bits_of("bool", [0, 1])
    assert_same(oracle.bitcast(view_case("bool", "bool"), bits), bits)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("float16", "float32", "Last dimension of input shape=3"),
        ("float32", "complex64", "Conversion between complex and real"),
    ],
)
def test_a_refused_bitcast_is_xlas_own_error(
    oracle: Any, source: str, target: str, reason: str
) -> None:
    with pytest.raises(RuntimeError, match=reason):
        oracle.bitcast(view_case(source, target), bits_of(source, [1, 2, 3]))
