"""onnxruntime and ONNX's evaluator beyond the contract: models, opsets, modes, folding."""

from __future__ import annotations

import importlib
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from oracles.adapters import onnx_models
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import bits_of, onnx_case, patterns_of, view_case
from tests.adapters.contract import make
from tests.adapters.rewording import Refusal
from tests.adapters.test_contract import all_cases

ROADS = ["ort", "ort:folded", "onnx"]


@pytest.fixture(scope="module", params=ROADS)
def oracle(request: pytest.FixtureRequest) -> Any:
    backend, _, variant = request.param.partition(":")
    return make(backend, variant or None)


class TestModes:
    @pytest.mark.parametrize(("saturate", "expected"), [("1", 0x7E), ("0", 0x7F)])
    def test_saturate(self, oracle: Any, saturate: str, expected: int) -> None:
        case = onnx_case("float32", "float8e4m3fn", saturate=saturate)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x4E6E6B28]))) == [expected]

    @pytest.mark.parametrize(
        ("round_mode", "expected"), [("up", 0x81), ("down", 0x80), ("nearest", 0x80)]
    )
    def test_round_mode(self, oracle: Any, round_mode: str, expected: int) -> None:
        case = onnx_case("float32", "float8e8m0", saturate="1", round_mode=round_mode)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x40200000]))) == [expected]


class TestRoads:
    @pytest.mark.parametrize("source", ["float32", "int4", "float8e5m2"])
    def test_cases_of_one_road_have_one_model(self, oracle: Any, source: str) -> None:
        models: dict[str, set[bytes]] = defaultdict(set)
        for case in all_cases(source):
            with suppress(Unsupported):
                graph = onnx_models.cast_graph(case)
                model = oracle._models.with_input(graph, 1).SerializeToString()
                models[oracle.road(case)].add(model)
        assert [road for road, of_road in models.items() if len(of_road) != 1] == []
        assert len(set().union(*models.values())) == len(models) > 100

    def test_a_road_depends_on_the_opset_the_pair_and_the_attributes(self, oracle: Any) -> None:
        case = onnx_case("float32", "float8e8m0", 25, saturate="1", round_mode="up")
        road = "opset 25, float32->float8e8m0, saturate=1, round_mode=up"
        assert oracle.road(case) == road
        others = [
            onnx_case("float32", "float8e8m0", 24, saturate="1", round_mode="up"),
            onnx_case("float32", "float8e8m0", 25, saturate="0", round_mode="up"),
            onnx_case("float32", "float8e8m0", 25, saturate="1", round_mode="down"),
            onnx_case("float32", "float8e5m2", 25, saturate="1", round_mode="up"),
            onnx_case("float16", "float8e8m0", 25, saturate="1", round_mode="up"),
        ]
        assert len({oracle.road(one) for one in (case, *others)}) == 6


class TestOpsets:
    @pytest.mark.parametrize("version", [6, 9, 13, 19, 21, 23, 24, 25])
    def test_every_opset_casts(self, oracle: Any, version: int) -> None:
        case = onnx_case("float32", "float16", version)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x3FC00000]))) == [0x3E00]

    def test_a_constant_of_an_old_opset_makes_a_valid_model(self) -> None:
        onnx = pytest.importorskip("onnx")
        graph = onnx_models.cast_graph(onnx_case("float32", "float16", 6))
        onnx.checker.check_model(
            onnx_models.ModelBuilder(onnx).with_constant(graph, (1,), bytes(4))
        )

    @pytest.mark.parametrize("backend", ["ort", "onnx"])
    @pytest.mark.parametrize(
        ("dtype", "before", "first"),
        [
            ("bfloat16", 9, 13),
            ("float8e5m2", 13, 19),
            ("int4", 19, 21),
            ("float8e8m0", 23, 24),
            ("int2", 24, 25),
        ],
    )
    def test_the_framework_rejects_a_source_newer_than_the_opset(
        self, backend: str, dtype: str, before: int, first: int
    ) -> None:
        oracle, bits = make(backend), bits_of(dtype, [1])
        oracle.cast(onnx_case(dtype, "float32", first), bits)
        with pytest.raises(Exception, match=r"(?i)type") as caught:
            oracle.cast(onnx_case(dtype, "float32", before), bits)
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("source", ["float32", "float16"])
    @pytest.mark.parametrize("backend", ["ort", "onnx"])
    def test_opset_1_is_unsupported(self, backend: str, source: str) -> None:
        with pytest.raises(Unsupported):
            make(backend).cast(onnx_case(source, "int32", 1), bits_of(source, [0]))


