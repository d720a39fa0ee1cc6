"""openvino beyond the contract: what the CPU plugin loses, its models, its folding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from oracles.adapters import openvino as adapter
from oracles.protocol import Unsupported, WithBitcast
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import bits_of, compared, onnx_case, patterns_of
from tests.adapters.contract import built, make
from tests.adapters.rewording import Refusal

ROADS = [None, *adapter.VARIANTS]


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "reference")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("openvino", request.param) as built_oracle:
        yield built_oracle


# Values that openvino's CPU plugin loses, since it carries both types as signed 32-bit integers.
LOST = [("int64", "int64", 1 << 40), ("uint32", "uint64", 0xFFFFFFFF)]


class TestCasts:
    @pytest.mark.parametrize(("source", "target", "whole"), LOST)
    def test_the_adapter_does_not_hide_what_the_plugin_loses(
        self, oracle: Any, source: str, target: str, whole: int
    ) -> None:
        answer = patterns_of(oracle.cast(onnx_case(source, target), bits_of(source, [whole])))
        assert (answer == [whole]) is (oracle._variant is None)
        assert patterns_of(oracle.identity(source, bits_of(source, [whole]))) == [whole]

    def test_there_is_no_bitcast(self, oracle: Any) -> None:
        assert not isinstance(oracle, WithBitcast)


class TestConvertLike:
    def test_its_document_is_answered_by_convert_like_and_all_others_by_convert(
        self, oracle: Any
    ) -> None:
        for document, operation in (
            ("openvino-convert-like", "ConvertLike"),
            ("openvino-convert", "Convert"),
            ("onnx-cast", "Convert"),
        ):
            _, node = oracle._graph(Case(document, "1", "float32", "int4"), [3])
            assert node.get_type_name() == operation

    @pytest.mark.parametrize("target", ["int4", "uint8", "float16", "float8e8m0"])
    def test_it_answers_in_any_shape(self, oracle: Any, target: str) -> None:
        case = Case("openvino-convert-like", "1", "float32", target)
        bits = np.float32([1, 2, 4, 1, 2, 4]).view(np.uint32).reshape(2, 3)
        expected = {"int4": [1, 2, 4], "uint8": [1, 2, 4], "float8e8m0": [127, 128, 129]}.get(
            target, [0x3C00, 0x4000, 0x4400]
        )
        answer = oracle.cast(case, bits)
        assert answer.shape == (2, 3)
        assert answer.tolist() == [expected, expected]
        assert oracle.bind(case, bits.ravel())().tolist() == expected * 2

    def test_the_two_operations_are_swept_one_by_one(self, oracle: Any) -> None:
        like, plain = (
            Case(document, "1", "float32", "int8")
            for document in ("openvino-convert-like", "openvino-convert")
        )
        assert oracle.road(like) != oracle.road(plain) == oracle.road(onnx_case("float32", "int8"))

    def test_what_the_pass_does_not_fold_is_unsupported(self) -> None:
        case = Case("openvino-convert-like", "1", "float8e8m0", "int32")
        with pytest.raises(Unsupported, match="does not convert f8e8m0 to i32"):
            make("openvino").cast(case, bits_of("float8e8m0", [127]))


class TestErrors:
    def test_an_error_while_a_kernel_runs_is_not_swallowed(self, oracle: Any) -> None:
        case, bits = onnx_case("float8e4m3fn", "bool"), bits_of("float8e4m3fn", [0x3C, 0])
        for _ in range(3):  # after ``infer`` had swallowed it, the third model killed the process
            if oracle._variant in (None, "cpu-folded"):
                assert patterns_of(oracle.cast(case, bits)) == [1, 0]
            else:
                with pytest.raises(
                    Unsupported, match=r"plugin does not convert f8e4m3 to boolean$"
                ):
                    oracle.cast(case, bits)


class TestModels:
    def test_each_variant_compiles_its_own_models(self) -> None:
        evaluated, *compiled, folded = [make("openvino", variant) for variant in ROADS]
        case, bits = onnx_case("float32", "float16"), np.zeros((2, 3), np.uint32)
        for oracle in (evaluated, *compiled, folded):
            oracle.cast(case, bits)
        for oracle in (evaluated, folded):
            assert oracle._compiled.cache_info().misses == 0
        inputs = [
            oracle._compiled(adapter._kernel_of(case), shape).input(0)
            for oracle, shape in zip(compiled, ((2, 3), (-1, -1)), strict=True)
        ]
        assert [oracle._compiled.cache_info().misses for oracle in compiled] == [1, 1]
        assert [one.partial_shape.is_static for one in inputs] == [True, False]

    def test_the_plugin_has_one_thread_and_the_precision_of_the_model(self) -> None:
        model = make("openvino", "cpu")._compiled(onnx_case("float32", "bfloat16"), (3,))
        assert model.get_property("INFERENCE_NUM_THREADS") == 1
        assert model.get_property("EXECUTION_MODE_HINT").name == "ACCURACY"


@pytest.fixture(scope="module")
def roads() -> list[Any]:
    """The CPU plugin on tensors and on constants."""
    return [make("openvino", variant) for variant in ("cpu", "cpu-folded")]


class TestFolding:
    def test_the_model_that_runs_holds_the_answer(
        self, roads: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        models = []
        real = roads[1]._plugin.compile

        def recorded(*given: Any) -> Any:
            models.append(real(*given).get_runtime_model())
            return real(*given)

        monkeypatch.setattr(roads[1]._plugin, "compile", recorded)
        for target in ("int16", "int64"):
            roads[1].cast(onnx_case("float32", target), bits_of("float32", [0x3FC00000, 0]))
        layers = [
            [layer.get_rt_info()["layerType"].value for layer in model.get_ordered_ops()]
            for model in models
        ]
        # The plugin folds 64-bit integers in 32 bits, and widens the constant at run time.
        assert layers == [["Const", "Output"], ["Const", "Convert", "Output"]]

    def test_a_conversion_that_is_left_to_run_is_unsupported(self, roads: list[Any]) -> None:
        case, bits = onnx_case("float4e2m1", "int8"), bits_of("float4e2m1", [2, 4])
        assert patterns_of(roads[0].cast(case, bits)) == [1, 2]
        with pytest.raises(Unsupported, match=r"did not fold this, but left Const, Convert,"):
            roads[1].cast(case, bits)

    def test_a_folded_answer_can_differ_from_that_at_run_time(self, roads: list[Any]) -> None:
        case, bits = onnx_case("float64", "int8"), bits_of("float64", [0x4069 << 48])  # 200
        assert [patterns_of(road.cast(case, bits)) for road in roads] == [[0x7F], [0xC8]]

    def test_a_constant_keeps_its_bits(self, roads: list[Any]) -> None:
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
        assert verdict == "violates"
        assert message.startswith("255 of 256 inputs answer otherwise than on openvino:0")


SCALED = (("scale", "float32"), ("form", "tensor"))
ONE_BY_ONE = {"x": np.float32([1]).view(np.uint32), "scale": np.array(0x3F800000, np.uint32)}


def converts(variant: str, source: str, target: str, owner: str, name: str) -> Refusal:
    """A refusal of a conversion by the plugin, and float32 to float16, which it answers."""
    bits = np.zeros(1, format_named(source).storage)
    return Refusal(
        make=partial(make, "openvino", variant),
        refused=lambda oracle: oracle.cast(onnx_case(source, target), bits),
        answered=lambda oracle: oracle.cast(onnx_case("float32", "float16"), np.zeros(1, "u4")),
        place=lambda oracle: (attrgetter(owner)(oracle), name),
        failures=lambda oracle: [RuntimeError("can't convert from"), ValueError("src_prc")],
    )


REFUSALS = {
    "compile": converts("cpu", "float64", "float8e8m0", "_plugin.core", "compile_model"),
    "run": converts("cpu", "float8e4m3fn", "bool", "_openvino.InferRequest", "wait"),
    "dynamic": converts("cpu-dynamic", "float8e4m3fn", "bool", "_openvino.InferRequest", "wait"),
    "read": Refusal(
        make=partial(make, "openvino"),
        refused=lambda oracle: oracle.quantize(
            Case("onnx-quantize-linear", "25", "float32", "float4e2m1", SCALED), ONE_BY_ONE
        ),
        answered=lambda oracle: oracle.quantize(
            Case("onnx-quantize-linear", "25", "float32", "uint8", SCALED), ONE_BY_ONE
        ),
        place=lambda oracle: (oracle._plugin.core, "read_model"),
        failures=lambda oracle: [RuntimeError("Unsupported data type")],
    ),
}


@pytest.mark.parametrize("where", REFUSALS)
def test_what_openvino_says_decides_nothing(where: str) -> None:
    REFUSALS[where].check()
