"""Platforms, targets, devices and backends by name: jax, tvm, openvino and onnx."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from oracles.adapters.road_words import RoadWords, parse_road
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Unsupported
from oracles.registry import BUILTINS
from tests.adapters.common import (
    assert_prints_the_answers,
    bits_of,
    kept_environment,
    onnx_case,
    patterns_of,
    quietly,
)

CASE = onnx_case("float32", "bfloat16")
ABOVE_ONE = bits_of("float32", [0x3F808001])
"""It rounds to 0x3f81 by any rounding to nearest."""

PLANTED = "tests.adapters.planted_onnx_backend.Clamp"
PLUGIN = "lammps_jax_pjrt_cpu"
"""A package with a library of a PJRT plug-in for the CPU, not one of jax's own."""


def make(backend: str) -> Any:
    """Create an adapter in this process; skip the test if its framework is missing."""
    name, _, variant = backend.partition(":")
    builtin = BUILTINS[name]
    pytest.importorskip(builtin.package or "")
    return quietly(
        lambda: getattr(importlib.import_module(builtin.module), builtin.attribute)(variant)
    )


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with kept_environment():
        yield


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("cuda:1", RoadWords(("cuda:1",), {})),
        ("HETERO,GPU,CPU", RoadWords(("HETERO", "GPU", "CPU"), {})),
        ("dev, to=cpu", RoadWords(("dev",), {"to": "cpu"})),
        ("to=a=b/c.so:1", RoadWords((), {"to": "a=b/c.so:1"})),
    ],
)
def test_a_road_has_words_and_options(words: str, found: RoadWords) -> None:
    assert parse_road("any", words, ("to",)) == found
    assert parse_road("any", words) == found


@pytest.mark.parametrize(
    ("words", "keys", "reason"),
    [
        ("a,,b", None, "any:a,,b has an empty word; separate words by one comma"),
        ("a,to=", None, "`to=` of any:a,to= is not KEY=VALUE"),
        ("1=2", None, "`1=2` of any:1=2 is not KEY=VALUE"),
        ("to=a,to=b", None, "any:to=a,to=b has `to` twice"),
        ("too=a", ("to", "by"), "any has no option `too`; did you mean `to`?"),
        ("x=a", ("to", "by"), "any has no option `x`; its options are to, by"),
        ("x=a", (), "any has no option `x`; it takes none"),
    ],
)
def test_a_road_that_cannot_be_read_is_refused(
    words: str, keys: tuple[str, ...] | None, reason: str
) -> None:
    with pytest.raises(Unsupported, match=f"^{re.escape(reason)}$"):
        parse_road("any", words, keys)


FOUND: Mapping[str, str] = {
    "jax:cpu": r"0\.\S+, cpu",
    "jax:cpu,jit": r"0\.\S+, cpu",
    "jax:folded,cpu": r"0\.\S+, cpu",
    "jax:cpu,stablehlo": r"0\.\S+, cpu",
    "openvino:CPU": r"20\S+, CPU",
    "openvino:AUTO": r"20\S+, AUTO runs on CPU",
    "openvino:HETERO,CPU": r"20\S+, HETERO:CPU runs on CPU",
    "tvm:llvm": r"0\.\S+, llvm",
    "tvm:llvm,mcpu=x86-64-v3": r"0\.\S+, llvm mcpu=x86-64-v3",
    "tvm:llvm,mattr=+f16c": r"0\.\S+, llvm mattr=\+f16c",
    "tvm:c": r"0\.\S+, c",
    f"onnx:backend={PLANTED}": rf"1\.\S+, {re.escape(PLANTED)} 0\.3 on CPU",
}
"""By backend, a pattern of its version."""

SCRIPTS = ("jax:cpu,jit", "openvino:AUTO", "tvm:llvm,mcpu=x86-64-v3", f"onnx:backend={PLANTED}")
"""The backends whose scripts are run, each a process."""


@pytest.mark.parametrize("backend", FOUND)
def test_a_name_answers_with_its_version(backend: str) -> None:
    oracle = make(backend)
    assert re.fullmatch(FOUND[backend], oracle.version)
    if not backend.startswith("onnx"):
        assert patterns_of(oracle.cast(CASE, ABOVE_ONE)) == [0x3F81]
    case = onnx_case("float32", "int16")
    if backend in SCRIPTS:
        assert_prints_the_answers(oracle, case, [0x3F800000, 0x40000000, 0xC1200000])
    assert patterns_of(oracle.cast(case, bits_of("float32", [0xC1200000]))) == [0xFFF6]