class TestRejections:
    @pytest.mark.parametrize("backend", ["ort", "onnx"])
    @pytest.mark.parametrize("pair", [("complex64", "float32"), ("float32", "complex128")])
    def test_the_framework_rejects_complex(self, backend: str, pair: tuple[str, str]) -> None:
        with pytest.raises(Exception, match="complex") as caught:
            make(backend).cast(onnx_case(*pair), bits_of(pair[0], [0]))
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize(
        "pair",
        [("string", "bfloat16"), ("string", "float8e4m3fn"), ("int4", "string"), ("int4", "int2")],
    )
    @pytest.mark.parametrize("backend", ["onnx", "ml_dtypes"])
    def test_a_cast_that_numpy_lacks_is_unsupported(
        self, backend: str, pair: tuple[str, str]
    ) -> None:
        bits = bits_of(pair[0], ["1" if pair[0] == "string" else 1])
        with pytest.raises(Unsupported):
            make(backend).cast(onnx_case(*pair), bits)

    @pytest.mark.parametrize(
        ("backend", "reason"), [("ort", "stoll"), ("onnx", "abc"), ("ml_dtypes", "abc")]
    )
    def test_a_text_that_cannot_be_parsed_is_an_error(self, backend: str, reason: str) -> None:
        with pytest.raises(Exception, match=reason) as caught:
            make(backend).cast(onnx_case("string", "int32"), bits_of("string", ["abc"]))
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("backend", ["ort", "onnx"])
    def test_the_framework_rejects_a_bitcast_to_another_width(self, backend: str) -> None:
        for source, target in (("float32", "float16"), ("int4", "int8"), ("int8", "int16")):
            with pytest.raises(Exception, match=r"(?i)bit-?width") as caught:
                make(backend).bitcast(view_case(source, target), bits_of(source, [0, 1]))
            assert not isinstance(caught.value, Unsupported)

    def test_onnxruntime_has_no_complex_tensors(self) -> None:
        for source, target in (("complex64", "int64"), ("float64", "complex64")):
            with pytest.raises(
                Unsupported, match="tensor\\(complex64\\) is not currently registered"
            ):
                make("ort").bitcast(view_case(source, target), bits_of(source, [0, 1]))

    @pytest.mark.parametrize("pair", ["float64/float6e2m3", "float6e3m2/float32"])
    def test_a_dtype_that_onnxruntime_lacks_is_unsupported_whatever_its_class(
        self, pair: str
    ) -> None:
        """1.31.1 calls it an invalid argument, and 1.32.0 a failure or an invalid graph."""
        source, target = pair.split("/")
        case = Case("stablehlo-convert", "1.20", source, target)
        with pytest.raises(Unsupported):
            make("ort").cast(case, np.zeros(2, format_named(source).storage))

    @pytest.mark.parametrize("name", ["NotImplemented", "Fail", "InvalidGraph", "InvalidArgument"])
    def test_what_onnxruntime_says_decides_nothing(self, name: str) -> None:
        """Any error answers a case that wants one; in others the class and the dtypes decide."""
        oracle = make("ort")
        error, really = getattr(oracle._states, name)("other words"), oracle._session_or_refusal
        broken = {("int32", "uint2", 24), ("float32", "float16", 25)}
        oracle._session_or_refusal = lambda graph, rank: (
            error if (graph.source, graph.target, graph.opset) in broken else really(graph, rank)
        )
        with pytest.raises(type(error), match="other words"):
            oracle.cast(onnx_case("int32", "uint2", 24), bits_of("int32", [1]))
        due = Unsupported if name == "NotImplemented" else type(error)
        with pytest.raises(due, match="other words"):
            oracle.cast(
                onnx_case("float32", "float16", 25), bits_of("float32", [0, 1]).reshape(1, 2)
            )
        oracle._session_or_refusal = lambda graph, rank: error
        for target in ("float16", "uint2"):
            with pytest.raises(Unsupported, match="other words"):
                oracle.cast(onnx_case("float32", target, 24), bits_of("float32", [0]))

    def test_onnxruntime_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        bits = bits_of("float16", [0])
        for variant in (None, "folded"):
            oracle = make("ort", variant)
            for target in ("complex64", "float4e2m1", "string", "int8"):
                with suppress(Exception):
                    oracle.bind(onnx_case("float16", target), bits)()
                for version in (1, 6, 25):
                    with suppress(Exception):
                        oracle.cast(onnx_case("float16", target, version), bits)
        assert capfd.readouterr() == ("", "")


