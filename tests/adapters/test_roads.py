"""Modes, opsets and variants: what selects a road, and what is not offered."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from tests.adapters.common import (
    ADAPTERS,
    ROADS,
    Road,
    bits_of,
    onnx_case,
    patterns_of,
    run_script,
)


class TestModes:
    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize(("saturate", "expected"), [("1", 0x7E), ("0", 0x7F)])
    def test_saturate(self, road: Road, saturate: str, expected: int) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        case = onnx_case("float32", "float8e4m3fn", saturate=saturate)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x4E6E6B28]))) == [expected]

    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize(
        ("round_mode", "expected"), [("up", 0x81), ("down", 0x80), ("nearest", 0x80)]
    )
    def test_round_mode(self, road: Road, round_mode: str, expected: int) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        case = onnx_case("float32", "float8e8m0", saturate="1", round_mode=round_mode)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x40200000]))) == [expected]

    @pytest.mark.parametrize("satmode", ["off", "on"])
    def test_a_plain_cast_stands_for_cast_none(self, oracle: Any, satmode: str) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", satmode))
        case = Case("pypto-cast", "0.2", "float32", "float16", modes)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x3FC00000]))) == [0x3E00]

    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    def test_no_mode_that_a_plain_cast_lacks(self, oracle: Any, modes: dict[str, str]) -> None:
        case = onnx_case("float32", "float16", 25, **modes)
        with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
            oracle.cast(case, bits_of("float32", [0x3FC00000]))


class TestOpsets:
    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize("version", [6, 9, 13, 19, 21, 23, 24, 25])
    def test_every_opset_casts(self, road: Road, version: int) -> None:
        case = onnx_case("float32", "float16", version)
        answer = ADAPTERS[road[0]].make(road[1]).cast(case, bits_of("float32", [0x3FC00000]))
        assert patterns_of(answer) == [0x3E00]

    def test_a_constant_of_an_old_opset_makes_a_valid_model(self) -> None:
        onnx = pytest.importorskip("onnx")
        models = importlib.import_module("oracles.adapters.onnx_models")
        graph = models.cast_graph(onnx_case("float32", "float16", 6))
        onnx.checker.check_model(models.ModelBuilder(onnx).with_constant(graph, (1,), bytes(4)))

    @pytest.mark.parametrize("name", ["ort", "onnx"])
    @pytest.mark.parametrize(
        ("dtype", "first"),
        [("bfloat16", 13), ("float8e5m2", 19), ("int4", 21), ("float8e8m0", 24), ("int2", 25)],
    )
    def test_a_source_newer_than_the_opset_is_rejected(
        self, name: str, dtype: str, first: int
    ) -> None:
        oracle, bits = ADAPTERS[name].make(), bits_of(dtype, [1])
        oracle.cast(onnx_case(dtype, "float32", first), bits)
        with pytest.raises(Exception, match=r"(?i)type") as caught:
            oracle.cast(onnx_case(dtype, "float32", first - 1), bits)
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("name", ["ort", "onnx"])
    @pytest.mark.parametrize("pair", [("complex64", "float32"), ("float32", "complex128")])
    def test_complex_is_rejected_by_the_framework(self, name: str, pair: tuple[str, str]) -> None:
        oracle = ADAPTERS[name].make()
        with pytest.raises(Exception, match="complex") as caught:
            oracle.cast(onnx_case(*pair), bits_of(pair[0], [0]))
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("source", ["float32", "float16"])
    @pytest.mark.parametrize("name", ["ort", "onnx"])
    def test_nobody_runs_opset_1(self, name: str, source: str) -> None:
        with pytest.raises(Unsupported):
            ADAPTERS[name].make().cast(onnx_case(source, "int32", 1), bits_of(source, [0]))

    def test_a_missing_kernel_is_unsupported(self) -> None:
        with pytest.raises(Unsupported, match="NOT_IMPLEMENTED"):
            ADAPTERS["ort"].make().cast(onnx_case("float32", "float4e2m1"), bits_of("float32", [0]))

    @pytest.mark.parametrize(
        "pair",
        [
            ("string", "bfloat16"),
            ("string", "float8e4m3fn"),
            ("int4", "string"),
            ("int4", "int2"),
        ],
    )
    def test_a_cast_that_numpy_lacks_is_unsupported(self, pair: tuple[str, str]) -> None:
        bits = bits_of(pair[0], ["1" if pair[0] == "string" else 1])
        for name in ("onnx", "ml_dtypes"):
            with pytest.raises(Unsupported):
                ADAPTERS[name].make().cast(onnx_case(*pair), bits)

    @pytest.mark.parametrize(
        ("name", "reason"), [("ort", "stoll"), ("onnx", "abc"), ("ml_dtypes", "abc")]
    )
    def test_a_text_that_cannot_be_read_is_an_error(self, name: str, reason: str) -> None:
        with pytest.raises(Exception, match=reason) as caught:
            ADAPTERS[name].make().cast(onnx_case("string", "int32"), bits_of("string", ["abc"]))
        assert not isinstance(caught.value, Unsupported)

    def test_a_text_that_cannot_be_read_is_not_folded(self) -> None:
        with pytest.raises(Unsupported, match="did not fold"):
            ADAPTERS["ort"].make("folded").cast(
                onnx_case("string", "int32"), bits_of("string", ["abc"])
            )


class TestVariants:
    @pytest.mark.parametrize("name", ADAPTERS)
    def test_an_unknown_variant_names_the_known_ones(self, name: str) -> None:
        adapter = ADAPTERS[name]
        adapter.make()
        with pytest.raises(Unsupported, match="no variant `nonsense`") as caught:
            adapter.make("nonsense")
        assert all(variant in str(caught.value) for variant in adapter.load().VARIANTS)

    @pytest.mark.parametrize("name", ADAPTERS)
    def test_a_missing_package_names_its_extra(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        adapter = ADAPTERS[name]
        for package in adapter.packages:
            monkeypatch.setitem(sys.modules, package, None)
            with pytest.raises(NotInstalled, match=rf"{package}.*'castigate\[{name}\]'$"):
                getattr(adapter.load(), adapter.class_name)()
            monkeypatch.undo()

    def test_nothing_is_imported_before_it_is_asked(self) -> None:
        script = "import sys\n" + "".join(
            f"import oracles.adapters.{adapter.module}\n" for adapter in ADAPTERS.values()
        )
        script += "print({'torch', 'onnx', 'onnxruntime', 'ml_dtypes'} & set(sys.modules))"
        assert run_script(script) == ["set()"]

    def test_a_cast_that_was_not_folded_is_unsupported(self) -> None:
        oracle = ADAPTERS["ort"].make("folded")
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

    def test_the_cpu_does_not_answer_for_another_provider(self) -> None:
        pytest.importorskip("onnxruntime")
        providers = importlib.import_module("onnxruntime").get_available_providers()
        if "AzureExecutionProvider" not in providers:
            pytest.skip("only a provider without kernels shows it")
        with pytest.raises(Unsupported, match="fallback to CPU EP"):
            ADAPTERS["ort"].make("azure").cast(onnx_case("int8", "int16"), bits_of("int8", [1]))

    def test_onnxruntime_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        for variant in (None, "folded"):
            oracle = ADAPTERS["ort"].make(variant)
            for target in ("complex64", "float4e2m1", "string", "int8"):
                for version in (1, 6, 25):
                    with suppress(Exception):
                        oracle.cast(onnx_case("float16", target, version), bits_of("float16", [0]))
        assert capfd.readouterr() == ("", "")
