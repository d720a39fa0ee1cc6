"""The torch adapter beyond the contract: views of other widths, packed codes, variant `view`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import bits_of, onnx_case, patterns_of, view_case
from tests.adapters.contract import make


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("float16", "float32", (3,)),
        ("float16", "float64", (2, 2)),
        ("float32", "float16", ()),
        ("uint8", "uint64", ()),
    ],
)
@pytest.mark.parametrize("road", ["ml_dtypes", "torch", "torch:view", "torch:compile"])
def test_the_framework_refuses_a_length_that_does_not_divide(
    road: str, source: str, target: str, shape: tuple[int, ...]
) -> None:
    backend, _, variant = road.partition(":")
    bits = np.zeros(shape, format_named(source).storage)
    with pytest.raises(Exception, match=r"divi|dim|0d|shape") as caught:
        make(backend, variant or None).bitcast(view_case(source, target), bits)
    assert not isinstance(caught.value, Unsupported)


def test_half_a_pair_of_codes_is_unsupported() -> None:
    oracle = make("torch", "view")
    for bits in (bits_of("float4e2m1", [1, 2, 3]), bits_of("float4e2m1", [1]).reshape(())):
        with pytest.raises(Unsupported, match="holds pairs along the last dimension"):
            oracle.bitcast(view_case("float4e2m1", "uint8"), bits)
    with pytest.raises(Unsupported, match="without dimensions holds a pair"):
        oracle.bitcast(view_case("uint8", "float4e2m1"), bits_of("uint8", [1]).reshape(()))


@pytest.mark.parametrize("dtype", ["int4", "int2", "uint4", "uint2"])
@pytest.mark.parametrize("backend", ["torch", "ml_dtypes"])
def test_a_byte_per_code_is_not_a_bitcast(backend: str, dtype: str) -> None:
    oracle = make(backend)
    for source, target in ((dtype, "uint8"), ("uint8", dtype)):
        with pytest.raises(Unsupported, match="stores every"):
            oracle.bitcast(view_case(source, target), bits_of(source, [1, 2]))


def test_the_variant_view_offers_only_bitcasts() -> None:
    oracle, case = make("torch", "view"), onnx_case("float32", "float16")
    bits = bits_of("float32", [0x3FC00000])
    assert patterns_of(oracle.bitcast(case, bits)) == [0, 0x3FC0]
    for ask in (oracle.cast, oracle.bind, oracle.reproduce):
        with pytest.raises(Unsupported, match="torch:view offers bitcasts alone"):
            ask(case, bits)
    with pytest.raises(Unsupported, match="torch:view offers bitcasts alone"):
        oracle.road(case)


@pytest.mark.parametrize("variant", [None, "view", "compile"])
def test_a_view_shares_its_tensors_memory(variant: str | None) -> None:
    oracle: Any = make("torch", variant)
    for target in ("int32", "float16", "float32"):
        case = Case("torch-view", "2", "float32", target, (("shape", "2x2"),))
        assert oracle.bitcast_shares_memory(case, np.ones((2, 2), np.uint32)), target


def test_an_empty_tensor_of_a_script_is_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle: Any = make("torch")
    bits = np.zeros((0, 2), np.uint32)
    assert oracle.input_text("float32", bits) == "torch.empty((0, 2), dtype=torch.float32)"
    monkeypatch.setattr(oracle, "_device", "cuda")
    assert oracle.input_text("float32", bits).endswith('dtype=torch.float32, device="cuda")')
