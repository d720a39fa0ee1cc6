"""TensorFlow on its roads: eager, traced, and compiled by XLA."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters.tensorflow import DTYPES, VARIANTS, TensorFlow
from oracles.protocol import NotInstalled, Unsupported, WithBind, WithBitcast
from oracles.registry import Backend
from oracles.smoke import smoke
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


def is_offered(oracle: Any, source: str, target: str) -> bool:
    """Whether a road has a kernel for a pair, as far as the tests go."""
    return not {source, target} & (XLA_LACKS if oracle._variant == "xla" else KERNELS_LACK)


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
        elif oracle._variant == "xla" and {source, target} & SUB_BYTE:
            pytest.skip("TensorFlow hands XLA tensors of four bits that are not packed")
        else:
            assert_known(oracle, source, target, pairs)

    def test_any_shape_any_layout(self, oracle: Any) -> None:
        floats = {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}
        assert_casts_any_layout(oracle, "float32", "float16", floats)

    @pytest.mark.parametrize("pair", [("int4", "int8"), ("int8", "int4")])
    def test_codes_of_less_than_a_byte_in_any_shape(
        self, oracle: Any, pair: tuple[str, str]
    ) -> None:
        if oracle._variant == "xla":
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
        before = oracle._function.cache_info()
        for shape in ((17,), (17,), (18,)):
            oracle.cast(onnx_case("int32", "int8"), np.zeros(shape, np.uint32))
        after = oracle._function.cache_info()
        assert (after.hits - before.hits, after.misses - before.misses) == (1, 2)
        assert after.maxsize is not None

    def test_only_one_road_is_compiled_by_xla(self, oracle: Any) -> None:
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
}
"""One for a road: each of them takes as long as TensorFlow does to come up."""


class TestScripts:
    def test_a_reproduction_prints_the_same_answers(self, oracle: Any) -> None:
        source, target, patterns = SCRIPTS[oracle._variant]
        assert_repeats(oracle, onnx_case(source, target), patterns)

    def test_a_script_takes_its_own_road(self, oracle: Any) -> None:
        script = oracle.reproduce(onnx_case("int8", "int16"), bits_of("int8", [1]))
        assert ("tf.function" in script) == (oracle._variant is not None)
        assert ("jit_compile=True" in script) == (oracle._variant == "xla")


QUIET = """
import numpy as np
from oracles.adapters.tensorflow import TensorFlow
from specs.cases import Case
case = Case("x", "1", "complex64", "float32")
for variant in (None, "function", "xla"):
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
            pytest.raises(Unsupported, match=r"are function, xla$"),
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
