"""The contract's data: each adapter's roads, what they offer, and answers known by hand."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from oracles.adapters import (
    array_api_strict,
    c_compilers,
    jax,
    node,
    numpy,
    openvino,
    paddle_tensors,
    stablehlo,
    tensorflow,
    torch_tensors,
    torch_xla,
    tvm,
    wasm_modules,
    wasmtime,
)
from specs.cases import Case
from tests.adapters.common import kept_environment, numpy_case, onnx_case, wasm_case
from tests.adapters.contract_road import (
    ALL,
    COMPLEX,
    FLOAT6,
    NOT_IN_ONNX,
    OF_A_VARIANT,
    SUB_BYTE,
    Pairs,
    Road,
    either,
)


def make(backend: str, variant: str | None = None) -> Any:
    """Create a backend's oracle; skip the test if a package is missing."""
    road = next(road for road in ROADS if road.backend == backend)
    return replace(road, variant=variant).make()


@contextmanager
def built(backend: str, variant: str | None = None) -> Iterator[Any]:
    """Create a backend's oracle, and restore the environment variables afterwards."""
    with kept_environment():
        yield make(backend, variant)


def params(rows: Callable[[Road], Iterable[tuple[Any, ...]]], ids: Callable[..., str]) -> list[Any]:
    """Return the parameters of a test: every road with each of the road's rows.

    A road whose framework is missing has one row only, which is skipped and names the framework.
    A variant shares its backend's code, so that CI runs one of ``OF_A_VARIANT`` of its rows.
    """
    return [
        pytest.param(
            road,
            *row,
            id=f"{road.id}-{ids(*row)}",
            marks=[pytest.mark.nightly] if road.variant and place % OF_A_VARIANT else [],
        )
        for road in ROADS
        for place, row in enumerate(islice(rows(road), None if road.is_installed else 1))
    ]


def roads(condition: Callable[[Road], bool] = lambda road: road.casts) -> list[Any]:
    """Return the roads that meet a condition, as parameters."""
    return [pytest.param(road, id=road.id) for road in ROADS if condition(road)]


FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]

ONNX_DTYPES = ALL - NOT_IN_ONNX
"""Newer versions of onnx name those of six bits, too, but no operator takes them."""
NO_ONNX_DTYPE = r"(?i)^onnx \S+ has no dtype {dtype}$"
NO_NUMPY_CAST = (
    Pairs(frozenset({"string"}), frozenset({"bfloat16", "float8e4m3fn"})),
    Pairs(frozenset({"int4"}), frozenset({"int2", "uint2", "string"})),
)
PACKED_PAIRS = ("float32-float16", "int4-int8", "int8-int4", "uint8-uint2")
TEXT_PAIRS = (*PACKED_PAIRS, "int8-string", "string-int8")
OPSET_1 = onnx_case("float32", "int32", 1)
NUMPY_REFUSALS = ((onnx_case("int4", "int2"), "annot cast"),)
ONE_WIDTH = frozenset(
    {"float64", "int64", "float32", "int32", "uint32", "float16", "bfloat16", "uint16", "int16"}
    | {"int8", "uint8"}
)

