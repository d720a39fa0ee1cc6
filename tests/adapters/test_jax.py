"""jax beyond the contract: its programs, XLA's folding, row limits and bitcasts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.adapters.jax import DTYPES, OPERATIONS, VARIANTS, Jax
from oracles.adapters.scripted import ScriptedOperation
from oracles.protocol import Unsupported
from oracles.registry import Backend
from reports.judgement import Judgement
from specs.case_calls import call_of
from specs.cases import Case, Shape
from specs.formats import format_named, formats
from specs.selection import case_named
from tests.adapters.common import (
    assert_same,
    bits_of,
    onnx_case,
    patterns_of,
    run_script,
    run_script_here,
    some_patterns,
    view_case,
)
from tests.adapters.contract import FLOATS, built
from tests.conformance.processes import SECONDS_TO_END

ON_CPU = [None, *(variant for variant in VARIANTS if variant not in Jax.devices)]


@pytest.fixture(scope="module", params=ON_CPU, ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("jax", request.param) as built_oracle:
        yield built_oracle


@pytest.fixture
def jit() -> Iterator[Any]:
    with built("jax", "jit") as built_oracle:
        yield built_oracle


@pytest.fixture
def folded() -> Iterator[Any]:
    with built("jax", "folded") as built_oracle:
        yield built_oracle


def printed_by(oracle: Any, script: str) -> list[str]:
    """Run a script, that of one variant in a process of its own, which imports jax."""
    return (run_script if oracle._variant == "folded" else run_script_here)(script)


def test_jax_lacks_six_bits_and_text() -> None:
    assert formats().keys() - DTYPES.keys() == {"float6e2m3", "float6e3m2", "string"}


class TestArrayApi:
    def test_astype_sees_the_imaginary_part_that_the_conversion_drops(self, oracle: Any) -> None:
        bits = bits_of("complex64", [0x3F80000000000000])
        assert oracle.cast(onnx_case("complex64", "bool"), bits).tolist() == [0]
        case = case_named("array-api-astype:2024.12/complex64/bool")
        if oracle._variant == "stablehlo":
            with pytest.raises(Unsupported, match="operations of XLA only"):
                oracle.cast(case, bits)
        else:
            assert oracle.cast(case, bits).tolist() == [1]
            assert oracle.road(case) == "complex64->bool, astype"

    def test_claims_are_what_a_variant_can_be_asked(self, oracle: Any) -> None:
        claims = {claim.partition(":")[0] for claim in oracle.claims} - {*OPERATIONS}
        casts = set() if oracle._variant == "stablehlo" else {"array-api-astype"}
        calls = {"array-api-astype-calls"} if oracle._variant is None else set()
        carriers = {"jax-carriers"} if oracle._variant in (None, "jit") else set()
        assert claims == casts | calls | carriers

    def test_a_call_is_made_as_the_document_writes_it(self, oracle: Any) -> None:
        case = case_named("array-api-astype-calls:2024.12/float32/float32/form:copies")
        call, bits = call_of(case), {"": bits_of("float32", [0x3F800000])}
        if oracle._variant is not None:
            for ask in (oracle.call, oracle.reproduce_call):
                with pytest.raises(Unsupported, match="makes no calls"):
                    ask(case, call, bits)
            return
        returned = oracle.call(case, call, bits)
        assert (returned.is_receiver, returned.shares_memory) == (False, False)
        assert returned.tensors[""].bits.tolist() == [0x3F800000]
        printed = run_script(oracle.reproduce_call(case, call, bits))
        assert printed[:2] == ["the array itself: False", "its memory: False"]


class TestArrays:
    def test_bits_above_a_code_of_an_answer_are_dropped(self, oracle: Any) -> None:
        four_bits = np.asarray([-1], oracle.dtype("int4"))
        assert oracle.patterns("int4", four_bits).tolist() == [0xF]

    def test_a_precision_is_reduced_by_a_function_of_its_own(self, oracle: Any) -> None:
        case = case_named("stablehlo-reduce-precision:1.20/float32/float32/bits:e5m10")
        given = np.array([1 + 2.0**-11, 65519, 65520, -(2.0**-14)], np.float32).view(np.uint32)
        answer = np.array([1, 65504, np.inf, -(2.0**-14)], np.float32).view(np.uint32)
        assert_same(oracle.cast(case, given), answer)
        assert oracle.road(case) == "float32->float32, e5m10"
        printed = printed_by(oracle, oracle.reproduce(case, given))
        last = [line for line in printed if "->" in line][-1]
        assert last == "0xb8800000 -> 0xb8800000"

    def test_every_array_has_its_own_dtype(self, oracle: Any) -> None:
        for dtype in DTYPES:
            bits = np.zeros(3, format_named(dtype).storage)
            assert oracle.tensor(dtype, bits).dtype == oracle.dtype(dtype)

    def test_nothing_of_64_bits_is_narrowed(self, oracle: Any) -> None:
        wide = bits_of("int64", [1 << 62, (1 << 64) - 1])
        assert_same(oracle.cast(onnx_case("int64", "uint64"), wide), wide)
        one = bits_of("float64", [0x3FF0_0000_0000_0001])
        assert_same(oracle.cast(onnx_case("float64", "float64"), one), one)


KEPT = """
import numpy as np
from oracles.adapters.jax import Jax
from specs.selection import case_named

