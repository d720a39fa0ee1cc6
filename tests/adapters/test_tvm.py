"""TVM's ``astype`` and ``reinterpret`` on its roads: any length, known shapes, constants."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oracles.adapters import tvm as adapter
from oracles.protocol import NotInstalled, Unsupported, WithBind, WithBitcast, WithRoad
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.formats import format_named, formats
from tests.adapters.bound_calls import BoundCalls
from tests.adapters.checks import (
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
    patterns_of,
    some_patterns,
)

# TVM casts neither between these and other floats, nor by their values from and to integers.
RAW = {"float6e2m3", "float6e3m2", "float4e2m1"}
# TVM reads three with another bias (that of float8e4m3fn, float8e5m2), two without infinities.
MISREAD = {"float8e4m3fnuz", "float8e5m2fnuz", "float8e4m3b11fnuz", "float8e4m3", "float8e3m4"}


ROADS = (None, *adapter.VARIANTS)


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "any-length")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("tvm", lambda: adapter.Tvm(request.param)) as made:
        yield made


def is_offered(oracle: Any, source: str, target: str) -> bool:
    """Whether a road takes a pair: TVM folds no codes of less than a byte."""
    return oracle._variant != "folded" or not {source, target} & SUB_BYTE


class TestIdentity:
    def test_nothing_changes_on_the_way_in_and_out(self, oracle: Any) -> None:
        assert smoke(Backend("tvm", oracle)) == {}

    @pytest.mark.parametrize("dtype", formats())
    def test_every_layout_of_every_dtype(self, oracle: Any, dtype: str) -> None:
        if dtype not in adapter.DTYPES:
            with pytest.raises(Unsupported, match=f"no dtype {dtype}$"):
                oracle.identity(dtype, some_patterns(dtype))
            return
        assert_moves_any_layout(lambda bits: oracle.identity(dtype, bits), some_patterns(dtype))

    @pytest.mark.parametrize("dtype", ["int4", "uint4", "float4e2m1"])
    def test_what_lies_above_a_code_is_dropped(self, oracle: Any, dtype: str) -> None:
        assert oracle.identity(dtype, np.array([0xF5, 0x7A], np.uint8)).tolist() == [0x5, 0xA]


class TestCasts:
    @pytest.mark.parametrize(
        ("source", "target", "pairs"), known(adapter.DTYPES.keys() - RAW - MISREAD)
    )
    def test_known_values(self, oracle: Any, source: str, target: str, pairs: Any) -> None:
        if not is_offered(oracle, source, target):
            with pytest.raises(Unsupported, match=r"^TVM packs constants of u?int\d, but compiles"):
                oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
            return
        assert_known(oracle, source, target, pairs)

    @pytest.mark.parametrize(
        ("source", "target", "pairs"),
        [
            ("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}),
            ("int4", "int8", {0x1: 0x01, 0xF: 0xFF, 0x8: 0xF8}),
            ("int8", "uint2", {1: 1, 3: 3, 0: 0, 2: 2}),
        ],
    )
    def test_any_rank_any_layout(
        self, oracle: Any, source: str, target: str, pairs: dict[int, int]
    ) -> None:
        if not is_offered(oracle, source, target):
            pytest.skip("TVM does not fold this")
        assert_casts_any_layout(oracle, source, target, pairs)

    @pytest.mark.parametrize("dtype", adapter.DTYPES)
    def test_answers_share_no_memory_with_questions(self, oracle: Any, dtype: str) -> None:
        if not is_offered(oracle, dtype, dtype):
            pytest.skip("TVM does not fold this")
        assert_shares_no_memory(oracle, dtype)

    def test_a_plain_cast_stands_for_cast_none(self, oracle: Any) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", "on"))
        case = Case("pypto-cast", "0.2", "float32", "float16", modes)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x3FC00000]))) == [0x3E00]

    def test_one_build_serves_every_length(self) -> None:
        with built("tvm", adapter.Tvm) as oracle:
            for count in (1, 0, 100, 17):
                oracle.cast(onnx_case("float32", "int4"), np.zeros(count, np.uint32))
                oracle.cast(onnx_case("int4", "uint4"), np.zeros((count, 3), np.uint8))
            assert oracle._kernel.cache_info().misses == 2


def bitcast(source: str, target: str) -> Case:
    return Case("any", "1", source, target)


class TestBitcasts:
    @pytest.fixture(autouse=True)
    def _offers_them(self, oracle: Any) -> None:
        if oracle._variant == "folded":
            with pytest.raises(Unsupported, match=r"no reinterpret that it could fold$"):
                oracle.bitcast(bitcast("int8", "uint8"), bits_of("int8", [1]))
            pytest.skip("relax has no reinterpret")

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            ("float64", "int64"),
            ("uint32", "float32"),
            ("float16", "bfloat16"),
            ("uint8", "float8e4m3fn"),
            ("float8e5m2fnuz", "float8e8m0"),
            ("int8", "uint8"),
            ("float6e2m3", "float6e3m2"),
            ("uint4", "float4e2m1"),
            ("int2", "uint2"),
            ("bool", "bool"),
        ],
    )
    def test_patterns_and_shape_stay(self, oracle: Any, source: str, target: str) -> None:
        assert isinstance(oracle, WithBitcast)
        bits = some_patterns(source)
        assert_same(
            oracle.bitcast(bitcast(source, target), bits), bits.view(format_named(target).storage)
        )
        assert_moves_any_layout(lambda view: oracle.bitcast(bitcast(source, target), view), bits)

    @pytest.mark.parametrize(
        ("source", "target", "words"),
        [
            ("float32", "float16", "Reinterpret requires size match"),
            ("uint8", "uint16", "Reinterpret requires size match"),
            ("bool", "uint8", "bitcast i1"),
            ("int8", "int4", "Reinterpret requires size match"),
            ("int8", "float4e2m1", "bitcast i8"),
        ],
    )
    def test_another_width_is_refused_in_tvms_own_words(
        self, oracle: Any, source: str, target: str, words: str
    ) -> None:
        with pytest.raises(Exception, match=words) as caught:
            oracle.bitcast(bitcast(source, target), bits_of(source, [1, 0]))
        assert not isinstance(caught.value, Unsupported)

    def test_a_mode_that_reinterpret_lacks(self, oracle: Any) -> None:
        case = onnx_case("float32", "int32", mode="CAST_FLOOR")
        with pytest.raises(Unsupported, match="reinterpret takes no rounding mode: CAST_FLOOR"):
            oracle.bitcast(case, bits_of("float32", [0]))

    def test_a_dtype_that_is_not_there(self, oracle: Any) -> None:
        for pair in (("complex64", "uint64"), ("uint64", "complex64")):
            with pytest.raises(Unsupported, match=r"no dtype complex64$"):
                oracle.bitcast(bitcast(*pair), bits_of(pair[0], [1]))


class TestRefusals:
    @pytest.mark.parametrize("pair", [("float32", "float4e2m1"), ("float6e2m3", "bfloat16")])
    def test_a_cast_without_code_is_unsupported(self, oracle: Any, pair: tuple[str, str]) -> None:
        if oracle._variant == "folded":
            pytest.skip("TestFolding has its own")
        case, bits = onnx_case(*pair), bits_of(pair[0], [1, 2])
        names = " to ".join(adapter.DTYPES[dtype] for dtype in pair)
        for ask in (oracle.cast, oracle.bind):
            with pytest.raises(Unsupported, match=rf"^TVM generates no code .* casts {names}$"):
                ask(case, bits)

    def test_any_other_error_passes(self, oracle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(oracle._tvm, "compile", fail)
        monkeypatch.setattr(oracle._folding, "answer", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            oracle.cast(onnx_case("uint16", "float8e8m0"), bits_of("uint16", [1]))

    @pytest.mark.parametrize("dtype", ["complex64", "complex128", "string"])
    def test_a_dtype_that_is_not_there(self, oracle: Any, dtype: str) -> None:
        for pair in ((dtype, "float32"), ("float32", dtype)):
            case, bits = onnx_case(*pair), bits_of(pair[0], ["1"] if pair[0] == "string" else [1])
            for ask in (oracle.cast, oracle.bind, oracle.reproduce):
                with pytest.raises(Unsupported, match=f"no dtype {dtype}$"):
                    ask(case, bits)
            with pytest.raises(Unsupported, match=f"no dtype {dtype}$"):
                oracle.road(case)

    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    def test_a_mode_that_astype_lacks(self, oracle: Any, modes: dict[str, str]) -> None:
        case, bits = onnx_case("float32", "float16", 25, **modes), bits_of("float32", [0])
        for ask in (oracle.cast, oracle.bind, oracle.reproduce):
            with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
                ask(case, bits)

    def test_an_unknown_variant_names_the_known_ones(self, oracle: Any) -> None:
        with pytest.raises(Unsupported, match=r"no variant `relax`; .* are static, folded$"):
            adapter.Tvm("relax")

    def test_a_missing_package_names_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tvm", None)
        with pytest.raises(NotInstalled, match=r"tvm.*'castigate\[tvm\]'$"):
            adapter.Tvm()

    def test_refusals_print_nothing(self, oracle: Any, capfd: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(Unsupported):
            oracle.cast(onnx_case("float16", "float4e2m1"), bits_of("float16", [0]))
        for target in ("uint8", "int16"):
            with pytest.raises((RuntimeError, Unsupported)):
                oracle.bitcast(bitcast("bool", target), bits_of("bool", [0]))
        assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def roads() -> Iterator[dict[str | None, Any]]:
    """Every road of the framework."""
    with built("tvm", adapter.Tvm) as made:
        yield {None: made} | {variant: adapter.Tvm(variant) for variant in adapter.VARIANTS}


THREE_BILLION = 0x41E65A0BC0000000


class TestKnownShapes:
    def test_one_build_serves_one_shape(self) -> None:
        with built("tvm", lambda: adapter.Tvm("static")) as oracle:
            for shape in ((3,), (3,), (1, 3), (), (0,)):
                oracle.cast(onnx_case("float32", "int8"), np.zeros(shape, np.uint32))
            assert oracle._kernel.cache_info().misses == 4

    def test_the_loop_has_the_tensors_own_lengths(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lengths = []
        real = roads["static"]._te.placeholder

        def kept(shape: Any, *more: Any) -> Any:
            lengths.append(shape)
            return real(shape, *more)

        monkeypatch.setattr(roads["static"]._te, "placeholder", kept)
        roads["static"].cast(onnx_case("float32", "uint16"), np.zeros((2, 5), np.uint32))
        assert lengths == [(2, 5)]

    def test_a_vector_and_what_is_left_over_answer_otherwise(
        self, roads: dict[str | None, Any]
    ) -> None:
        # 3e9 fits no int8, and TVM leaves that to the processor's instructions.
        case, bits = onnx_case("float64", "int8"), bits_of("float64", [THREE_BILLION] * 17)
        answers = {road: roads[road].cast(case, bits).tolist() for road in ROADS}
        assert answers == {
            None: [0] * 17,
            "static": [0x80] * 16 + [0],
            "folded": [0x80] * 16 + [0],
        }

    def test_a_wrong_program_is_caught(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pair = (roads[None], roads["static"])
        assert compared(*pair, "int8", "int16") == ("conforms", "")
        real = pair[1]._te.compute
        roads["static"]._kernel.cache_clear()
        monkeypatch.setattr(
            pair[1]._te, "compute", lambda shape, of: real(shape, lambda *at: of(*at) + of(*at))
        )
        verdict, message = compared(*pair, "int8", "int16")
        roads["static"]._kernel.cache_clear()
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on tvm:0" in message


class TestFolding:
    def test_what_relax_leaves_to_run_is_unsupported(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle = roads["folded"]
        case, bits = onnx_case("float32", "int8"), bits_of("float32", [0x3FC00000])
        assert oracle.cast(case, bits).tolist() == [1]
        transform = oracle._folding._relax.transform
        monkeypatch.setattr(transform, "FoldConstant", lambda: lambda module: module)
        with pytest.raises(Unsupported, match="relax did not fold this, but left a call"):
            oracle.cast(case, bits)

    @pytest.mark.parametrize("dtype", sorted(set(adapter.DTYPES) - SUB_BYTE))
    def test_a_constant_comes_in_as_it_is(self, roads: dict[str | None, Any], dtype: str) -> None:
        bits = some_patterns(dtype, 64)
        assert_same(roads["folded"].cast(onnx_case(dtype, dtype), bits), bits)

    def test_a_wrong_fold_is_caught(
        self, roads: dict[str | None, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pair = (roads[None], roads["folded"])
        assert compared(*pair, "int8", "int16") == ("conforms", "")
        relax = pair[1]._folding._relax
        real = relax.op.astype
        monkeypatch.setattr(relax.op, "astype", lambda x, dtype: real(relax.op.add(x, x), dtype))
        verdict, message = compared(*pair, "int8", "int16")
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on tvm:0" in message


def test_one_road_one_pair(oracle: Any) -> None:
    assert isinstance(oracle, WithRoad)
    for modes in ({}, {"saturate": "0"}, {"saturate": "1"}):
        case = onnx_case("float32", "float8e5m2", 23, **modes)
        assert oracle.road(case) == "float32->float8e5m2"


BOUND = [
    onnx_case("float32", "float16"),
    onnx_case("float32", "float32"),
    onnx_case("float32", "bfloat16"),
    onnx_case("float64", "int64"),
    onnx_case("float32", "bool"),
    onnx_case("int64", "float8e4m3fn"),
    onnx_case("float16", "int4"),
    onnx_case("int4", "uint2"),
    onnx_case("int2", "int2"),
    onnx_case("float8e8m0", "float64"),
]


class TestBinding(BoundCalls):
    @pytest.mark.parametrize("case", BOUND, ids=lambda case: f"{case.source}-{case.target}")
    def test_every_refill_is_answered_as_cast_answers_it(self, oracle: Any, case: Case) -> None:
        assert isinstance(oracle, WithBind)
        if not is_offered(oracle, case.source, case.target):
            pytest.skip("TVM does not fold this")
        assert_follows_its_buffer(oracle, case)

    def test_a_call_allocates_nothing(self, oracle: Any) -> None:
        if oracle._variant == "folded":
            pytest.skip("a constant is made anew")
        call = oracle.bind(onnx_case("float32", "float16"), bits_of("float32", [0x3FC00000]))
        assert call() is call()


FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]
SCRIPTS = [
    (onnx_case("float32", "bfloat16", saturate="1"), FLOATS),
    (onnx_case("int4", "uint2"), [*range(16)] * 3),
    (onnx_case("uint64", "bool"), [0, 1 << 63, 5]),
]


@pytest.mark.parametrize(("case", "patterns"), SCRIPTS, ids=[row[0].id for row in SCRIPTS])
def test_a_reproduction_prints_the_same_answers(
    oracle: Any, case: Case, patterns: list[int]
) -> None:
    if not is_offered(oracle, case.source, case.target):
        pytest.skip("TVM does not fold this")
    assert_repeats(oracle, case, patterns)
