"""TensorFlow on its roads: eager, traced, compiled by XLA, and folded."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters.tensorflow import DTYPES, VARIANTS, TensorFlow
from oracles.protocol import NotInstalled, Unsupported, WithBind, WithBitcast
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.formats import format_named, formats
from tests.adapters.bound_calls import BoundCalls
from tests.adapters.checks import (
    PlainRoads,
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
    SUB_BYTE,
    assert_same,
    bits_of,
    onnx_case,
    run_script,
    some_patterns,
)

ROADS = (None, *VARIANTS)
XLA_LACKS = {"float4e2m1", "int2", "uint2"}
"""And its tensors of four bits it takes for packed, which TensorFlow's are not."""

KERNELS_LACK = {*XLA_LACKS, "float8e4m3fnuz", "float8e5m2fnuz", "float8e4m3b11fnuz"}


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("tensorflow", lambda: TensorFlow(request.param)) as made:
        yield made


NOT_FOLDED = "float8e5m2"
"""The only dtype whose casts grappler leaves to run, to and from it."""


def is_xla(oracle: Any) -> bool:
    """Whether XLA compiles what a road runs."""
    return oracle._variant in ("xla", "xla-folded")


def is_offered(oracle: Any, source: str, target: str) -> bool:
    """Whether a road has a kernel for a pair, as far as the tests go."""
    return not {source, target} & (XLA_LACKS if is_xla(oracle) else KERNELS_LACK)


class TestIdentity:
    def test_nothing_changes_on_the_way_in_and_out(self, oracle: Any) -> None:
        assert smoke(Backend("tensorflow", oracle)) == {}

    @pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float8e5m2", "int2", "bool"])
    def test_every_layout(self, oracle: Any, dtype: str) -> None:
        assert_moves_any_layout(lambda bits: oracle.identity(dtype, bits), some_patterns(dtype, 99))

    def test_what_lies_above_a_code_is_dropped(self, oracle: Any) -> None:
        assert oracle.identity("int4", bits_of("uint8", [0xF5, 0x7A])).tolist() == [0x5, 0xA]

    def test_what_tensorflow_lacks(self, oracle: Any) -> None:
        lacking = formats().keys() - DTYPES.keys()
        others = {"float8e4m3", "float8e3m4", "float8e8m0"}
        assert lacking == {*others, "float6e2m3", "float6e3m2", "string"}
        for dtype in lacking:
            bits = some_patterns(dtype)
            for case in (onnx_case(dtype, "float32"), onnx_case("float32", dtype)):
                for ask in (oracle.cast, oracle.bitcast, oracle.bind, oracle.reproduce):
                    with pytest.raises(Unsupported, match=f"no dtype castable as {dtype}$"):
                        ask(case, bits if case.source == dtype else bits_of("float32", [0]))
            with pytest.raises(Unsupported):
                oracle.identity(dtype, bits)


class TestCasts:
    @pytest.mark.parametrize(("source", "target", "pairs"), known(DTYPES))
    def test_known_values(self, oracle: Any, source: str, target: str, pairs: Any) -> None:
        if not is_offered(oracle, source, target):
            reason = (
                r"^(Cast \w+ to \w+ is not supported|No registered '\w+' OpKernel for \w+ devices)$"
            )
            with pytest.raises(Unsupported, match=reason):
                oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
        elif is_xla(oracle) and {source, target} & SUB_BYTE:
            pytest.skip("TensorFlow hands XLA tensors of four bits that are not packed")
        elif oracle._variant == "folded" and NOT_FOLDED in (source, target):
            with pytest.raises(Unsupported, match=r"^grappler did not fold this, but left a Cast$"):
                oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
        else:
            assert_known(oracle, source, target, pairs)

    def test_any_shape_any_layout(self, oracle: Any) -> None:
        floats = {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}
        assert_casts_any_layout(oracle, "float32", "float16", floats)

    @pytest.mark.parametrize("pair", [("int4", "int8"), ("int8", "int4")])
    def test_codes_of_less_than_a_byte_in_any_shape(
        self, oracle: Any, pair: tuple[str, str]
    ) -> None:
        if is_xla(oracle):
            pytest.skip("TensorFlow hands XLA tensors of four bits that are not packed")
        assert_casts_any_layout(oracle, *pair, {n: n for n in range(8)})

    def test_an_answer_shares_no_memory_with_the_question(self, oracle: Any) -> None:
        assert_shares_no_memory(oracle, "float32")

    def test_an_error_that_is_no_missing_kernel_passes_through(self, oracle: Any) -> None:
        class OutOfMemory(oracle._tensorflow.errors.OpError):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__(None, None, "no memory", 8)

        def failing(*_: Any) -> Any:
            raise OutOfMemory

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oracle, "_answer", failing)
            with pytest.raises(OutOfMemory):
                oracle.cast(onnx_case("int8", "int16"), bits_of("int8", [1]))


