"""TVM beyond the contract: ``reinterpret``, its kernels, and relax's folding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from oracles.adapters import tvm as adapter
from oracles.protocol import Unsupported, WithBitcast
from specs.formats import format_named
from tests.adapters.common import (
    assert_moves_any_layout,
    assert_same,
    bits_of,
    compared,
    onnx_case,
    some_patterns,
    view_case,
)
from tests.adapters.contract import built, make
from tests.adapters.contract_road import SUB_BYTE
from tests.adapters.rewording import Refusal

ROADS = (None, *adapter.VARIANTS)


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "any-length")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("tvm", request.param) as built_oracle:
        yield built_oracle


class TestKernels:
    def test_one_build_serves_every_length(self) -> None:
        with built("tvm") as oracle:
            for count in (1, 0, 100, 17):
                oracle.cast(onnx_case("float32", "int4"), np.zeros(count, np.uint32))
                oracle.cast(onnx_case("int4", "uint4"), np.zeros((count, 3), np.uint8))
            assert oracle._kernel.cache_info().misses == 2

    def test_a_call_allocates_nothing(self, oracle: Any) -> None:
        if oracle._variant == "folded":
            pytest.skip("a constant is built for every call")
        call = oracle.bind(onnx_case("float32", "float16"), bits_of("float32", [0x3FC00000]))
        assert call() is call()


class TestBitcasts:
    @pytest.fixture(autouse=True)
    def _offers_them(self, oracle: Any) -> None:
        if oracle._variant == "folded":
            with pytest.raises(Unsupported, match=r"no reinterpret that it could fold$"):
                oracle.bitcast(view_case("int8", "uint8"), bits_of("int8", [1]))
            pytest.skip("relax has no reinterpret")

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            ("float64", "int64"), ("uint32", "float32"), ("float16", "bfloat16"),
            ("uint8", "float8e4m3fn"), ("float8e5m2fnuz", "float8e8m0"), ("int8", "uint8"),
            ("float6e2m3", "float6e3m2"), ("uint4", "float4e2m1"), ("int2", "uint2"),
            ("bool", "bool"),
        ],
    )  # fmt: skip
    def test_patterns_and_shape_stay(self, oracle: Any, source: str, target: str) -> None:
        assert isinstance(oracle, WithBitcast)
        bits = some_patterns(source)
        assert_same(
            oracle.bitcast(view_case(source, target), bits), bits.view(format_named(target).storage)
        )
        assert_moves_any_layout(lambda view: oracle.bitcast(view_case(source, target), view), bits)

    @pytest.mark.parametrize(
        ("source", "target", "message"),
        [
            ("float32", "float16", "Reinterpret requires size match"),
            ("uint8", "uint16", "Reinterpret requires size match"),
            ("bool", "uint8", "bitcast i1"),
            ("int8", "int4", "Reinterpret requires size match"),
            ("int8", "float4e2m1", "bitcast i8"),
        ],
    )
    def test_another_width_is_tvms_own_error(
        self, oracle: Any, source: str, target: str, message: str
    ) -> None:
        with pytest.raises(Exception, match=message) as caught:
            oracle.bitcast(view_case(source, target), bits_of(source, [1, 0]))
        assert not isinstance(caught.value, Unsupported)


class TestErrors:
    def test_any_other_error_passes(self, oracle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(oracle._tvm, "compile", fail)
        monkeypatch.setattr(oracle._folding, "answer", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            oracle.cast(onnx_case("uint16", "float8e8m0"), bits_of("uint16", [1]))

    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    def test_a_script_needs_a_mode_that_astype_has(
        self, oracle: Any, modes: dict[str, str]
    ) -> None:
        case = onnx_case("float32", "float16", **modes)
        with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
            oracle.reproduce(case, bits_of("float32", [0]))

    def test_refusals_print_nothing(self, oracle: Any, capfd: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(Unsupported):
            oracle.cast(onnx_case("float16", "float4e2m1"), bits_of("float16", [0]))
        for target in ("uint8", "int16"):
            with pytest.raises((RuntimeError, Unsupported)):
                oracle.bitcast(view_case("bool", target), bits_of("bool", [0]))
        assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def roads() -> Iterator[dict[str | None, Any]]:
    """Every road of the framework."""
    with built("tvm") as eager:
        yield {None: eager} | {variant: make("tvm", variant) for variant in adapter.VARIANTS}


THREE_BILLION = 0x41E65A0BC0000000


class TestKnownShapes:
    def test_one_build_serves_one_shape(self) -> None:
        with built("tvm", "static") as oracle:
            for shape in ((3,), (3,), (1, 3), (), (0,)):
                oracle.cast(onnx_case("float32", "int8"), np.zeros(shape, np.uint32))
            assert oracle._kernel.cache_info().misses == 4

    def test_the_loop_has_the_tensors_own_lengths(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lengths = []
        real = roads["static"]._names["te"].placeholder

        def recorded(shape: Any, *more: Any) -> Any:
            lengths.append(shape)
            return real(shape, *more)

        monkeypatch.setattr(roads["static"]._names["te"], "placeholder", recorded)
        roads["static"].cast(onnx_case("float32", "uint16"), np.zeros((2, 5), np.uint32))
        assert lengths == [(2, 5)]

    def test_a_vector_and_the_remaining_elements_answer_differently(
        self, roads: dict[str | None, Any]
    ) -> None:
        # 3e9 does not fit int8, and TVM leaves the answer to the processor's instructions.
        case, bits = onnx_case("float64", "int8"), bits_of("float64", [THREE_BILLION] * 17)
        answers = {road: roads[road].cast(case, bits).tolist() for road in ROADS}
        assert answers == {
            None: [0] * 17,
            "static": [0x80] * 16 + [0],
            "folded": [0x80] * 16 + [0],
        }

    def test_a_wrong_program_is_caught(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pair = (roads[None], roads["static"])
        assert compared(*pair, "int8", "int16") == ("conforms", "")
        real = pair[1]._names["te"].compute
        roads["static"]._kernel.cache_clear()
        monkeypatch.setattr(
            pair[1]._names["te"],
            "compute",
            lambda shape, of: real(shape, lambda *at: of(*at) + of(*at)),
        )
        verdict, message = compared(*pair, "int8", "int16")
        roads["static"]._kernel.cache_clear()
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on tvm:0" in message


class TestFolding:
    def test_a_cast_that_relax_does_not_fold_is_unsupported(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle = roads["folded"]
        case, bits = onnx_case("float32", "int8"), bits_of("float32", [0x3FC00000])
        assert oracle.cast(case, bits).tolist() == [1]
        transform = oracle._folding._relax.transform
        monkeypatch.setattr(transform, "FoldConstant", lambda: lambda module: module)
        with pytest.raises(Unsupported, match="relax did not fold this, but left a call"):
            oracle.cast(case, bits)

    @pytest.mark.parametrize("dtype", sorted(set(adapter.DTYPES) - SUB_BYTE))
    def test_a_constant_keeps_its_bits(self, roads: dict[str | None, Any], dtype: str) -> None:
        bits = some_patterns(dtype, 64)
        assert_same(roads["folded"].cast(onnx_case(dtype, dtype), bits), bits)

    def test_a_wrong_fold_is_caught(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pair = (roads[None], roads["folded"])
        assert compared(*pair, "int8", "int16") == ("conforms", "")
        relax = pair[1]._folding._relax
        real = relax.op.astype
        monkeypatch.setattr(relax.op, "astype", lambda x, dtype: real(relax.op.add(x, x), dtype))
        verdict, message = compared(*pair, "int8", "int16")
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on tvm:0" in message


def test_what_tvm_says_decides_nothing() -> None:
    bits = bits_of("float16", [0])
    words = "(from.MatchesCode(kDLFloat) && to.MatchesCode(DLDataTypeCode::kDLFloat)) is false"
    Refusal(
        make=partial(make, "tvm"),
        refused=lambda oracle: oracle.cast(onnx_case("float16", "float4e2m1"), bits),
        answered=lambda oracle: oracle.cast(onnx_case("float16", "float32"), bits),
        place=lambda oracle: (oracle._tvm, "compile"),
        failures=lambda oracle: [oracle._tvm.error.InternalError(words), RuntimeError(words)],
    ).check()