ORT = Road(
    "ort",
    ("onnxruntime", "onnx"),
    castable=ONNX_DTYPES,
    movable=ONNX_DTYPES - FLOAT6 - COMPLEX,
    no_dtype=NO_ONNX_DTYPE,
    refused=(
        *either(COMPLEX, "complex"),
        *either(FLOAT6),
        *either({"float4e2m1"}, "NOT_IMPLEMENTED"),
    ),
    layout_pairs=TEXT_PAIRS,
    refusals=((onnx_case("float32", "float4e2m1"), "NOT_IMPLEMENTED"), (OPSET_1, ".")),
    scripts_check_dtypes=False,
    bitcasts="keeps",
    viewable=ONE_WIDTH,
    refuses_other_views=True,
    scripts=(
        (onnx_case("float32", "float8e4m3fn", 19, saturate="0"), FLOATS),
        (onnx_case("int4", "uint2"), list(range(16)) * 3),
        (onnx_case("string", "bfloat16"), ["1.5", "-inf", "1e3"]),
        (onnx_case("float16", "string", 13), [0x3E00, 0x7C00]),
    ),
)
TORCH = Road(
    "torch",
    ("torch",),
    castable=frozenset(torch_tensors.DTYPES),
    movable=frozenset(torch_tensors.VIEWED),
    no_dtype=r"no dtype \w+ as {dtype}$|^torch stores every {dtype} in",
    layout_pairs=("float32-float16", "complex128-complex64"),
    refusals=((onnx_case("float32", "float4e2m1"), "castable as float4e2m1$"),),
    bitcasts="scales",
    viewable=frozenset(torch_tensors.VIEWED),
    refuses_other_views=True,
    scripts=(
        (onnx_case("float32", "bfloat16"), FLOATS),
        (onnx_case("complex128", "float8e5m2"), [0x3FF8 << 48, 1 << 127]),
        (onnx_case("bool", "complex128"), [0, 1]),
    ),
)
JAX = Road(
    "jax",
    ("jax",),
    castable=frozenset(jax.DTYPES),
    no_dtype="^jax has no dtype {dtype}$",
    layout_dtypes=("float64", "bfloat16", "float8e8m0", "int2", "bool"),
    bound=("float32-float16", "float32-float32", "float32-int4", "int2-int2", "complex64-float32"),
    bitcasts="adds",
    viewable=ONE_WIDTH | {"float8e4m3fn", "float8e8m0"},
    view_pairs=frozenset({"complex64-complex64"}),
    scripts=(
        (onnx_case("float32", "float8e4m3fn"), FLOATS),
        (onnx_case("float64", "bfloat16"), [0x3FF8 << 48, 1]),
        (onnx_case("int4", "uint2"), list(range(16)) * 3),
        (onnx_case("uint8", "complex64"), list(range(8))),
        (onnx_case("complex128", "float8e8m0"), [0x3FF8 << 48, 1 << 127]),
        (onnx_case("bool", "complex128"), [0, 1]),
    ),
)
STABLEHLO = Road(
    "stablehlo",
    ("jax",),
    castable=frozenset(stablehlo.ELEMENTS),
    no_dtype="^StableHLO has no element type {dtype}$",
    layout_pairs=(*PACKED_PAIRS, "complex128-complex64"),
    bitcasts="adds",
    viewable=frozenset(stablehlo.ELEMENTS) - COMPLEX - {"bool"},
    view_pairs=frozenset({"complex64-complex64"}),
    scripts=(
        (onnx_case("float32", "bfloat16"), FLOATS),
        (onnx_case("float32", "float6e2m3"), FLOATS),
        (onnx_case("int4", "uint2"), list(range(16)) * 3),
        (onnx_case("uint8", "complex64"), list(range(8))),
        (onnx_case("complex128", "float8e8m0"), [0x3FF8 << 48, 1 << 127]),
        (onnx_case("bool", "complex128"), [0, 1]),
    ),
)

XLA_LACKS = frozenset({"float4e2m1", "int2", "uint2"})
KERNELS_LACK = XLA_LACKS | {"float8e4m3fnuz", "float8e5m2fnuz", "float8e4m3b11fnuz"}
NO_TF_KERNEL = r"^TensorFlow has no kernel for a cast of \w+ to \w+$"
TENSORFLOW = Road(
    "tensorflow",
    ("tensorflow",),
    castable=frozenset(tensorflow.DTYPES),
    no_dtype="no dtype castable as {dtype}$",
    layout_dtypes=("float64", "bfloat16", "float8e5m2", "int2", "bool"),
    refused=either(KERNELS_LACK, NO_TF_KERNEL),
    bound=("float32-float16", "float32-float32", "complex64-float32"),
    bitcasts="adds",
    viewable=ONE_WIDTH,
    scripts=((onnx_case("float32", "float8e4m3fn"), [0x3FC00000, 0xFFFFFFFF, 0x7F7FFFFF, 1]),),
)
TENSORFLOW_XLA = replace(
    TENSORFLOW,
    variant="xla",
    refused=either(XLA_LACKS, NO_TF_KERNEL),
    # TensorFlow passes unpacked tensors of four bits to XLA, which reads them as packed.
    untested=either(SUB_BYTE),
    scripts=((onnx_case("bool", "float8e5m2fnuz"), [0, 1]),),
)