class TestRoads(PlainRoads):
    def test_one_function_for_one_shape(self, oracle: Any) -> None:
        if oracle._constants is not None:
            pytest.skip("a constant is part of its function")
        before = oracle._function.cache_info()
        for shape in ((17,), (17,), (18,)):
            oracle.cast(onnx_case("int32", "int8"), np.zeros(shape, np.uint32))
        after = oracle._function.cache_info()
        assert (after.hits - before.hits, after.misses - before.misses) == (1, 2)
        assert after.maxsize is not None

    def test_only_one_road_is_compiled_by_xla(self, oracle: Any) -> None:
        if oracle._constants is not None:
            pytest.skip("TestFolding shows what becomes of constants")
        function = oracle._function("cast", "float32", "float16", (3,))
        if oracle._variant is None:
            assert not hasattr(function, "function_def")
        else:
            must_compile = function.function_def.attr["_XlaMustCompile"].b
            assert must_compile == (oracle._variant == "xla")

    def test_its_own_threads_are_one(self, oracle: Any) -> None:
        threading = oracle._tensorflow.config.threading
        assert threading.get_intra_op_parallelism_threads() == 1
        assert threading.get_inter_op_parallelism_threads() == 1


class TestBinding(BoundCalls):
    @pytest.mark.parametrize("pair", ["float32-float16", "float32-float32", "complex64-float32"])
    def test_every_refill_is_answered_as_cast_answers_it(self, oracle: Any, pair: str) -> None:
        assert isinstance(oracle, WithBind)
        assert_follows_its_buffer(oracle, onnx_case(*pair.split("-")))


# Computed by hand: little-endian.
BITCASTS: list[tuple[str, str, list[int], tuple[int, ...], tuple[int, ...], list[int]]] = [
    ("float32", "uint32", [0x7F800001, 0xFFFFFFFF], (2,), (2,), [0x7F800001, 0xFFFFFFFF]),
    ("int64", "float64", [0x7FF0000000000001], (), (), [0x7FF0000000000001]),
    ("float32", "uint16", [0x3FC00001], (), (2,), [0x0001, 0x3FC0]),
    ("float32", "uint8", [0x3FC00001, 1], (2,), (2, 4), [1, 0, 0xC0, 0x3F, 1, 0, 0, 0]),
    ("uint8", "float32", [0, 0, 0xC0, 0x3F], (4,), (), [0x3FC00000]),
    ("uint16", "float32", [1, 0x8000, 2, 0], (2, 2), (2,), [0x80000001, 2]),
    ("float32", "uint16", [], (0,), (0, 2), []),
    ("bfloat16", "float32", [], (3, 0, 2), (3, 0), []),
]