WRONG: Mapping[str, str] = {
    "jax:nonsense": r"jax has no variant `nonsense`; its variants are jit, folded, stablehlo, gpu,"
    r" its platforms .*cpu, cuda.*",
    "jax:tpu": r"jax \S+ sees no TPU device; ask `jax`, or install a jax .*",
    "jax:cpu,tpu": "jax:cpu,tpu must have one platform, and at most one of jit, folded, stablehlo",
    "jax:cpu,jit,folded": "jax:cpu,jit,folded must have one platform, and at most one of .*",
    "jax:jit,folded": "jax:jit,folded must have one platform, and at most one of .*",
    "jax:plugin=no.so": "jax:plugin=no.so needs both: plugin=PATH,name=NAME",
    "jax:plugin=no.so,name=x": "plugin=no.so: there is no such file; give the plug-in's library",
    "jax:cpu,plug=x": r"jax has no option `plug`; did you mean `plugin`\?",
    "openvino:nonsense": "openvino has no variant `nonsense`; its variants are cpu, cpu-dynamic,"
    " cpu-folded, its devices here CPU.*",
    "openvino:CPU,x=y": "openvino has no option `x`; it takes none",
    "tvm:nonsense": "tvm has no variant `nonsense`; its variants are static, folded, its targets "
    ".*llvm.*",
    "tvm:llvm,static": "tvm:llvm,static must begin with one target, such as tvm:llvm",
    "tvm:llvm,mcpu=skylaik": "LLVM knows no processor `skylaik`; did you mean `skylake`?.*",
    "tvm:llvm,mcp=x": "tvm:llvm,mcp=x: .*'mcp'.*",
    "tvm:vulkan": "tvm:vulkan is no target for the CPU; tvm:llvm and tvm:c are",
    "onnx:nonsense": "onnx has no variant `nonsense`; it has none but backend=NAME",
    "onnx:device=CPU": "onnx has no variant `device=CPU`; it has none but backend=NAME",
    "onnx:backend=no.such": "backend=no.such: No module named 'no'; PYTHONPATH must .*",
    "onnx:backend=numpy": "backend=numpy: module 'numpy' has no attribute 'prepare'; .*",
    f"onnx:backend={PLANTED},device=NPU": f"backend={PLANTED} supports no device `NPU`",
}


@pytest.mark.parametrize("backend", WRONG)
def test_a_wrong_name_says_in_one_line_what_there_is(backend: str) -> None:
    with pytest.raises(Unsupported) as caught:
        make(backend)
    assert re.fullmatch(WRONG[backend], str(caught.value))


def test_a_backend_of_onnx_is_asked_in_place_of_the_evaluator() -> None:
    oracle, case = make(f"onnx:backend={PLANTED}"), onnx_case("float32", "int8")
    assert patterns_of(oracle.cast(case, bits_of("float32", [0x43960000]))) == [0x7F]  # 300
    assert f"{PLANTED}.prepare(model, " in oracle.reproduce(case, ABOVE_ONE)
    assert oracle.chain_roads == ()
    with pytest.raises(Unsupported, match=r"^no kernel for bfloat16$"):
        oracle.cast(CASE, ABOVE_ONE)
    with pytest.raises(Unsupported, match="casts and bitcasts alone"):
        oracle.quantize(case, {})


def test_onnxruntime_is_a_backend_of_onnx() -> None:
    pytest.importorskip("onnxruntime")
    oracle = make("onnx:backend=onnxruntime.backend")
    case = onnx_case("float32", "float16")
    assert patterns_of(oracle.cast(case, bits_of("float32", [0x477FF000]))) == [0x7C00]
    assert_prints_the_answers(oracle, case, [0x477FF000])


def test_an_option_of_a_target_may_have_several_values() -> None:
    oracle = make("tvm:llvm,mattr=+avx;+f16c")
    assert oracle.version.endswith(", llvm mattr=+avx;+f16c")
    assert '{"kind": "llvm", "mattr": ["+avx", "+f16c"]}' in oracle.reproduce(CASE, ABOVE_ONE)


def test_a_target_without_a_dtype_is_unsupported() -> None:
    oracle = make("tvm:c")
    case = onnx_case("float32", "float16")
    with pytest.raises(Unsupported, match=r"^TVM generates no code for c that casts .* float16$"):
        oracle.cast(case, ABOVE_ONE)
    with pytest.raises(Unsupported, match=r"^TVM generates no code for c that copies .*16$"):
        oracle.identity("float16", bits_of("float16", [1]))


@pytest.mark.parametrize("kind", ["", ",stablehlo"])
def test_a_library_is_a_platform_of_jax(kind: str) -> None:
    pytest.importorskip("jax")
    if importlib.util.find_spec(PLUGIN) is None:
        pytest.skip(f"{PLUGIN} is not installed")
    library: str = importlib.import_module(PLUGIN).PLUGIN_PATH
    backend = load_isolated(f"jax:plugin={library},name=mine{kind}", LaunchConfig())
    try:
        oracle: Any = backend.oracle
        assert re.fullmatch(r"0\.\S+, mine: PJRT C API cpu", oracle.version)
        assert patterns_of(oracle.cast(CASE, ABOVE_ONE)) == [0x3F81]
        script = oracle.reproduce(CASE, ABOVE_ONE)
        assert f'"mine:{Path(library).resolve()}"' in script
        assert 'jax.devices("mine")[0]' in script
    finally:
        close(backend)


def test_a_library_that_is_no_plugin_says_why(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    empty = tmp_path / "empty.so"
    empty.touch()
    with pytest.raises(Exception, match=rf"plugin={empty}: .*empty\.so") as caught:
        load_isolated(f"jax:plugin={empty},name=mine", LaunchConfig())
    assert len(str(caught.value).splitlines()) == 1
