"""What CUDA's and HIP's headers are asked: the call that a case becomes, with its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oracles.adapters import cuda_headers, hip_headers
from oracles.adapters.cuda_headers.expressions import expression, header_of
from oracles.adapters.hip_headers import HipHeaders
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from tests.adapters.common import bits_of, onnx_case, patterns_of


def cuda_case(source: str, target: str, **modes: str) -> Case:
    return Case("cuda-convert", "13.5", source, target, tuple(modes.items()))


def made(create: Callable[[], Any]) -> Any:
    """Create an oracle; skip the test without its headers or its compiler."""
    try:
        return create()
    except NotInstalled as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("source", "target", "call"),
    [
        ("float64", "float8e5m2", "__nv_cvt_double_to_fp8(x[i], __NV_SATFINITE, __NV_E5M2)"),
        ("float16", "float6e3m2", "__nv_cvt_halfraw_to_fp6(x[i], __NV_E3M2, cudaRoundNearest)"),
        (
            "bfloat16",
            "float8e8m0",
            "__nv_cvt_bfloat16raw_to_e8m0(x[i], __NV_SATFINITE, cudaRoundNearest)",
        ),
        ("float16", "float8e8m0", None),
        ("float4e2m1", "float16", "__nv_cvt_fp4_to_halfraw(x[i], __NV_E2M1)"),
        ("float8e8m0", "bfloat16", "__nv_cvt_e8m0_to_bf16raw(x[i])"),
        ("float6e2m3", "float32", "(float)reinterpret_cast<const __nv_fp6_e2m3 &>(x[i])"),
        ("int32", "float8e4m3fn", "__nv_fp8_e4m3(x[i]).__x"),
        ("int8", "float8e4m3fn", None),
        ("float8e4m3fn", "float8e5m2", None),
        ("float64", "bfloat16", "__double2bfloat16(x[i])"),
        ("uint64", "float16", "__ull2half_rn(x[i])"),
        ("bfloat16", "int8", "__bfloat162char_rz(x[i])"),
        ("float16", "bfloat16", None),
        ("float32", "int32", None),
    ],
)
def test_calls_of_cuda(source: str, target: str, call: str | None) -> None:
    assert expression(source, target) == call


def test_what_cuda_has_no_rounding_for() -> None:
    assert expression("float32", "bfloat16", rounding="cudaRoundMinInf") == (
        "__float2bfloat16_rd(x[i])"
    )
    assert expression("float64", "float16", rounding="cudaRoundZero") is None
    assert expression("int16", "bfloat16", rounding="cudaRoundZero") is None
    assert expression("int16", "float16", rounding="cudaRoundZero") == "__short2half_rz(x[i])"


def test_each_pair_of_cuda_is_declared_by_the_header_of_its_narrower_type() -> None:
    assert header_of("float32", "float6e2m3") == "cuda_fp6.h"
    assert header_of("float8e8m0", "bfloat16") == "cuda_fp8.h"
    assert header_of("int32", "bfloat16") == "cuda_bf16.h"
    assert header_of("float16", "int64") == "cuda_fp16.h"


def test_modes_of_documents_become_arguments() -> None:
    oracle = made(cuda_headers.CudaHeaders)
    case = cuda_case("float32", "float8e8m0", saturation="NOSAT", rounding="cudaRoundZero")
    call = "__nv_cvt_float_to_e8m0(x[i], __NV_NOSAT, cudaRoundZero)"
    assert oracle.road(case) == f"float32->float8e8m0: {call}"
    onnx = onnx_case("float32", "float8e8m0", saturate="0", round_mode="down")
    assert oracle.road(onnx) == oracle.road(case)
    with pytest.raises(Unsupported, match=r"have no rounding odd$"):
        oracle.road(cuda_case("float32", "float4e2m1", rounding="odd"))
    with pytest.raises(Unsupported, match=r"have no function for float64 to float16 cudaRoundZero"):
        oracle.road(cuda_case("float64", "float16", rounding="cudaRoundZero"))


@pytest.mark.parametrize("name", ["cuda_headers", "hip_headers"])
def test_saturation_is_what_the_case_asks_for(name: str) -> None:
    classes = {"cuda_headers": cuda_headers.CudaHeaders, "hip_headers": hip_headers.HipHeaders}
    oracle = made(classes[name])
    bits = bits_of("float32", [0x44000000, 0xC4000000])  # 512 and -512
    saturated = oracle.cast(onnx_case("float32", "float8e4m3fn", saturate="1"), bits)
    others = oracle.cast(onnx_case("float32", "float8e4m3fn", saturate="0"), bits)
    assert patterns_of(saturated) == [0x7E, 0xFE]
    assert patterns_of(others) == [0x7F, 0xFF]


@pytest.mark.parametrize(
    ("source", "target", "call"),
    [
        ("float32", "float8e4m3fn", "__hip_cvt_float_to_fp8(x[i], __HIP_NOSAT, __HIP_E4M3)"),
        (
            "bfloat16",
            "float8e5m2fnuz",
            "__hip_cvt_bfloat16raw_to_fp8(x[i], __HIP_NOSAT, __HIP_E5M2_FNUZ)",
        ),
        ("float8e5m2", "float16", "__hip_cvt_fp8_to_halfraw(x[i], __HIP_E5M2)"),
        (
            "float8e4m3fnuz",
            "float64",
            "(double)reinterpret_cast<const __hip_fp8_e4m3_fnuz &>(x[i])",
        ),
        ("float64", "bfloat16", "__double2bfloat16(x[i])"),
        ("float64", "float16", None),
        ("float8e4m3fn", "float8e5m2", None),
    ],
)
def test_calls_of_hip(source: str, target: str, call: str | None) -> None:
    oracle = object.__new__(HipHeaders)
    assert oracle.expression(source, target, {"saturation": "__HIP_NOSAT"}) == call