class TestBitcasts:
    @pytest.mark.parametrize(
        ("source", "target", "given", "shape", "result", "expected"),
        BITCASTS,
        ids=[f"{row[0]}-{row[1]}-{row[3]}" for row in BITCASTS],
    )
    def test_known_bits(
        self,
        oracle: Any,
        source: str,
        target: str,
        given: list[int],
        shape: tuple[int, ...],
        result: tuple[int, ...],
        expected: list[int],
    ) -> None:
        assert isinstance(oracle, WithBitcast)
        bits = bits_of(source, given).reshape(shape)
        answer = oracle.bitcast(Case("x", "1", source, target), bits)
        assert_same(answer, bits_of(target, expected).reshape(result))

    @pytest.mark.parametrize("shape", [(), (2, 3)])
    def test_only_xla_copies(self, oracle: Any, shape: tuple[int, ...]) -> None:
        if oracle._constants is not None:
            pytest.skip("a constant shares no memory")
        case = Case("tensorflow-bitcast", "2023", "float32", "int32")
        shared = oracle.bitcast_shares_memory(case, np.ones(shape, np.uint32))
        assert shared == (oracle._variant != "xla")

    @pytest.mark.parametrize(
        ("source", "target", "shape"),
        [
            ("float32", "float64", (3,)),
            ("float32", "float64", ()),
            ("float32", "float64", (2, 4)),
            ("bool", "int8", (3,)),
            ("float8e5m2", "int8", (3,)),
            ("int8", "int4", (3,)),
        ],
    )
    def test_a_refusal_is_tensorflows_own(
        self, oracle: Any, source: str, target: str, shape: tuple[int, ...]
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(Exception, match=r"Cannot bitcast|rank|allowed values") as caught:
            oracle.bitcast(Case("x", "1", source, target), bits)
        assert not isinstance(caught.value, Unsupported)


SCRIPTS: dict[str | None, tuple[str, str, list[int]]] = {
    None: ("float32", "float8e4m3fn", [0x3FC00000, 0xFFFFFFFF, 0x7F7FFFFF, 1]),
    "function": ("complex128", "bfloat16", [0x3FF8 << 48, 1 << 127]),
    "xla": ("bool", "float8e5m2fnuz", [0, 1]),
    "folded": ("float32", "bfloat16", [0x3FC00000, 0x7F800001, 0x7F7FFFFF, 1]),
    "xla-folded": ("int32", "float8e5m2fnuz", [0, 1, 2, 3, 0xFFFFFFFF]),
}
"""One for a road: each of them takes as long as TensorFlow does to come up."""


class TestScripts:
    def test_a_reproduction_prints_the_same_answers(self, oracle: Any) -> None:
        source, target, patterns = SCRIPTS[oracle._variant]
        assert_repeats(oracle, onnx_case(source, target), patterns)

    def test_a_script_takes_its_own_road(self, oracle: Any) -> None:
        script = oracle.reproduce(onnx_case("int8", "int16"), bits_of("int8", [1]))
        assert ("tf.function" in script) == (oracle._variant is not None)
        assert ("jit_compile=True" in script) == is_xla(oracle)
        assert ("TensorProto" in script) == (oracle._constants is not None)


class Spied:
    """An operation, and the graphs of all functions that run meanwhile."""

    def __init__(self, oracle: Any) -> None:
        self._context = importlib.import_module("tensorflow.python.eager.context").context()
        self._oracle = oracle
        self.graphs: list[set[str]] = []

    def cast(self, case: Case, bits: Any) -> Any:
        real = self._context.export_run_metadata

        def kept() -> Any:
            metadata = real()
            self.graphs += [
                {node.op for node in graph.node}
                for function in metadata.function_graphs
                for graph in function.partition_graphs
            ]
            return metadata

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._context, "export_run_metadata", kept)
            return self._oracle.cast(case, bits)


@pytest.fixture(scope="module")
def roads() -> Iterator[dict[str | None, Any]]:
    """Every road of the framework."""
    with built("tensorflow", TensorFlow) as eager:
        yield {None: eager} | {variant: TensorFlow(variant) for variant in VARIANTS}


