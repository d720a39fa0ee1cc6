"""TensorFlow beyond the contract: its functions, grappler's and XLA's folding, its output."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from oracles.adapters.scripted import Statements
from oracles.adapters.tensorflow import DTYPES, VARIANTS
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named, formats
from tests.adapters.common import (
    assert_same,
    bits_of,
    compared,
    kept_environment,
    onnx_case,
    run_script,
    view_case,
)
from tests.adapters.contract import built, make
from tests.adapters.contract_road import FLOAT6
from tests.adapters.rewording import Refusal


@pytest.fixture(scope="module", params=(None, *VARIANTS), ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("tensorflow", request.param) as built_oracle:
        yield built_oracle


def test_tensorflow_lacks_some_floats_and_text() -> None:
    lacking = formats().keys() - DTYPES.keys()
    assert lacking == {"float8e4m3", "float8e3m4", "float8e8m0", "string"} | FLOAT6


class TestFunctions:
    def test_an_error_that_is_no_missing_kernel_passes_through(self, oracle: Any) -> None:
        class OutOfMemory(oracle._tensorflow.errors.OpError):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__(None, None, "no memory", 8)

        def failing(*_: Any) -> Any:
            raise OutOfMemory

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oracle, "made", failing)
            with pytest.raises(OutOfMemory):
                oracle.cast(onnx_case("int8", "int16"), bits_of("int8", [1]))

    def test_one_function_serves_one_shape(self, oracle: Any) -> None:
        if oracle._is_folded:
            pytest.skip("a constant is part of its function")
        before = oracle.made.cache_info()
        for shape in ((17,), (17,), (18,)):
            oracle.cast(onnx_case("int32", "int8"), np.zeros(shape, np.uint32))
        after = oracle.made.cache_info()
        built = 1 if oracle._variant is None else 2
        assert (after.hits - before.hits, after.misses - before.misses) == (3 - built, built)
        assert after.maxsize is not None

    def test_only_one_road_is_compiled_by_xla(self, oracle: Any) -> None:
        if oracle._is_folded:
            pytest.skip("TestFolding shows what becomes of constants")
        steps = oracle.steps("cast", onnx_case("float32", "float16"), (3,))
        function = oracle.prepared(steps.once, (3,)).get("function")
        if oracle._variant is None:
            assert function is None
        else:
            must_compile = function.function_def.attr["_XlaMustCompile"].b
            assert must_compile == (oracle._variant == "xla")

    def test_tensorflow_uses_one_thread(self, oracle: Any) -> None:
        threading = oracle._tensorflow.config.threading
        assert threading.get_intra_op_parallelism_threads() == 1
        assert threading.get_inter_op_parallelism_threads() == 1


class TestBitcasts:
    @pytest.mark.parametrize("shape", [(), (2, 3)])
    def test_only_xla_copies(self, oracle: Any, shape: tuple[int, ...]) -> None:
        if oracle._is_folded:
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
    def test_a_refusal_is_tensorflows_own_error(
        self, oracle: Any, source: str, target: str, shape: tuple[int, ...]
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(Exception, match=r"Cannot bitcast|rank|allowed values") as caught:
            oracle.bitcast(view_case(source, target), bits)
        assert not isinstance(caught.value, Unsupported)


class TestScripts:
    def test_a_script_takes_the_variants_road(self, oracle: Any) -> None:
        script = oracle.reproduce(onnx_case("int8", "int16"), bits_of("int8", [1]))
        assert ("tf.function" in script) == (oracle._variant is not None)

    @pytest.mark.ci_runs_one_of(5)  # a process that imports TensorFlow for each
    def test_a_script_of_a_bitcast_takes_it_too(self, oracle: Any) -> None:
        case, bits = view_case("float32", "uint8"), bits_of("float32", [0x0403_0201, 0x0807_0605])
        script = oracle.reproduce_bitcast(case, bits)
        assert ("tf.function" in script) == (oracle._variant is not None)
        printed = [line for line in run_script(script) if "->" in line or line.startswith("0x")]
        assert printed == ["(2,) -> (2, 4)", "0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8"]
        assert ("jit_compile=True" in script) == (oracle._variant in ("xla", "xla-folded"))
        assert ("TensorProto" in script) == (oracle._is_folded)


class GraphRecorder:
    """Casts, and records the operations in the graphs of all functions that run meanwhile."""

    def __init__(self, oracle: Any) -> None:
        self._context = importlib.import_module("tensorflow.python.eager.context").context()
        self._oracle = oracle
        self.graphs: list[set[str]] = []

    def cast(self, case: Case, bits: Any) -> Any:
        real = self._context.export_run_metadata

        def recorded() -> Any:
            metadata = real()
            self.graphs += [
                {node.op for node in graph.node}
                for function in metadata.function_graphs
                for graph in function.partition_graphs
            ]
            return metadata

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._context, "export_run_metadata", recorded)
            return self._oracle.cast(case, bits)


@pytest.fixture(scope="module")
def roads() -> Iterator[dict[str | None, Any]]:
    """Every road of the framework."""
    with built("tensorflow") as eager:
        yield {None: eager} | {variant: make("tensorflow", variant) for variant in VARIANTS}


class TestFolding:
    def test_grappler_leaves_a_constant(self, roads: dict[str | None, Any]) -> None:
        recorder = GraphRecorder(roads["folded"])
        recorder.cast(onnx_case("float32", "int32"), bits_of("float32", [0x3FC00000, 0]))
        assert recorder.graphs[-1] == {"Const", "_Retval"}

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
        with pytest.raises(Unsupported, match="has no kernel for a cast of"):
            oracle.cast(onnx_case("float32", "int2"), bits_of("float32", [0]))
        assert oracle.cast(onnx_case("float32", "int8"), bits_of("float32", [0])).tolist() == [0]

    @pytest.mark.parametrize("target", ["int8", "float64", "complex128"])
    def test_rows_of_any_length_are_folded(self, roads: dict[str | None, Any], target: str) -> None:
        # Grappler does not fold to a constant of more than 100 KiB that is larger than its operand.
        bits = np.arange(70_001, dtype=np.uint32) * np.uint32(61357)
        case = onnx_case("float32", target)
        assert_same(roads["folded"].cast(case, bits), roads["function"].cast(case, bits))

    def test_a_long_constant_is_split_between_vectors(self, roads: dict[str | None, Any]) -> None:
        # At the end of a row infinity becomes another integer than within it.
        case, bits = onnx_case("bfloat16", "uint32"), np.full(70_000, 0x7F80, np.uint16)
        assert_same(roads["folded"].cast(case, bits), roads["function"].cast(case, bits))

    def test_xla_computes_nothing(self, roads: dict[str | None, Any]) -> None:
        oracle = roads["xla-folded"]
        tensorflow, bits = oracle._tensorflow, np.arange(300, dtype=np.uint32)

        def cast(constant: Any) -> Any:
            return tensorflow.function(
                lambda: tensorflow.cast(tensorflow.constant(constant), "float8_e4m3fnuz"),
                autograph=False,
                jit_compile=True,
            )

        row = bits.reshape(1, -1).view(np.int32)
        assert oracle._folding.answer(cast(row)).shape == (1, 300)
        # XLA computes a row that counts from 0 at run time, and does not keep it as a constant.
        with pytest.raises(Unsupported, match=r"XLA did not fold this .* left a (iota|convert)$"):
            oracle._folding.answer(cast(row[0]))

        @tensorflow.function(autograph=False, jit_compile=True)  # type: ignore[untyped-decorator]
        def random() -> Any:
            uniform = tensorflow.random.stateless_uniform([300], [1, 2])
            return tensorflow.cast(uniform, tensorflow.int32)

        with pytest.raises(Unsupported, match=r"XLA did not fold this"):
            oracle._folding.answer(random)

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
    def test_a_constant_keeps_its_bits(
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
        real = pair[1].steps

        def inverting(*asked: Any) -> Statements:
            steps = real(*asked)
            once = steps.once.replace("tf.cast(", "tf.bitwise.invert(tf.cast(")
            return Statements(steps.each, once.replace('"int16")', '"int16"))'))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair[1], "steps", inverting)
            pair[1].made.cache_clear()
            verdict, message = compared(*pair, "int8", "int16")
        pair[1].made.cache_clear()
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


def test_nothing_is_printed() -> None:
    with built("tensorflow"):
        pass
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def refusal(variant: str | None, target: str) -> Refusal:
    """A refusal of float64 to a dtype, and float32 to float16, which is answered."""
    zeros = np.zeros(3, np.uint64)
    return Refusal(
        make=partial(make, "tensorflow", variant),
        refused=lambda oracle: oracle.cast(onnx_case("float64", target), zeros),
        answered=lambda oracle: oracle.cast(onnx_case("float64", "float16"), zeros),
        place=lambda oracle: (oracle, "made"),
        failures=lambda oracle: [
            error(None, None, "Cast double to float8_e4m3fnuz is not supported")
            for error in (
                oracle._tensorflow.errors.InvalidArgumentError,
                oracle._tensorflow.errors.InternalError,
            )
        ],
        is_maker=True,
    )


@pytest.mark.parametrize(("variant", "target"), [(None, "float8e4m3fnuz"), ("xla", "float4e2m1")])
def test_what_tensorflow_says_decides_nothing(variant: str | None, target: str) -> None:
    with kept_environment():
        refusal(variant, target).check()
