"""jax on its roads: at once, compiled, folded by XLA, and as StableHLO."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conformance.judging.meeting import Meeting, Settings
from conformance.running.selection import case_named
from oracles.adapters.jax import DTYPES, VARIANTS, Jax, Request
from oracles.adapters.stablehlo import Shape
from oracles.protocol import NotInstalled, Unsupported, WithBind, WithBitcast
from oracles.registry import Backend
from oracles.smoke_check import smoke
from reports.diff.judgement import Judgement
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
    assert_same,
    bits_of,
    onnx_case,
    patterns_of,
    run_script,
    some_patterns,
)

ROADS = (None, *VARIANTS)
FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("jax", lambda: Jax(request.param)) as made:
        yield made


@pytest.fixture
def jit() -> Iterator[Any]:
    with built("jax", lambda: Jax("jit")) as made:
        yield made


@pytest.fixture
def folded() -> Iterator[Any]:
    with built("jax", lambda: Jax("folded")) as made:
        yield made


class TestIdentity:
    def test_nothing_changes_on_the_way_in_and_out(self, oracle: Any) -> None:
        assert smoke(Backend("jax", oracle)) == {}

    @pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float8e8m0", "int2", "bool"])
    def test_every_layout(self, oracle: Any, dtype: str) -> None:
        assert_moves_any_layout(lambda bits: oracle.identity(dtype, bits), some_patterns(dtype, 99))

    def test_what_lies_above_a_code_is_dropped(self, oracle: Any) -> None:
        assert oracle.identity("int4", bits_of("uint8", [0xF5, 0x7A])).tolist() == [0x5, 0xA]

        def widened(x: Any) -> Any:
            return np.asarray(x).view(np.uint8) | np.uint8(0xF0)

        four_bits = oracle._roads.dtype("int4")
        assert oracle._run(widened, "int4", np.zeros(1, four_bits)).tolist() == [0]

    def test_every_array_has_its_own_dtype(self, oracle: Any) -> None:
        for dtype in DTYPES:
            x = oracle._roads.on_device(np.zeros(3, oracle._roads.dtype(dtype)))
            function = oracle._roads.function(Request(None, dtype, dtype, (3,)))
            assert function(x).dtype == oracle._roads.dtype(dtype)

    def test_what_jax_lacks(self, oracle: Any) -> None:
        lacking = formats().keys() - DTYPES.keys()
        assert lacking == {"float6e2m3", "float6e3m2", "string"}
        for dtype in lacking:
            bits = some_patterns(dtype)
            for case in (onnx_case(dtype, "float32"), onnx_case("float32", dtype)):
                for ask in (oracle.cast, oracle.bitcast, oracle.bind, oracle.reproduce):
                    with pytest.raises(Unsupported, match=f"^jax has no dtype {dtype}$"):
                        ask(case, bits if case.source == dtype else bits_of("float32", [0]))
            with pytest.raises(Unsupported):
                oracle.identity(dtype, bits)


class TestCasts:
    @pytest.mark.parametrize(("source", "target", "pairs"), known(DTYPES))
    def test_known_values(self, oracle: Any, source: str, target: str, pairs: Any) -> None:
        assert_known(oracle, source, target, pairs)

    def test_nothing_of_64_bits_is_narrowed(self, oracle: Any) -> None:
        wide = bits_of("int64", [1 << 62, (1 << 64) - 1])
        assert_same(oracle.cast(onnx_case("int64", "uint64"), wide), wide)
        one = bits_of("float64", [0x3FF0_0000_0000_0001])
        assert_same(oracle.cast(onnx_case("float64", "float64"), one), one)

    def test_any_shape_any_layout(self, oracle: Any) -> None:
        floats = {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}
        assert_casts_any_layout(oracle, "float32", "float16", floats)

    @pytest.mark.parametrize("pair", [("int4", "int8"), ("int8", "int4")])
    def test_packed_codes_in_any_shape(self, oracle: Any, pair: tuple[str, str]) -> None:
        assert_casts_any_layout(oracle, *pair, {n: n for n in range(8)})

    def test_an_answer_shares_no_memory_with_the_question(self, oracle: Any) -> None:
        assert_shares_no_memory(oracle, "float32")

    def test_a_discarded_part_is_no_warning(self, oracle: Any) -> None:
        bits = bits_of("complex64", [0xC0000000_3FC00000])
        case = onnx_case("complex64", "float32")
        assert patterns_of(oracle.cast(case, bits)) == [0x3FC00000]
        assert patterns_of(oracle.bind(case, bits)()) == [0x3FC00000]


class TestRoads(PlainRoads):
    def test_one_program_for_one_shape(self, jit: Any) -> None:
        function = jit._roads.function
        for patterns in ([1, 2], [3, 4], [5]):
            jit.cast(onnx_case("int32", "int8"), bits_of("int32", patterns))
        assert (function.cache_info().hits, function.cache_info().misses) == (1, 2)
        assert function.cache_info().maxsize is not None

    def test_a_loop_is_not_cut_by_the_number_of_processors(self, jit: Any) -> None:
        x = jit._roads.on_device(some_patterns("float32", 1 << 20).view("float32"))
        function = jit._roads.function(Request("convert", "float32", "float16", x.shape))
        text = function.lower(x).compile().as_text()
        assert "convert" in text
        assert "outer_dimension_partitions" not in text

    def test_every_question_is_folded_anew(self, folded: Any) -> None:
        answers = [
            patterns_of(folded.cast(onnx_case("int16", "int8"), bits_of("int16", [n])))
            for n in range(3)
        ]
        assert answers == [[0], [1], [2]]

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_a_vector_that_counts_is_folded_too(self, folded: Any, count: int) -> None:
        numbers = bits_of("uint8", [0, 1, 2][:count])
        answer = folded.cast(onnx_case("uint8", "complex64"), numbers)
        assert patterns_of(answer) == [0, 0x3F800000, 0x40000000][:count]

    def test_what_was_not_folded_is_unsupported(
        self, folded: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        roads = folded._roads
        plain, lax = roads._eager, roads._jax.lax

        def hidden(request: Request) -> Any:
            return lambda x: plain(request)(lax.optimization_barrier(x))

        monkeypatch.setattr(roads, "_eager", hidden)
        for target, left in (("float16", "convert"), ("bool", "compare")):
            with pytest.raises(Unsupported, match=f"did not fold .* left a {left}$"):
                folded.cast(onnx_case("float32", target), bits_of("float32", FLOATS))


def _judged(oracle: Any, case: str) -> Judgement:
    return Meeting(Backend("jax", oracle), {}, Settings()).judge(case_named(case))


class TestRowLimits:
    """Above 65,536 elements XLA rounds integers to bfloat16 twice, through float32."""

    @pytest.mark.parametrize(("source", "given"), [("uint32", "01010001"), ("int64", "1010001")])
    def test_a_folded_cast_is_judged_on_both_sides_of_the_limit(
        self, folded: Any, source: str, given: str
    ) -> None:
        found = _judged(folded, f"onnx-cast:25/{source}/bfloat16")
        assert (found.verdict, found.divergences[0].answer) == ("differs", 0x4B80)
        assert found.divergences[0].smallest == int(given, 16)
        assert "in rows of at most 65,536 elements than in longer ones: 0 are" in found.message
        assert f"{given} gives 0x4b81 in the shorter, 0x4b80 in the longer" in found.message

    def test_the_limit_is_where_the_answers_change(self, folded: Any) -> None:
        case, [limit] = onnx_case("int64", "bfloat16"), folded.row_limits
        bits = bits_of("int64", [0x1010001] * (limit + 1))
        assert set(folded.cast(case, bits[:-1]).tolist()) == {0x4B81}
        assert set(folded.cast(case, bits).tolist()) == {0x4B80}

    def test_only_folding_has_a_limit(self, jit: Any) -> None:
        assert jit.row_limits == ()


class TestBinding(BoundCalls):
    @pytest.mark.parametrize(
        "pair",
        ["float32-float16", "float32-float32", "float32-int4", "int2-int2", "complex64-float32"],
    )
    def test_every_refill_is_answered_as_cast_answers_it(self, oracle: Any, pair: str) -> None:
        assert isinstance(oracle, WithBind)
        assert_follows_its_buffer(oracle, onnx_case(*pair.split("-")))


# Computed by hand: little-endian, low bits first.
BITCASTS: list[tuple[str, str, list[int], Shape, Shape, list[int]]] = [
    ("float32", "uint32", [0x7F800001, 0xFFFFFFFF], (2,), (2,), [0x7F800001, 0xFFFFFFFF]),
    ("int64", "float64", [0x7FF0000000000001], (), (), [0x7FF0000000000001]),
    ("float32", "uint16", [0x3FC00001], (), (2,), [0x0001, 0x3FC0]),
    (
        "float32",
        "uint8",
        [0x3FC00000, 0x7F800001],
        (2,),
        (2, 4),
        [0, 0, 0xC0, 0x3F, 1, 0, 0x80, 0x7F],
    ),
    ("uint8", "float32", [0, 0, 0xC0, 0x3F], (4,), (), [0x3FC00000]),
    ("uint16", "float32", [1, 0x8000, 2, 0], (2, 2), (2,), [0x80000001, 2]),
    ("float32", "uint16", [], (0,), (0, 2), []),
    ("bfloat16", "float32", [], (3, 0, 2), (3, 0), []),
    ("complex64", "complex64", [0xC0000000_3FC00000], (1,), (1,), [0xC0000000_3FC00000]),
    ("float8e4m3fn", "float8e8m0", [0xFF], (1,), (1,), [0xFF]),
]
PACKED: list[tuple[str, str, list[int], Shape, Shape, list[int]]] = [
    ("uint8", "uint4", [0x21, 0x43], (2,), (2, 2), [1, 2, 3, 4]),
    ("int4", "int8", [1, 2, 3, 4], (2, 2), (2,), [0x21, 0x43]),
    ("float4e2m1", "int4", [0xF, 0x1], (2,), (2,), [0xF, 0x1]),
    ("int8", "int2", [0b11_10_01_00], (1,), (1, 4), [0, 1, 2, 3]),
]


class TestBitcasts:
    @pytest.mark.parametrize(
        ("source", "target", "given", "shape", "result", "expected"),
        BITCASTS + PACKED,
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_known_bits(
        self,
        oracle: Any,
        source: str,
        target: str,
        given: list[int],
        shape: Shape,
        result: Shape,
        expected: list[int],
    ) -> None:
        assert isinstance(oracle, WithBitcast)
        if (
            oracle._variant == "folded"
            and (source, target, given, shape, result, expected) in PACKED
        ):
            pytest.skip("XLA folds bitcasts of less than a byte wrongly, or not at all")
        answer = oracle.bitcast(
            Case("x", "1", source, target), bits_of(source, given).reshape(shape)
        )
        assert_same(answer, bits_of(target, expected).reshape(result))

    @pytest.mark.parametrize(
        ("pair", "shape"),
        [
            ("float64/float32", "3"),
            ("float8e4m3fn/uint8", "3"),
            ("uint8/float8e4m3fnuz", "3"),
            ("int8/float64", "2x3x8"),
            ("float8e4m3fnuz/uint16", "2x2"),
            ("int64/float8e5m2", "scalar"),
        ],
    )
    def test_every_tensor_of_a_case_is_folded(self, folded: Any, pair: str, shape: str) -> None:
        found = _judged(folded, f"xla-bitcast-convert:2023/{pair}/shape:{shape}")
        assert (found.verdict, found.message) == ("conforms", "")

    def test_a_tensor_of_equal_elements_is_not_folded(self, folded: Any) -> None:
        case = Case("x", "1", "int32", "uint8")
        with pytest.raises(Unsupported, match=r"did not fold .* left a bitcast-convert$"):
            folded.bitcast(case, bits_of("int32", [7, 7, 7]))

    @pytest.mark.parametrize("target", ["int4", "uint4"])
    def test_codes_that_xla_folds_into_the_wrong_places_are_told(
        self, folded: Any, jit: Any, target: str
    ) -> None:
        case = f"xla-bitcast-convert:2023/int16/{target}/shape:3"
        found = _judged(folded, case)
        assert found.verdict == "conforms"  # XLA's code says nothing of these bits
        assert "shape (3,): element 1 is 0x2 instead of 0x0" in found.message
        assert found.open_inputs == found.inputs > 0
        assert _judged(jit, case).message == ""

    @pytest.mark.parametrize(
        ("source", "target", "shape"),
        [
            ("float32", "float64", (3,)),
            ("float32", "float64", ()),
            ("float32", "float64", (2, 4)),
            ("bool", "int8", (3,)),
            ("complex64", "float64", (3,)),
            ("float64", "complex64", (3,)),
        ],
    )
    def test_a_refusal_is_jaxs_own(
        self, oracle: Any, source: str, target: str, shape: Shape
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(Exception, match=r"bit widths|bits|rank|complex") as caught:
            oracle.bitcast(Case("x", "1", source, target), bits)
        assert not isinstance(caught.value, Unsupported)

    def test_nothing_is_made_up_for_a_request_that_may_end_the_process(self) -> None:
        with built("jax", Jax):
            done = subprocess.run(
                [sys.executable, "-c", ABORTING], capture_output=True, check=False
            )
        assert done.returncode != 0
        assert done.stdout == b"asking\n"


ABORTING = """
import numpy as np
from oracles.adapters.jax import Jax
from specs.cases import Case
oracle, case = Jax("stablehlo"), Case("x", "1", "complex64", "complex128")
print("asking", flush=True)
print(oracle.bitcast(case, np.zeros((3, 2), np.uint64)))
"""


SCRIPTS: list[tuple[str, str, list[int]]] = [
    ("float32", "float8e4m3fn", FLOATS),
    ("float64", "bfloat16", [0x3FF8 << 48, 1]),
    ("int4", "uint2", list(range(16)) * 3),
    ("uint8", "complex64", list(range(8))),
    ("complex128", "float8e8m0", [0x3FF8 << 48, 1 << 127]),
    ("bool", "complex128", [0, 1]),
]


class TestScripts:
    @pytest.mark.parametrize(("source", "target", "patterns"), SCRIPTS)
    def test_a_reproduction_prints_the_same_answers(
        self, oracle: Any, source: str, target: str, patterns: list[int]
    ) -> None:
        assert_repeats(oracle, onnx_case(source, target), patterns)

    @pytest.mark.parametrize(
        ("variant", "sign"),
        [("jit", "lambda x:"), ("folded", "lambda:"), ("stablehlo", "stablehlo.convert")],
    )
    def test_a_script_takes_its_own_road(self, variant: str, sign: str) -> None:
        with built("jax", lambda: Jax(variant)) as oracle:
            script = oracle.reproduce(onnx_case("int8", "int16"), bits_of("int8", [1]))
        assert sign in script


class TestVariants:
    def test_an_unknown_variant_names_the_known_ones(self) -> None:
        with built("jax", Jax), pytest.raises(Unsupported, match=r"jit, folded, stablehlo$"):
            Jax("nonsense")

    def test_a_missing_package_names_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.environ", {})
        monkeypatch.setitem(sys.modules, "jax", None)
        with pytest.raises(NotInstalled, match=r"jax.*'castigate\[jax\]'$"):
            Jax()

    def test_nothing_is_imported_before_it_is_asked(self) -> None:
        script = "import sys, oracles.adapters.jax\nprint({'jax', 'ml_dtypes'} & set(sys.modules))"
        assert run_script(script) == ["set()"]