UNSIGNED = frozenset({"uint16", "uint32", "uint64"})
NO_PROGRAM = "^no static program: "
PADDLE = Road(
    "paddle",
    ("paddle",),
    castable=frozenset(paddle_tensors.DTYPES),
    no_dtype="^paddle has no dtype {dtype}$",
    layout_pairs=("float32-float16", "complex128-complex64"),
    bitcasts="own",
    scripts=(
        (onnx_case("float32", "bfloat16"), FLOATS),
        (onnx_case("uint32", "float8e5m2"), [1, 3, 0xFFFFFFFF]),
        (onnx_case("bool", "complex128"), [0, 1]),
        (onnx_case("complex128", "uint16"), [0x3FF8 << 48, 1 << 127]),
    ),
)
PADDLE_STATIC = replace(
    PADDLE,
    variant="static",
    layout_dtypes=(),
    refused=(
        Pairs(sources=UNSIGNED | {"float8e5m2"}, reason=NO_PROGRAM),
        Pairs(targets=UNSIGNED, reason=NO_PROGRAM),
    ),
    refusals=((onnx_case("float32", "uint64"), "uint64"),),
    bitcasts=None,
    scripts=(
        (onnx_case("float32", "float8e4m3fn"), FLOATS * 4),
        (onnx_case("float8e4m3fn", "complex64"), [0x3C, 0xFF]),
    ),
)

# TVM does not cast these from or to other floats, and casts with integers ignore their values.
TVM_RAW = FLOAT6 | {"float4e2m1"}
# TVM reads three with another bias (that of float8e4m3fn, float8e5m2), two without infinities.
TVM_MISREAD = frozenset(
    {"float8e4m3fnuz", "float8e5m2fnuz", "float8e4m3b11fnuz", "float8e4m3", "float8e3m4"}
)
TVM = Road(
    "tvm",
    ("tvm",),
    castable=frozenset(tvm.DTYPES),
    no_dtype="^tvm has no dtype {dtype}$",
    untested=either(TVM_RAW | TVM_MISREAD),
    layout_pairs=PACKED_PAIRS,
    owned=tuple(tvm.DTYPES),
    bound=(
        "float32-float16",
        "float32-float32",
        "float32-bfloat16",
        "float64-int64",
        "float32-bool",
        "int64-float8e4m3fn",
        "float16-int4",
        "int4-uint2",
        "int2-int2",
        "float8e8m0-float64",
    ),
    refusals=(
        (
            onnx_case("float32", "float4e2m1"),
            r"^TVM generates no code .* casts float32 to float4_e2m1fn$",
        ),
        (
            onnx_case("float6e2m3", "bfloat16"),
            r"^TVM generates no code .* casts float6_e2m3fn to bfloat16$",
        ),
    ),
    bitcasts="keeps",
    viewable=frozenset(tvm.DTYPES) - {"bool"},
    scripts=(
        (onnx_case("float32", "bfloat16", saturate="1"), FLOATS),
        (onnx_case("int4", "uint2"), [*range(16)] * 3),
        (onnx_case("uint64", "bool"), [0, 1 << 63, 5]),
    ),
)

OPENVINO = Road(
    "openvino",
    ("openvino",),
    castable=frozenset(openvino.DTYPES),
    no_dtype="^openvino has no dtype castable as {dtype}$",
    layout_pairs=PACKED_PAIRS,
    owned=tuple(openvino.DTYPES),
    bound=(
        "float32-float16",
        "float32-float32",
        "float32-bfloat16",
        "float32-float4e2m1",
        "float32-int4",
        "float32-uint2",
        "float64-int64",
        "int64-bool",
        "int4-int8",
        "float8e5m2-float64",
    ),
    refusals=(
        (onnx_case("float8e8m0", "int32"), "(?=.*convert).*f8e8m0"),
        (onnx_case("int8", "float4e2m1"), "(?=.*convert).*i8"),
    ),
    scripts=(
        (onnx_case("float32", "bfloat16", saturate="1"), FLOATS),
        (onnx_case("float32", "float4e2m1"), FLOATS[:5]),
        (onnx_case("int4", "uint2"), [*range(16)] * 3),
        (onnx_case("uint64", "bool"), [0, 1 << 63, 5]),
        (Case("openvino-convert-like", "1", "float32", "bfloat16"), FLOATS),
        (Case("openvino-convert-like", "1", "int4", "uint2"), [*range(16)] * 3),
    ),
)
# The CPU plugin carries both dtypes as signed 32-bit integers.
OPENVINO_CPU = replace(OPENVINO, untested=(Pairs(frozenset({"uint32"}), frozenset({"uint64"})),))