case = case_named("onnx-cast:25/float32/float16")
for name in {names}:
    answers = Jax(name).cast(case, np.array([0x3F800000], np.uint32))
    assert answers.tolist() == [0x3C00]
"""
"""Casts by two variants in one process."""


class TestPrograms:
    def test_one_program_serves_one_shape(self, jit: Any) -> None:
        function = jit.made
        for patterns in ([1, 2], [3, 4], [5]):
            jit.cast(onnx_case("int32", "int8"), bits_of("int32", patterns))
        assert (function.cache_info().hits, function.cache_info().misses) == (1, 2)
        assert function.cache_info().maxsize is not None

    def test_compiled_programs_are_kept_but_for_folded_constants(self, tmp_path: Path) -> None:
        pytest.importorskip("jax")
        script = KEPT.format(names=["jit", "folded"])
        kept = []
        for _ in range(2):
            environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
            command = [sys.executable, "-c", script]
            subprocess.run(command, check=True, env=environment, timeout=SECONDS_TO_END)
            kept.append({path.name for path in (tmp_path / "castigate" / "jax").glob("*/*-cache")})
        assert kept[0] == kept[1]
        names = sorted(name.partition("-")[0] for name in kept[0])
        assert names == ["jit__lambda"]

    def test_a_loop_is_not_cut_by_the_number_of_processors(self, jit: Any) -> None:
        bits, case = some_patterns("float32", 1 << 20), onnx_case("float32", "float16")
        x, steps = jit.tensor("float32", bits), jit.steps("cast", case, bits.shape)
        function = jit.prepared(steps.once, bits.shape)["function"]
        text = function.lower(x).compile().as_text()
        assert "convert" in text
        assert "outer_dimension_partitions" not in text

    def test_every_cast_is_folded_again(self, folded: Any) -> None:
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
        plain = folded.function_text

        def hidden(operation: ScriptedOperation, case: Case, x: str) -> str:
            return str(plain(operation, case, f"jax.lax.optimization_barrier({x})"))

        monkeypatch.setattr(folded, "function_text", hidden)
        for target, left in (("float16", "convert"), ("bool", "compare")):
            with pytest.raises(Unsupported, match=f"did not fold .* left a {left}$"):
                folded.cast(onnx_case("float32", target), bits_of("float32", FLOATS))


def _judged(oracle: Any, case: str) -> Judgement:
    return BackendJudge(Backend("jax", oracle), {}, Settings()).judge(case_named(case))


class TestRowLimits:
    """Above 65,536 elements XLA rounds integers to bfloat16 twice, through float32."""

    @pytest.mark.parametrize(("source", "smallest"), [("uint32", "01010001"), ("int64", "1010001")])
    def test_a_folded_cast_is_judged_on_both_sides_of_the_limit(
        self, folded: Any, source: str, smallest: str
    ) -> None:
        found = _judged(folded, f"onnx-cast:25/{source}/bfloat16")
        assert (found.verdict, found.divergences[0].answer) == ("differs", 0x4B80)
        assert found.divergences[0].smallest == int(smallest, 16)
        assert "in rows of at most 65,536 elements than in longer ones: 0 are" in found.message
        assert f"{smallest} gives 0x4b81 in the shorter, 0x4b80 in the longer" in found.message

    def test_the_limit_is_where_the_answers_change(self, folded: Any) -> None:
        case, [limit] = onnx_case("int64", "bfloat16"), folded.row_limits
        bits = bits_of("int64", [0x1010001] * (limit + 1))
        assert set(folded.cast(case, bits[:-1]).tolist()) == {0x4B81}
        assert set(folded.cast(case, bits).tolist()) == {0x4B80}

    def test_only_folding_has_a_limit(self, jit: Any) -> None:
        assert jit.row_limits == ()


# Computed by hand: little-endian, low bits first.
PACKED: list[tuple[str, str, Shape, list[int], Shape, list[int]]] = [
    ("uint8", "uint4", (2,), [0x21, 0x43], (2, 2), [1, 2, 3, 4]),
    ("int4", "int8", (2, 2), [1, 2, 3, 4], (2,), [0x21, 0x43]),
    ("float4e2m1", "int4", (2,), [0xF, 0x1], (2,), [0xF, 0x1]),
    ("int8", "int2", (1,), [0b11_10_01_00], (1, 4), [0, 1, 2, 3]),
]


class TestBitcasts:
    @pytest.mark.parametrize(
        ("source", "target", "shape", "patterns", "new_shape", "expected"), PACKED
    )
    def test_codes_of_less_than_a_byte_change_the_last_dimension(
        self,
        oracle: Any,
        source: str,
        target: str,
        shape: Shape,
        patterns: list[int],
        new_shape: Shape,
        expected: list[int],
    ) -> None:
        if oracle._variant == "folded":
            pytest.skip("XLA folds bitcasts of less than a byte wrongly, or not at all")
        bits = bits_of(source, patterns).reshape(shape)
        answer = oracle.bitcast(view_case(source, target), bits)
        assert_same(answer, bits_of(target, expected).reshape(new_shape))

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

    def test_a_script_of_a_bitcast_takes_the_variants_road(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x0403_0201, 0x0807_0605])
        script = oracle.reproduce_bitcast(view_case("float32", "uint8"), bits)
        assert ("jax.jit(lambda: " in script) == (oracle._variant == "folded")
        assert printed_by(oracle, script) == ["(2,) -> (2, 4)", "0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8"]

    def test_a_tensor_of_equal_elements_is_not_folded(self, folded: Any) -> None:
        case = view_case("int32", "uint8")
        with pytest.raises(Unsupported, match=r"did not fold .* left a bitcast-convert$"):
            folded.bitcast(case, bits_of("int32", [7, 7, 7]))

    @pytest.mark.parametrize("target", ["int4", "uint4"])
    def test_codes_that_xla_folds_into_the_wrong_elements_are_reported(
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
    def test_a_refusal_is_jaxs_own_error(
        self, oracle: Any, source: str, target: str, shape: Shape
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(Exception, match=r"bit widths|bits|rank|complex") as caught:
            oracle.bitcast(view_case(source, target), bits)
        assert not isinstance(caught.value, Unsupported)

    def test_a_request_that_ends_the_process_has_no_answer(self) -> None:
        with built("jax"):
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


WITHOUT_GPU = """
from oracles.registry import (load_backend)
from specs.errors import CastigateError
try:
    load_backend("jax:gpu")
except CastigateError as error:
    print(error)
"""


def test_without_a_gpu_a_line_says_what_to_do(jit: Any) -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GPU],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert re.fullmatch(r"backend `jax:gpu`: jax \S+ sees no GPU device; ask .*\n", done.stdout)


class TestScripts:
    @pytest.mark.parametrize(
        ("variant", "sign"),
        [("jit", "lambda x:"), ("folded", "lambda:"), ("stablehlo", "stablehlo.convert")],
    )
    def test_a_script_takes_the_variants_road(self, variant: str, sign: str) -> None:
        with built("jax", variant) as oracle:
            script = oracle.reproduce(onnx_case("int8", "int16"), bits_of("int8", [1]))
        assert sign in script