class TestFolding:
    def test_grappler_leaves_a_constant(self, roads: dict[str | None, Any]) -> None:
        spied = Spied(roads["folded"])
        spied.cast(onnx_case("float32", "int32"), bits_of("float32", [0x3FC00000, 0]))
        assert spied.graphs[-1] == {"Const", "_Retval"}

    def test_what_grappler_leaves_to_run_is_unsupported(self, roads: dict[str | None, Any]) -> None:
        oracle, case = roads["folded"], onnx_case("float32", "int32")
        bits = bits_of("float32", [0x3FC00000])
        assert oracle.cast(case, bits).tolist() == [1]
        optimizer = oracle._tensorflow.config.optimizer
        optimizer.set_experimental_options({"constant_folding": False})
        try:
            with pytest.raises(Unsupported, match=r"^grappler did not fold this, but left a Cast$"):
                oracle.cast(case, bits)
        finally:
            optimizer.set_experimental_options({"constant_folding": True})

    def test_an_error_does_not_hide_that_the_next_one_is_folded(
        self, roads: dict[str | None, Any]
    ) -> None:
        oracle = roads["folded"]
        with pytest.raises(Unsupported, match="is not supported"):
            oracle.cast(onnx_case("float32", "int2"), bits_of("float32", [0]))
        assert oracle.cast(onnx_case("float32", "int8"), bits_of("float32", [0])).tolist() == [0]

    @pytest.mark.parametrize("target", ["int8", "float64", "complex128"])
    def test_rows_of_any_length_are_folded(self, roads: dict[str | None, Any], target: str) -> None:
        # Grappler leaves a constant of more than 100 KiB that is larger than its operand.
        bits = np.arange(70_001, dtype=np.uint32) * np.uint32(61357)
        case = onnx_case("float32", target)
        assert_same(roads["folded"].cast(case, bits), roads["function"].cast(case, bits))

    def test_a_part_ends_where_a_vector_does(self, roads: dict[str | None, Any]) -> None:
        # At the end of a row infinity becomes another integer than in its midst.
        case, bits = onnx_case("bfloat16", "uint32"), np.full(70_000, 0x7F80, np.uint16)
        assert_same(roads["folded"].cast(case, bits), roads["function"].cast(case, bits))

    def test_xla_computes_nothing(self, roads: dict[str | None, Any]) -> None:
        oracle = roads["xla-folded"]
        tensorflow, bits = oracle._tensorflow, np.arange(300, dtype=np.uint32)
        dtype = tensorflow.int32

        def cast(x: Any) -> Any:
            return tensorflow.cast(x, "float8_e4m3fnuz")

        assert oracle._constants.answer(cast, dtype, bits.reshape(1, -1)).shape == (1, 300)
        # A row that counts from 0 is not kept as a constant, but computed.
        with pytest.raises(Unsupported, match=r"XLA did not fold this .* left a (iota|convert)$"):
            oracle._constants.answer(cast, dtype, bits)

        def random(x: Any) -> Any:
            uniform = tensorflow.random.stateless_uniform([300], [1, 2])
            return tensorflow.cast(uniform, tensorflow.int32) + x

        with pytest.raises(Unsupported, match=r"XLA did not fold this"):
            oracle._constants.answer(random, dtype, bits)

    def test_a_folded_answer_can_differ_from_that_at_run_time(
        self, roads: dict[str | None, Any]
    ) -> None:
        # 2^31: XLA saturates, the kernel that folds for it gives the smallest integer.
        case, bits = onnx_case("float32", "int32"), bits_of("float32", [0x4F000000])
        answers = {road: roads[road].cast(case, bits).tolist() for road in VARIANTS}
        assert answers == {
            "function": [0x80000000],
            "folded": [0x80000000],
            "xla": [0x7FFFFFFF],
            "xla-folded": [0x80000000],
        }

    @pytest.mark.parametrize("road", ["folded", "xla-folded"])
    def test_a_constant_shares_no_memory(self, roads: dict[str | None, Any], road: str) -> None:
        case = Case("tensorflow-bitcast", "1", "float32", "int32")
        with pytest.raises(Unsupported, match="no tensor whose memory could be shared"):
            roads[road].bitcast_shares_memory(case, bits_of("float32", [1]))

    @pytest.mark.parametrize("road", ["folded", "xla-folded"])
    @pytest.mark.parametrize(
        ("dtype", "pattern"),
        [
            ("float64", 0x7FF0000000000001),
            ("float32", 0x7F800001),
            ("float16", 0xFC01),
            ("bfloat16", 0xFF81),
            ("complex64", 0x7F800001_FF800001),
        ],
    )
    @pytest.mark.parametrize("count", [1, 3])
    def test_a_constant_comes_in_as_it_is(
        self, roads: dict[str | None, Any], road: str, dtype: str, pattern: int, count: int
    ) -> None:
        bits = bits_of(dtype, [pattern] * count)
        assert_same(roads[road].cast(onnx_case(dtype, dtype), bits), bits)

    @pytest.mark.parametrize(("first", "second"), [("function", "folded"), ("xla", "xla-folded")])
    def test_a_wrong_fold_is_caught(
        self, roads: dict[str | None, Any], first: str, second: str
    ) -> None:
        pair = (roads[first], roads[second])
        assert compared(*pair, "int8", "int16") == ("conforms", "")
        tensorflow, real = pair[1]._tensorflow, pair[1]._operation

        def inverting(*asked: Any) -> Any:
            return lambda x: tensorflow.bitwise.invert(real(*asked)(x))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair[1], "_operation", inverting)
            verdict, message = compared(*pair, "int8", "int16")
        assert verdict == "differs"
        assert message.startswith("256 of 256 inputs answer otherwise than on tensorflow:0")


QUIET = """
import numpy as np
from oracles.adapters.tensorflow import TensorFlow
from specs.cases import Case
case = Case("x", "1", "complex64", "float32")
for variant in (None, "function", "xla", "folded", "xla-folded"):
    oracle = TensorFlow(variant)
    for count in range(7):
        oracle.cast(case, np.zeros(count, np.uint64))
"""


class TestVariants:
    def test_nothing_is_printed(self) -> None:
        with built("tensorflow", TensorFlow):
            pass
        done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def test_an_unknown_variant_names_the_known_ones(self) -> None:
        with (
            built("tensorflow", TensorFlow),
            pytest.raises(Unsupported, match=r"are function, xla, folded, xla-folded$"),
        ):
            TensorFlow("nonsense")

    def test_a_missing_package_names_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.environ", {})
        monkeypatch.setitem(sys.modules, "tensorflow", None)
        with pytest.raises(NotInstalled, match=r"tensorflow.*'castigate\[tensorflow\]'$"):
            TensorFlow()

    def test_nothing_is_imported_before_it_is_asked(self) -> None:
        script = "import sys, oracles.adapters.tensorflow\nprint('tensorflow' in sys.modules)"
        assert run_script(script) == ["False"]