# Casts between its few dtypes are tested in test_wasm.py: the contract's cases need others.
WASMTIME = Road(
    "wasmtime",
    ("wasmtime",),
    castable=frozenset({*wasm_modules.TYPES, *wasm_modules.LOW_PARTS}),
    no_dtype="^WebAssembly has no values of {dtype}$",
    casts=False,
    bitcasts="own",
    viewable=frozenset(wasm_modules.TYPES),
    refuses_other_views=True,
    scripts=(
        (wasm_case("float32", "int64", operator="trunc"), [0x3FC00000, 0xC0000000, 0x00000001]),
        (wasm_case("float64", "float32"), [0x7FF8 << 48, 0xFFF8 << 48, 0x3FF8 << 48, 1]),
        (wasm_case("uint64", "float64"), [(1 << 64) - 1, 1, 0]),
        (wasm_case("int8", "int32"), [0x80, 0x7F]),
    ),
)


def in_c(compiler: str) -> Road:
    """Return the road of a C compiler; older ones have no bfloat16, or no library for it."""
    code = b"int main(int n, char **_) { volatile __bf16 y = (__bf16)(float)n; return (float)y; }"
    has_bfloat16 = False
    if shutil.which(compiler) is not None:
        with tempfile.TemporaryDirectory() as folder:
            command = [compiler, "-x", "c", "-", "-o", f"{folder}/program"]
            done = subprocess.run(command, input=code, capture_output=True, check=False)
            has_bfloat16 = done.returncode == 0
    return Road(
        compiler,
        (),
        castable=frozenset(c_compilers.TYPES) - (set() if has_bfloat16 else {"bfloat16"}),
        no_dtype=rf"^{compiler} \S+ has no type of {{dtype}}$",
        layout_pairs=("float32-float16",),
        scripts=(
            (onnx_case("float32", "float16"), FLOATS),
            (onnx_case("uint64", "bool"), [0, 1 << 63, 5]),
            (onnx_case("int8", "float64"), [0x80, 0x7F]),
        ),
    )


