"""Scripts that repeat a case without this project."""

from __future__ import annotations

from typing import Any

import pytest

from specs.cases import Case
from tests.adapters.common import (
    ADAPTERS,
    Road,
    bits_of,
    onnx_case,
    patterns_of,
    run_script,
)

FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]
SCRIPTS: list[tuple[Road, Case, list[Any]]] = [
    (("ort", None), onnx_case("float32", "float8e4m3fn", 19, saturate="0"), FLOATS),
    (("ort", None), onnx_case("int4", "uint2"), list(range(16)) * 3),
    (("ort", None), onnx_case("string", "bfloat16"), ["1.5", "-inf", "1e3"]),
    (("ort", None), onnx_case("float16", "string", 13), [0x3E00, 0x7C00]),
    (("ort", "folded"), onnx_case("float32", "float8e8m0", round_mode="down"), FLOATS[:1] * 9),
    (("ort", "folded"), onnx_case("uint4", "float64", 21), [1, 15, 8]),
    (("ort", "folded"), onnx_case("string", "int64"), ["-7"]),
    (("onnx", None), onnx_case("float32", "float4e2m1"), FLOATS),
    (("onnx", None), onnx_case("int4", "int8"), list(range(16))),
    (("onnx", None), onnx_case("string", "float32", 9), ["1.5", "2"]),
    (("onnx", None), onnx_case("bool", "string"), [0, 1]),
    (("torch", None), onnx_case("float32", "bfloat16"), FLOATS),
    (("torch", None), onnx_case("complex128", "float8e5m2"), [0x3FF8 << 48, 1 << 127]),
    (("torch", None), onnx_case("bool", "complex128"), [0, 1]),
    (("ml_dtypes", None), onnx_case("float32", "float6e2m3"), FLOATS),
    (("ml_dtypes", None), onnx_case("int2", "complex128"), [0, 1, 2, 3]),
    (("ml_dtypes", None), onnx_case("string", "float64"), ["1.5", "nan"]),
    (("ml_dtypes", None), onnx_case("float16", "string"), [0x3E00]),
]


@pytest.mark.parametrize(
    ("road", "case", "patterns"), SCRIPTS, ids=[f"{row[0][0]}-{row[1].id}" for row in SCRIPTS]
)
def test_a_reproduction_prints_the_same_answers(road: Road, case: Case, patterns: Any) -> None:
    oracle, bits = ADAPTERS[road[0]].make(road[1]), bits_of(case.source, patterns)
    script = oracle.reproduce(case, bits)
    expected = list(zip(patterns, patterns_of(oracle.cast(case, bits)), strict=True))
    printed = [tuple(read(side) for side in line.split(" -> ")) for line in run_script(script)]
    assert printed == expected
    assert "castigate" not in script
    assert max(map(len, script.splitlines())) <= 100


def read(side: str) -> Any:
    """A printed pattern: a hex number, or a text's repr."""
    return int(side, 16) if side.startswith("0x") else side[1:-1]
