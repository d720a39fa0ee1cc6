"""openvino on its roads: the reference, and the CPU plugin on tensors and on constants."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters import openvino as adapter
from oracles.protocol import NotInstalled, Unsupported, WithBind, WithBitcast, WithRoad
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.formats import formats
from tests.adapters.bound_calls import BoundCalls
from tests.adapters.checks import (
    assert_casts_any_layout,
    assert_follows_its_buffer,
    assert_known,
    assert_moves_any_layout,
    assert_repeats,
    assert_shares_no_memory,
    built,
    compared,
    known,
)
from tests.adapters.common import (
    bits_of,
    onnx_case,
    patterns_of,
    run_script,
    some_patterns,
)

ROADS = [None, *adapter.VARIANTS]


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "reference")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("openvino", lambda: adapter.OpenVino(request.param)) as made:
        yield made


class TestIdentity:
    def test_nothing_changes_on_the_way_in_and_out(self, oracle: Any) -> None:
        assert smoke(Backend("openvino", oracle)) == {}

    @pytest.mark.parametrize("dtype", formats())
    def test_every_layout_of_every_dtype(self, oracle: Any, dtype: str) -> None:
        bits = some_patterns(dtype)
        if dtype not in adapter.DTYPES:
            with pytest.raises(Unsupported, match=f"castable as {dtype}$"):
                oracle.identity(dtype, bits)
            return
        assert_moves_any_layout(lambda view: oracle.identity(dtype, view), bits)

    @pytest.mark.parametrize("dtype", ["int4", "uint4", "float4e2m1"])
    def test_what_lies_above_a_code_is_dropped(self, oracle: Any, dtype: str) -> None:
        assert oracle.identity(dtype, np.array([0xF5, 0x7A], np.uint8)).tolist() == [0x5, 0xA]


# Values that openvino's CPU plugin loses, since it carries both types in 32 bits with a sign.
LOST = [("int64", "int64", 1 << 40), ("uint32", "uint64", 0xFFFFFFFF)]
KNOWN = [
    *(row for row in known(adapter.DTYPES.keys()) if row.values[:2] != LOST[1][:2]),
    ("float32", "float8e8m0", {0x40000000: 0x80, 0x3F800000: 0x7F}),
    ("float32", "int32", {0x40200000: 2, 0xC0200000: 0xFFFFFFFE}),
    ("uint8", "uint2", {0x1: 0x1, 0x3: 0x3, 0x2: 0x2, 0x0: 0x0}),
    ("int8", "int64", {0xFE: 0xFFFFFFFFFFFFFFFE, 9: 9}),
]


class TestCasts:
    @pytest.mark.parametrize(("source", "target", "pairs"), KNOWN)
    def test_known_values(self, oracle: Any, source: str, target: str, pairs: Any) -> None:
        assert_known(oracle, source, target, pairs)

    @pytest.mark.parametrize(("source", "target", "whole"), LOST)
    def test_what_the_plugin_loses_is_not_hidden(
        self, oracle: Any, source: str, target: str, whole: int
    ) -> None:
        answer = patterns_of(oracle.cast(onnx_case(source, target), bits_of(source, [whole])))
        assert (answer == [whole]) is (oracle._variant is None)
        assert patterns_of(oracle.identity(source, bits_of(source, [whole]))) == [whole]

    @pytest.mark.parametrize(
        ("source", "target", "pairs"),
        [
            ("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}),
            ("int4", "int8", {0x1: 0x01, 0xF: 0xFF, 0x8: 0xF8}),
            ("int8", "int4", {0x05: 0x5, 0xFD: 0xD, 0x00: 0x0, 0xF8: 0x8}),
            ("uint8", "uint2", {1: 1, 3: 3, 0: 0, 2: 2}),
        ],
    )
    def test_any_rank_any_layout(
        self, oracle: Any, source: str, target: str, pairs: dict[int, int]
    ) -> None:
        assert_casts_any_layout(oracle, source, target, pairs)

    @pytest.mark.parametrize("dtype", adapter.DTYPES)
    def test_answers_share_no_memory_with_questions(self, oracle: Any, dtype: str) -> None:
        assert_shares_no_memory(oracle, dtype)

    def test_a_plain_cast_stands_for_cast_none(self, oracle: Any) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", "on"))
        case = Case("pypto-cast", "0.2", "float32", "float16", modes)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x3FC00000]))) == [0x3E00]

    def test_it_has_no_bitcast(self, oracle: Any) -> None:
        assert not isinstance(oracle, WithBitcast)


class TestRefusals:
    @pytest.mark.parametrize(
        ("source", "target"), [("float8e8m0", "int32"), ("int8", "float4e2m1")]
    )
    def test_a_missing_kernel_is_unsupported(self, oracle: Any, source: str, target: str) -> None:
        case, bits = onnx_case(source, target), bits_of(source, [1, 2])
        with pytest.raises(Unsupported, match=r"convert") as by_cast:
            oracle.cast(case, bits)
        with pytest.raises(Unsupported) as by_bind:
            oracle.bind(case, bits)
        assert str(by_bind.value) == str(by_cast.value)
        assert adapter.DTYPES[source] in str(by_cast.value)

    def test_what_a_kernel_raises_late_is_not_swallowed(self, oracle: Any) -> None:
        case, bits = onnx_case("float8e4m3fn", "bool"), bits_of("float8e4m3fn", [0x3C, 0])
        for _ in range(3):  # after ``infer`` had swallowed it, the third model killed the process
            if oracle._variant in (None, "cpu-folded"):
                assert patterns_of(oracle.cast(case, bits)) == [1, 0]
            else:
                with pytest.raises(Unsupported, match=r"^unsupported src_prc: f8e4m3$"):
                    oracle.cast(case, bits)

    def test_any_other_error_passes(self) -> None:
        pytest.importorskip("openvino")

        def fail() -> None:
            raise RuntimeError("Exception from somewhere:\nout of luck")

        with pytest.raises(RuntimeError, match="out of luck"):
            adapter.OpenVino("cpu")._or_unsupported(fail)

    @pytest.mark.parametrize(
        "dtype", ["float8e4m3fnuz", "float6e2m3", "int2", "complex64", "string"]
    )
    def test_a_dtype_that_is_not_there(self, oracle: Any, dtype: str) -> None:
        for pair in ((dtype, "float32"), ("float32", dtype)):
            bits = bits_of(pair[0], ["1"] if pair[0] == "string" else [1])
            for ask in (
                lambda pair=pair, bits=bits: oracle.cast(onnx_case(*pair), bits),
                lambda pair=pair: oracle.road(onnx_case(*pair)),
                lambda pair=pair, bits=bits: oracle.reproduce(onnx_case(*pair), bits),
            ):
                with pytest.raises(Unsupported, match=f"no dtype castable as {dtype}$"):
                    ask()

    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    def test_a_mode_that_convert_lacks(self, oracle: Any, modes: dict[str, str]) -> None:
        case = onnx_case("float32", "float16", 25, **modes)
        with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
            oracle.cast(case, bits_of("float32", [0]))
        with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
            oracle.road(case)

    def test_an_unknown_variant_names_the_known_ones(self) -> None:
        pytest.importorskip("openvino")
        with pytest.raises(Unsupported, match=r"variants are cpu, cpu-dynamic, cpu-folded$"):
            adapter.OpenVino("nonsense")

    def test_a_missing_package_names_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "openvino", None)
        with pytest.raises(NotInstalled, match=r"openvino.*'castigate\[openvino\]'$"):
            adapter.OpenVino()

    def test_nothing_is_imported_before_it_is_asked(self) -> None:
        script = "import sys, oracles.adapters.openvino; print('openvino' in sys.modules)"
        assert run_script(script) == ["False"]


class TestRoads:
    def test_one_road_one_pair(self, oracle: Any) -> None:
        assert isinstance(oracle, WithRoad)
        for modes in ({}, {"saturate": "0"}, {"saturate": "1"}):
            case = onnx_case("float32", "float8e5m2", 23, **modes)
            assert oracle.road(case) == "float32->float8e5m2"

    def test_each_variant_goes_its_own_way(self) -> None:
        pytest.importorskip("openvino")
        evaluated, *compiled, folded = [adapter.OpenVino(variant) for variant in ROADS]
        case, bits = onnx_case("float32", "float16"), np.zeros((2, 3), np.uint32)
        for oracle in (evaluated, *compiled, folded):
            oracle.cast(case, bits)
        for oracle in (evaluated, folded):
            assert oracle._compiled.cache_info().misses == 0
        inputs = [
            oracle._compiled("float32", "float16", shape).input(0)
            for oracle, shape in zip(compiled, ((2, 3), (-1, -1)), strict=True)
        ]
        assert [oracle._compiled.cache_info().misses for oracle in compiled] == [1, 1]
        assert [one.partial_shape.is_static for one in inputs] == [True, False]

    def test_the_plugin_has_one_thread_and_the_precision_of_the_model(self) -> None:
        pytest.importorskip("openvino")
        model = adapter.OpenVino("cpu")._compiled("float32", "bfloat16", (3,))
        assert model.get_property("INFERENCE_NUM_THREADS") == 1
        assert model.get_property("EXECUTION_MODE_HINT").name == "ACCURACY"


@pytest.fixture(scope="module")
def roads() -> list[Any]:
    """The CPU plugin on tensors and on constants."""
    pytest.importorskip("openvino")
    return [adapter.OpenVino(variant) for variant in ("cpu", "cpu-folded")]


class TestFolding:
    def test_the_model_that_runs_holds_the_answer(
        self, roads: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        models = []
        real = roads[1]._compile_model

        def kept(*asked: Any) -> Any:
            models.append(real(*asked).get_runtime_model())
            return real(*asked)

        monkeypatch.setattr(roads[1], "_compile_model", kept)
        for target in ("int16", "int64"):
            roads[1].cast(onnx_case("float32", target), bits_of("float32", [0x3FC00000, 0]))
        layers = [
            [layer.get_rt_info()["layerType"].value for layer in model.get_ordered_ops()]
            for model in models
        ]
        # The plugin carries 64 bits in 32, and widens what it has folded.
        assert layers == [["Const", "Output"], ["Const", "Convert", "Output"]]

    def test_a_conversion_that_is_left_to_run_is_unsupported(self, roads: list[Any]) -> None:
        case, bits = onnx_case("float4e2m1", "int8"), bits_of("float4e2m1", [2, 4])
        assert patterns_of(roads[0].cast(case, bits)) == [1, 2]
        with pytest.raises(Unsupported, match=r"did not fold this, but left Const, Convert,"):
            roads[1].cast(case, bits)

    def test_a_folded_answer_can_differ_from_that_at_run_time(self, roads: list[Any]) -> None:
        case, bits = onnx_case("float64", "int8"), bits_of("float64", [0x4069 << 48])  # 200
        assert [patterns_of(road.cast(case, bits)) for road in roads] == [[0x7F], [0xC8]]

    def test_a_constant_comes_in_as_it_is(self, roads: list[Any]) -> None:
        signaling = {"float32": 0x7F800001, "bfloat16": 0xFF81}
        for dtype, pattern in signaling.items():
            answer = roads[1].cast(onnx_case(dtype, dtype), bits_of(dtype, [pattern]))
            assert patterns_of(answer) == [pattern]

    def test_a_wrong_fold_is_caught(
        self, roads: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert compared(*roads, "int8", "int16") == ("conforms", "")
        real = roads[1]._operators

        class Doubling:
            def convert(self, operand: Any, target: Any) -> Any:
                return real.convert(real.add(operand, operand), target)

        monkeypatch.setattr(roads[1], "_operators", Doubling())
        verdict, message = compared(*roads, "int8", "int16")
        assert verdict == "differs"
        assert message.startswith("255 of 256 inputs answer otherwise than on openvino:0")


BOUND = [
    onnx_case("float32", "float16"),
    onnx_case("float32", "float32"),
    onnx_case("float32", "bfloat16"),
    onnx_case("float32", "float4e2m1"),
    onnx_case("float32", "int4"),
    onnx_case("float32", "uint2"),
    onnx_case("float64", "int64"),
    onnx_case("int64", "bool"),
    onnx_case("int4", "int8"),
    onnx_case("float8e5m2", "float64"),
]


class TestBinding(BoundCalls):
    @pytest.mark.parametrize("case", BOUND, ids=lambda case: f"{case.source}-{case.target}")
    def test_every_refill_is_answered_as_cast_answers_it(self, oracle: Any, case: Case) -> None:
        assert isinstance(oracle, WithBind)
        assert_follows_its_buffer(oracle, case)


FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]
SCRIPTS = [
    (onnx_case("float32", "bfloat16", saturate="1"), FLOATS),
    (onnx_case("float32", "float4e2m1"), FLOATS[:5]),
    (onnx_case("int4", "uint2"), [*range(16)] * 3),
    (onnx_case("uint64", "bool"), [0, 1 << 63, 5]),
]


@pytest.mark.parametrize(("case", "patterns"), SCRIPTS, ids=[row[0].id for row in SCRIPTS])
def test_a_reproduction_prints_the_same_answers(
    oracle: Any, case: Case, patterns: list[int]
) -> None:
    assert_repeats(oracle, case, patterns)