class TestProviders:
    def test_the_cpu_does_not_answer_for_another_provider(self) -> None:
        pytest.importorskip("onnxruntime")
        providers = importlib.import_module("onnxruntime").get_available_providers()
        if "AzureExecutionProvider" not in providers:
            pytest.skip("only a provider without kernels shows it")
        with pytest.raises(Unsupported, match=r"^AzureExecutionProvider leaves Cast to the CPU$"):
            make("ort", "azure").cast(onnx_case("int8", "int16"), bits_of("int8", [1]))

    def test_without_the_cuda_provider_a_line_says_what_to_do(self) -> None:
        ort = pytest.importorskip("onnxruntime")
        if "CUDAExecutionProvider" in ort.get_available_providers():
            pytest.skip("this onnxruntime has it")
        with pytest.raises(Unsupported, match=r"^onnxruntime \S+ has no CUDA .*; ask `ort`, or"):
            make("ort", "cuda")

    @pytest.mark.filterwarnings("ignore:Specified provider")
    def test_the_cpu_does_not_take_the_place_of_a_device_that_fails(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ort = pytest.importorskip("onnxruntime")
        providers = [*ort.get_available_providers(), "CUDAExecutionProvider"]
        monkeypatch.setattr(ort, "get_available_providers", lambda: providers)
        with pytest.raises(Unsupported, match="cannot use its CUDAExecutionProvider; ask `ort`"):
            make("ort", "cuda")


class TestFolding:
    def test_a_text_that_cannot_be_parsed_is_not_folded(self) -> None:
        with pytest.raises(Unsupported, match="did not fold"):
            make("ort", "folded").cast(onnx_case("string", "int32"), bits_of("string", ["abc"]))

    def test_a_cast_that_was_not_folded_is_unsupported(self) -> None:
        oracle = make("ort", "folded")
        real = oracle._ort
        levels = SimpleNamespace(
            ORT_DISABLE_ALL=real.GraphOptimizationLevel.ORT_DISABLE_ALL,
            ORT_ENABLE_BASIC=real.GraphOptimizationLevel.ORT_DISABLE_ALL,
        )
        oracle._ort = SimpleNamespace(
            SessionOptions=real.SessionOptions,
            InferenceSession=real.InferenceSession,
            GraphOptimizationLevel=levels,
        )
        with pytest.raises(Unsupported, match="did not fold"):
            oracle.cast(onnx_case("float32", "float16"), bits_of("float32", [0]))

    def test_a_bitcast_that_was_not_folded_is_unsupported(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle = make("ort", "folded")
        level = oracle._ort.GraphOptimizationLevel
        monkeypatch.setattr(level, "ORT_ENABLE_BASIC", level.ORT_DISABLE_ALL)
        with pytest.raises(Unsupported, match="did not fold this BitCast at load"):
            oracle.bitcast(view_case("float32", "int32"), bits_of("float32", [0]))

    def test_every_bound_call_is_folded_again(self) -> None:
        oracle = make("ort", "folded")
        oracle._session_with_constant = Mock(wraps=oracle._session_with_constant)
        call = oracle.bind(onnx_case("float32", "float16"), bits_of("float32", [0x3FC00000] * 3))
        before = oracle._session_with_constant.call_count
        for _ in range(2):
            call()
        assert oracle._session_with_constant.call_count == before + 2


class TestCodesOfLessThanAByte:
    @pytest.mark.parametrize("backend", ["ort", "onnx", "ml_dtypes"])
    def test_a_bound_call_returns_one_code_per_byte(self, backend: str) -> None:
        bits = bits_of("float32", [0xC0400000, 0x40A00000, 0xBF800000])  # -3, 5, -1
        call = make(backend).bind(onnx_case("float32", "int4"), bits)
        assert patterns_of(call()) == [0xD, 0x5, 0xF]

    @pytest.mark.parametrize("backend", ["onnx", "ml_dtypes"])
    def test_a_bound_call_drops_bits_above_a_code(self, backend: str) -> None:
        bits = np.array([0xF5, 0x7A], np.uint8)
        call = make(backend).bind(onnx_case("int4", "int4"), bits)
        assert patterns_of(call()) == [0x5, 0xA]


def test_a_graph_that_is_refused_is_tried_once() -> None:
    oracle = make("ort")
    oracle._open = Mock(wraps=oracle._open)
    case, bits = view_case("bool", "uint8"), bits_of("bool", [0, 1])
    reasons = set()
    for _ in range(3):
        with pytest.raises(Unsupported) as refused:
            oracle.bitcast(case, bits)
        reasons.add(str(refused.value))
    assert (len(reasons), oracle._open.call_count) == (1, 1)


def test_a_kept_session_keeps_no_memory_of_its_tensors() -> None:
    session = make("ort")._session(onnx_models.cast_graph(onnx_case("float32", "float16")))
    assert not session.get_session_options().enable_cpu_mem_arena


ONE_TEXT = bits_of("string", ["1"])
DEQUANTIZE = Case(
    "onnx-dequantize-linear", "10", "int8", "float32", (("scale", "float32"), ("form", "tensor"))
)
ZERO_BY_ONE = {"x": np.zeros(1, np.uint8), "scale": np.array(0x3F800000, np.uint32)}
ONNX_REFUSALS = {
    "cast": Refusal(
        make=partial(make, "onnx"),
        refused=lambda oracle: oracle.cast(onnx_case("string", "bfloat16"), ONE_TEXT),
        answered=lambda oracle: oracle.cast(onnx_case("string", "float32"), ONE_TEXT),
        place=lambda oracle: (oracle._reference.ReferenceEvaluator, "run"),
        failures=lambda oracle: [TypeError("Cannot cast"), ValueError("expected number, got str")],
    ),
    "operator": Refusal(
        make=partial(make, "onnx"),
        refused=lambda oracle: oracle.quantize(DEQUANTIZE, ZERO_BY_ONE),
        answered=lambda oracle: oracle.quantize(replace(DEQUANTIZE, version="19"), ZERO_BY_ONE),
        place=lambda oracle: (oracle._reference, "ReferenceEvaluator"),
        failures=lambda oracle: [RuntimeError("No implementation for operator")],
    ),
}


@pytest.mark.parametrize("what", ONNX_REFUSALS)
def test_what_the_evaluator_says_decides_nothing(what: str) -> None:
    pytest.importorskip("onnx")
    ONNX_REFUSALS[what].check()