ROADS = (
    ORT,
    replace(
        ORT,
        variant="folded",
        scripts=(
            (onnx_case("float32", "float8e8m0", round_mode="down"), FLOATS[:1] * 9),
            (onnx_case("uint4", "float64", 21), [1, 15, 8]),
            (onnx_case("string", "int64"), ["-7"]),
        ),
    ),
    Road(
        "onnx",
        ("onnx",),
        castable=ONNX_DTYPES,
        no_dtype=NO_ONNX_DTYPE,
        movable=ONNX_DTYPES - FLOAT6,
        refused=(*either(COMPLEX, "complex"), *either(FLOAT6), *NO_NUMPY_CAST),
        layout_pairs=TEXT_PAIRS,
        refusals=(*NUMPY_REFUSALS, (OPSET_1, ".")),
        scripts_check_dtypes=False,
        bitcasts="keeps",
        viewable=ONNX_DTYPES - FLOAT6 - {"string"},
        refuses_other_views=True,
        scripts=(
            (onnx_case("float32", "float4e2m1"), FLOATS),
            (onnx_case("int4", "int8"), list(range(16))),
            (onnx_case("string", "float32", 9), ["1.5", "2"]),
            (onnx_case("bool", "string"), [0, 1]),
        ),
    ),
    Road(
        "ml_dtypes",
        ("ml_dtypes",),
        castable=ALL,
        no_dtype="",
        refused=NO_NUMPY_CAST,
        layout_pairs=(*TEXT_PAIRS, "complex128-complex64"),
        refusals=NUMPY_REFUSALS,
        bitcasts="scales",
        viewable=ALL - {"string"},
        refuses_other_views=True,
        scripts=(
            (onnx_case("float32", "float6e2m3"), FLOATS),
            (onnx_case("int2", "complex128"), [0, 1, 2, 3]),
            (onnx_case("string", "float64"), ["1.5", "nan"]),
            (onnx_case("float16", "string"), [0x3E00]),
        ),
    ),
    Road(
        "numpy",
        (),
        castable=frozenset(numpy.DTYPES),
        no_dtype="^numpy has no dtype {dtype}$",
        layout_pairs=("float32-float16", "complex128-complex64"),
        bitcasts="scales",
        viewable=frozenset(numpy.DTYPES),
        refuses_other_views=True,
        scripts=(
            (onnx_case("float32", "int8"), FLOATS[:2]),
            (onnx_case("complex128", "uint8"), [0x3FF8 << 48]),
            (numpy_case("float64", "int64", "same_value"), [0x3FF << 52, 1 << 62]),
            (numpy_case("uint8", "float16", "safe"), list(range(8))),
        ),
    ),
    Road(
        "array_api_strict",
        ("array_api_strict",),
        castable=frozenset(array_api_strict.DTYPES),
        no_dtype="^array-api-strict has no dtype {dtype}$",
        refused=(Pairs(COMPLEX, ALL - COMPLEX, "should not be permitted"),),
        layout_pairs=("complex128-complex64",),
        scripts=(
            (onnx_case("float32", "int8"), FLOATS[:2]),
            (onnx_case("bool", "complex128"), [0, 1]),
            (onnx_case("complex128", "complex64"), [0x3FF8 << 48]),
        ),
    ),
    TORCH,
    replace(TORCH, variant="view", casts=False, scripts=(), refusals=()),
    replace(
        TORCH,
        variant="compile",
        layout_dtypes=(),
        takes_every_known_value=False,
        layout_pairs=("float32-float16",),
        owned=("float32", "uint8"),
        bound=("float32-float16", "float32-float32", "int16-int8"),
        scripts=(
            (onnx_case("float32", "int8"), [0x3FC00000, 0xC0000000, 0x7F800000, 0x43960000] * 5),
        ),
    ),
    replace(TORCH, variant="cuda", stands_in="cpu"),
    JAX,
    *(replace(JAX, variant=variant) for variant in jax.VARIANTS if variant != "gpu"),
    replace(JAX, variant="gpu", stands_in="cpu"),
    STABLEHLO,
    TENSORFLOW,
    replace(
        TENSORFLOW,
        variant="function",
        scripts=((onnx_case("complex128", "bfloat16"), [0x3FF8 << 48, 1 << 127]),),
    ),
    TENSORFLOW_XLA,
    replace(
        TENSORFLOW,
        variant="folded",
        refused=(
            *TENSORFLOW.refused,
            # Grappler folds the casts of every dtype but this one.
            *either({"float8e5m2"}, r"^grappler did not fold this, but left a Cast$"),
        ),
        scripts=((onnx_case("float32", "bfloat16"), [0x3FC00000, 0x7F800001, 0x7F7FFFFF, 1]),),
    ),
    replace(
        TENSORFLOW_XLA,
        variant="xla-folded",
        scripts=((onnx_case("int32", "float8e5m2fnuz"), [0, 1, 2, 3, 0xFFFFFFFF]),),
    ),
    PADDLE,
    PADDLE_STATIC,
    replace(
        PADDLE_STATIC,
        variant="executor",
        refused=(
            *PADDLE_STATIC.refused,
            Pairs(
                targets=frozenset({"float8e4m3fn", "float8e5m2"}),
                reason="^the Executor fetches no float8",
            ),
        ),
        scripts=((onnx_case("float8e4m3fn", "bfloat16"), [0x3C, 0xFF]),),
    ),
    TVM,
    replace(
        TVM, variant="static", layout_dtypes=("float64", "bfloat16", "float8e8m0", "int2", "bool")
    ),
    replace(
        TVM,
        variant="folded",
        refused=either(SUB_BYTE, "^TVM packs constants of .*, but compiles a byte for each$"),
        refusals=(),
        bitcasts=None,
        owned=tuple(dtype for dtype in tvm.DTYPES if dtype not in SUB_BYTE),
    ),
    OPENVINO,
    *(replace(OPENVINO_CPU, variant=variant) for variant in openvino.VARIANTS),
    WASMTIME,
    *(replace(WASMTIME, variant=variant) for variant in wasmtime.VARIANTS),
    *(
        replace(WASMTIME, backend="node", packages=(), variant=variant)
        for variant in (None, *node.VARIANTS)
    ),
    *map(in_c, ("gcc", "clang")),
    Road(
        "torch_xla",
        ("torch", "torch_xla"),
        castable=frozenset(torch_xla.TYPES),
        no_dtype="has no {dtype} on its device$",
        layout_pairs=("float32-float16",),
        owned=("float32", "uint8", "complex64"),
        bound=("float32-float16", "complex64-complex128"),
        bitcasts="adds",
        viewable=ONE_WIDTH | {"float8e4m3fn"},
        view_pairs=frozenset({"complex64-complex64"}),
        scripts=(
            (onnx_case("float32", "bfloat16"), [0x3FC00000, 0x7F800001, 0xFFFFFFFF]),
            (onnx_case("complex64", "complex128"), [0xC0000000_3FC00000]),
            (onnx_case("complex128", "uint8"), [0x3FF8 << 48]),
        ),
    ),
)
