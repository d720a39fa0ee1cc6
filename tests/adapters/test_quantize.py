"""Quantization by every adapter that offers it: right answers, refusals, scripts that run alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from oracles.adapters import torch_quantize
from oracles.protocol import Bits, Unsupported, WithQuantize, WithReproduceQuantize
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.contract import built, make
from tests.adapters.rewording import Refusal

ONNX_ROADS = ("ort", "ort:folded", "onnx")
OPENVINO_ROADS = ("openvino", "openvino:cpu", "openvino:cpu-dynamic", "openvino:cpu-folded")
TORCH_ROADS = ("torch", "torch:decomposed")
ROADS = (*ONNX_ROADS, *OPENVINO_ROADS, *TORCH_ROADS)
PACKAGES = {"ort": "onnxruntime"}

MOST_LINES = 19
"""Lines of a script without comments: a folded node takes the most, others up to 15."""


@pytest.fixture(scope="module", params=ROADS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    backend, _, variant = request.param.partition(":")
    pytest.importorskip(PACKAGES.get(backend, backend))
    with built(backend, variant or None) as built_oracle:
        yield built_oracle


def quantize(source: str, target: str, version: int = 25, **modes: str) -> Case:
    scaled = {"scale": source, "form": "tensor"} | modes
    return Case("onnx-quantize-linear", str(version), source, target, tuple(scaled.items()))


def dequantize(source: str, target: str, version: int = 25, **modes: str) -> Case:
    scaled = {"scale": target, "form": "tensor"} | modes
    return Case("onnx-dequantize-linear", str(version), source, target, tuple(scaled.items()))


DYNAMIC = Case("onnx-dynamic-quantize-linear", "11", "float32", "uint8")


def floats(dtype: str, values: Any) -> Bits:
    """Return the patterns of numbers that the float dtype represents exactly."""
    if dtype == "bfloat16":
        return np.asarray(np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.array(values, dtype).view(format_named(dtype).storage)


def codes(dtype: str, values: Any) -> Bits:
    """Return the patterns of integers in a dtype."""
    entry = format_named(dtype)
    return np.asarray(np.array(values) & entry.mask).astype(entry.storage)


EXACT: list[tuple[Case, dict[str, Bits], list[int]]] = [
    # Whole quotients: every precision, every order of steps, has the same codes.
    (
        quantize("float32", "int8"),
        {
            "x": floats("float32", [[-1.5, 0, 0.5], [1, 31.5, -40]]),
            "scale": floats("float32", 0.25),
            "zero": codes("int8", 3),
        },
        [0xFD, 3, 5, 7, 0x7F, 0x80],
    ),
    (
        quantize("float32", "uint8"),
        {"x": floats("float32", [-1.5, 0, 0.5, 80]), "scale": floats("float32", 0.25)},
        [0, 0, 2, 0xFF],
    ),
    (
        quantize("float32", "int8", form="axis"),
        {
            "x": floats("float32", [[[1, 2], [8, -8], [3, 0]]]),
            "scale": floats("float32", [1, 2, 0.5]),
            "zero": codes("int8", [0, 1, -1]),
        },
        [1, 2, 5, 0xFD, 5, 0xFF],
    ),
    (
        quantize("float16", "uint4"),
        {
            "x": floats("float16", [0, 1, 2, 3, -1, 40, -40]),
            "scale": floats("float16", 0.5),
            "zero": codes("uint4", 3),
        },
        [3, 5, 7, 9, 1, 15, 0],
    ),
    (
        dequantize("int8", "float32"),
        {
            "x": codes("int8", [-128, 0, 3, 127]),
            "scale": floats("float32", 0.5),
            "zero": codes("int8", 3),
        },
        floats("float32", [-65.5, -1.5, 0, 62]).tolist(),
    ),
    (
        dequantize("int4", "float32", form="axis"),
        {
            "x": codes("int4", [[1, -2, 7]]),
            "scale": floats("float32", [1, 2, 0.5]),
            "zero": codes("int4", [1, 2, -8]),
        },
        floats("float32", [0, -8, 7.5]).tolist(),
    ),
    (
        dequantize("float8e4m3fn", "float16"),
        {"x": np.uint8([0x38, 0xC0, 0x00]), "scale": floats("float16", 4)},
        floats("float16", [4, -8, 0]).tolist(),
    ),
    (
        quantize("float32", "float8e4m3fn", saturate="1"),
        {"x": floats("float32", [0.5, -4, 4000]), "scale": floats("float32", 0.5)},
        [0x38, 0xD0, 0x7E],
    ),
]

IDS = [str(case) for case, _, _ in EXACT]


@pytest.mark.parametrize(("case", "tensors", "expected"), EXACT, ids=IDS)
def test_exact_quotients_and_products_have_one_answer(
    oracle: Any, case: Case, tensors: dict[str, Bits], expected: list[int]
) -> None:
    try:
        answer = oracle.quantize(case, tensors)["y"]
    except Unsupported as refusal:
        refused = str(refusal)
        assert any(sign in refused for sign in LACKS), refused
        return
    assert answer.shape == tensors["x"].shape
    assert answer.dtype == np.dtype(format_named(case.target).storage)
    assert answer.ravel().tolist() == expected


LACKS = (
    "onnxruntime did not fold this DequantizeLinear",
    "torch has no quantized dtype",
    "torch's quantization has no codes",
    "torch dequantizes only",
    "only works on Float Tensor",
)
"""Reasons for which one of the adapters may decline a case."""


def test_a_dynamic_quantization_has_three_results(oracle: Any) -> None:
    x = floats("float32", [0, 51, 255, 102])
    if oracle.name == "torch":
        with pytest.raises(Unsupported, match="dynamic-quantize"):
            oracle.quantize(DYNAMIC, {"x": x})
        return
    answer = oracle.quantize(DYNAMIC, {"x": x})
    assert {name: bits.tolist() for name, bits in answer.items()} == {
        "y": [0, 51, 255, 102],
        "scale": 0x3F800000,
        "zero": 0,
    }


def test_what_a_backend_lacks_is_unsupported(oracle: Any) -> None:
    one = floats("float32", 1)
    if oracle.name == "onnx":
        case, tensors = dequantize("int8", "float32", 10), {"x": codes("int8", [1]), "scale": one}
    else:
        case, tensors = quantize("float32", "float4e2m1"), {"x": one.reshape(1), "scale": one}
    with pytest.raises(Unsupported):
        oracle.quantize(case, tensors)


@pytest.mark.parametrize("version", [10, 13, 19, 21, 23, 24, 25])
def test_every_opset_has_its_own_node(oracle: Any, version: int) -> None:
    tensors = {"x": floats("float32", [-3, 0, 4]), "scale": floats("float32", 0.5)}
    answer = oracle.quantize(quantize("float32", "int8", version), tensors)["y"]
    assert answer.tolist() == [0xFA, 0, 8]


class TestBlocks:
    def test_the_last_block_may_be_short(self) -> None:
        for backend in ("ort", "onnx"):
            pytest.importorskip(PACKAGES.get(backend, backend))
            with built(backend, None) as oracle:
                x, scale = floats("float32", [[4, 8, 4, 8, 4]]), floats("float32", [[1, 2, 4]])
                case = quantize("float32", "uint8", form="block", block="2")
                assert oracle.quantize(case, {"x": x, "scale": scale})["y"].tolist() == [
                    [4, 8, 2, 4, 1]
                ]

    @pytest.mark.parametrize("variant", [None, "cpu"])
    def test_openvino_refuses_blocks_that_it_would_not_quantize(self, variant: str | None) -> None:
        pytest.importorskip("openvino")
        with built("openvino", variant) as oracle:
            x, scale = floats("float32", [[4, 8, 4, 8]]), floats("float32", [[1, 2]])
            case = quantize("float32", "uint8", form="block", block="2")
            with pytest.raises(RuntimeError, match=r"fake_quantize|QuantizeLinear"):
                oracle.quantize(case, {"x": x, "scale": scale})


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize(("case", "tensors", "expected"), EXACT[:5], ids=IDS[:5])
def test_a_script_runs_alone_and_prints_the_answer(
    oracle: Any, case: Case, tensors: dict[str, Bits], expected: list[int], tmp_path: Any
) -> None:
    assert isinstance(oracle, WithQuantize)
    assert isinstance(oracle, WithReproduceQuantize)
    try:
        oracle.quantize(case, tensors)
    except Unsupported:
        return
    script = oracle.reproduce_quantize(case, tensors)
    lines = [line for line in script.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= MOST_LINES
    ran = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.stdout == f"y: {' '.join(map(hex, expected))}\n", ran.stderr


TORCH_REFUSALS = {
    "torch": ("float16", "only works on Float Tensor"),
    "torch:decomposed": ("int32", "Expecting input to have dtype"),
}


@pytest.mark.parametrize("road", TORCH_REFUSALS)
def test_what_torch_says_decides_nothing(road: str) -> None:
    pytest.importorskip("torch")
    dtype, words = TORCH_REFUSALS[road]
    name, _, variant = road.partition(":")

    def call(oracle: Any, source: str) -> Any:
        storage = format_named(source).storage
        tensors = {"x": np.zeros(3, storage), "scale": floats("float32", 1)}
        return oracle.quantize(quantize(source, "int8", scale="float32"), tensors)

    Refusal(
        make=partial(make, name, variant or None),
        refused=lambda oracle: call(oracle, dtype),
        answered=lambda oracle: call(oracle, "float32"),
        place=lambda oracle: (oracle._quantizer, "_answer"),
        failures=lambda oracle: [each(words) for each in torch_quantize.REFUSALS],
    ).check()


@pytest.mark.parametrize("road", TORCH_REFUSALS)
def test_values_that_torch_refuses_are_an_error(road: str) -> None:
    pytest.importorskip("torch")
    name, _, variant = road.partition(":")
    # Channels without one scale for each.
    tensors = {"x": floats("float32", [[1, 2, 3]]), "scale": floats("float32", [1, 2])}
    oracle = make(name, variant or None)
    with pytest.raises((RuntimeError, AssertionError, ValueError)):
        oracle.quantize(quantize("float32", "int8", form="axis"), tensors)
