"""The contract of every adapter, on every road: bits in, one cast or bitcast, bits out."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from oracles.adapters import onnx_optimizers, openvino
from oracles.protocol import (
    NotInstalled,
    Unsupported,
    WithBind,
    WithBitcast,
    WithReproduceBitcast,
    WithRoad,
)
from oracles.registry import BUILTINS, Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.editions import editions
from specs.formats import format_named, formats
from specs.loader import documents
from tests.adapters.block_offers import MX_OFFERS
from tests.adapters.common import (
    assert_follows_its_buffer,
    assert_moves_any_layout,
    assert_prints_the_answers,
    assert_same,
    bind_and_call,
    bits_of,
    kept_environment,
    layouts,
    onnx_case,
    parse_printed,
    patterns_of,
    refusal,
    run_script,
    some_patterns,
    view_case,
)
from tests.adapters.contract import ROADS, params, roads
from tests.adapters.contract_road import ALL, OWN_PROCESS, Road, skip_unless_installed
from tests.adapters.contract_values import (
    ADDED_DIMENSION,
    BOUND,
    KNOWN,
    LAYOUT_VALUES,
    MORE_KNOWN,
    SAME_WIDTH,
    SCALED_DIMENSION,
    KnownValues,
    Shape,
)

SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 5), (1, 2, 3, 2), (2, 1, 2, 1, 3), (0,), (2, 0, 3)]
ONE_AND_A_HALF = bits_of("float32", [0x3FC00000])
TWO_WIDE, MINUS_TWO_WIDE, MINUS_ZERO_WIDE = 1 << 62, 3 << 62, 1 << 63
ONE_AND_A_HALF_WIDE = 0x3FF8 << 48
"""Patterns of float64, which every framework has."""


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[Road], Any]]:
    """Create each road's oracle once; skip a framework that clashes with one loaded before."""
    oracles: dict[str, Any] = {}
    loaded: set[str] = set()

    def load_once(road: Road) -> Any:
        if road.id not in oracles:
            clashing = OWN_PROCESS.intersection(road.packages)
            if clashing and loaded - clashing:
                pytest.skip(
                    f"{min(loaded)} is loaded in this process: run `-k {road.backend}` alone"
                )
            oracles[road.id] = road.make()
            loaded.update(clashing)
        return oracles[road.id]

    with kept_environment():
        yield load_once


@pytest.fixture
def oracle(road: Road, load: Callable[[Road], Any]) -> Any:
    return load(road)


def pair_of(case: Case, *_: Any) -> str:
    return f"{case.source}-{case.target}"


PACKAGES = {road.backend: road.packages for road in ROADS}


class TestConstruction:
    @pytest.mark.parametrize("road", roads(lambda road: road.variant is None))
    def test_an_unknown_variant_is_refused_with_the_known_ones(
        self, road: Road, oracle: Any
    ) -> None:
        builtin = BUILTINS[road.backend]
        with pytest.raises(Unsupported, match="no variant `nonsense`; it") as caught:
            type(oracle)("nonsense")
        known = ", ".join(builtin.variants) or "it has none"
        assert known in str(caught.value)

    @pytest.mark.parametrize("backend", PACKAGES)
    def test_a_missing_package_names_the_extra_that_installs_it(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        builtin = BUILTINS[backend]
        for package in PACKAGES[backend]:
            with kept_environment(), monkeypatch.context() as patch:
                patch.setitem(sys.modules, package, None)
                advice = rf"{package}.*'castigate\[{builtin.extra}\]'$"
                with pytest.raises(NotInstalled, match=advice):
                    load_class(builtin.module, builtin.attribute)()
            skip_unless_installed(package)

    def test_an_adapter_imports_no_framework_before_it_is_created(self) -> None:
        packages = sorted({name for packages in PACKAGES.values() for name in packages})
        script = "import sys\n" + "".join(
            f"import {builtin.module}\n" for builtin in BUILTINS.values()
        )
        script += f"print([name for name in {packages} if name in sys.modules])"
        assert run_script(script) == ["[]"]


def load_class(module: str, attribute: str) -> Any:
    __import__(module)
    return getattr(sys.modules[module], attribute)


LAYOUT_DTYPES = params(
    lambda road: (
        [(dtype,) for dtype in (road.layout_dtypes or ()) or sorted(road.moved)]
        if road.casts and road.layout_dtypes != ()
        else []
    ),
    str,
)


class TestIdentity:
    @pytest.mark.parametrize("road", roads())
    def test_bits_of_every_dtype_come_out_unchanged(self, road: Road, oracle: Any) -> None:
        assert smoke(Backend(road.id, oracle)) == {}

    @pytest.mark.parametrize(("road", "dtype"), LAYOUT_DTYPES)
    def test_bits_come_out_unchanged_from_any_layout(
        self, road: Road, oracle: Any, dtype: str
    ) -> None:
        bits = some_patterns(dtype) if road.layout_dtypes is None else some_patterns(dtype, 99)
        assert_moves_any_layout(partial(oracle.identity, dtype), bits)

    @pytest.mark.parametrize("road", roads())
    def test_a_dtype_that_the_framework_lacks_is_refused(self, road: Road, oracle: Any) -> None:
        for dtype in sorted(ALL - road.moved):
            with pytest.raises(Unsupported):
                oracle.identity(dtype, some_patterns(dtype))

    @pytest.mark.parametrize("road", roads())
    def test_bits_above_a_code_are_dropped(self, road: Road, oracle: Any) -> None:
        for dtype in {"int4", "uint4", "float4e2m1"} & road.moved:
            codes = oracle.identity(dtype, np.array([0xF5, 0x7A], np.uint8))
            assert codes.tolist() == [0x5, 0xA], dtype


def known_values(road: Road) -> list[tuple[KnownValues]]:
    rows = [*KNOWN, *MORE_KNOWN] if road.takes_every_known_value else KNOWN
    return [
        (row,)
        for row in rows
        if road.casts
        and {row.source, row.target} <= road.castable
        and (
            road.refusal(row.source, row.target) is not None or road.answers(row.source, row.target)
        )
    ]


class TestCasts:
    @pytest.mark.parametrize(
        ("road", "row"), params(known_values, lambda row: f"{row.source}-{row.target}")
    )
    def test_known_values(self, road: Road, oracle: Any, row: KnownValues) -> None:
        case, bits = onnx_case(row.source, row.target), bits_of(row.source, list(row.answers))
        reason = road.refusal(row.source, row.target)
        if reason is not None:
            with pytest.raises(Exception, match=reason):
                oracle.cast(case, bits)
            return
        answer = oracle.cast(case, bits)
        assert answer.dtype == np.dtype(format_named(row.target).storage)
        assert patterns_of(answer) == list(row.answers.values())

    @pytest.mark.parametrize(
        ("road", "pair"),
        params(
            lambda road: [
                (pair,)
                for pair in road.layout_pairs
                if road.casts and road.answers(*pair.split("-"))
            ],
            str,
        ),
    )
    def test_answers_have_the_shape_of_the_input_in_any_layout(
        self, road: Road, oracle: Any, pair: str
    ) -> None:
        (source, target), answers = pair.split("-"), LAYOUT_VALUES[pair]
        case, flat = onnx_case(source, target), np.resize(bits_of(source, list(answers)), 12)
        views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
        for name, view in views.items():
            answer = oracle.cast(case, view)
            assert isinstance(answer, np.ndarray), name
            expected = [answers[pattern] for pattern in patterns_of(view.ravel())]
            assert_same(answer, bits_of(target, expected).reshape(view.shape))

    @pytest.mark.parametrize(
        ("road", "dtype"),
        params(lambda road: [(dtype,) for dtype in road.owned if road.casts], str),
    )
    def test_answers_share_no_memory_with_the_input(
        self, road: Road, oracle: Any, dtype: str
    ) -> None:
        # Aligned memory: a framework may use it as a tensor's.
        memory = np.zeros(4096, np.uint8)
        start = -memory.ctypes.data % 64
        bits = memory[start : start + 2048].view(format_named(dtype).storage)
        for answer in (oracle.cast(onnx_case(dtype, dtype), bits), oracle.identity(dtype, bits)):
            bits[:] = 1
            assert not answer.any()
            answer[:] = 2
            assert (bits == 1).all()
            bits[:] = 0

    @pytest.mark.parametrize("road", roads())
    def test_a_signaling_nan_reaches_the_framework_unchanged(self, road: Road, oracle: Any) -> None:
        bits = bits_of("float32", [0x7F800001, 0xFFBFFFFF])
        assert_same(oracle.cast(onnx_case("float32", "float32"), bits), bits)

    @pytest.mark.parametrize("satmode", ["off", "on"])
    @pytest.mark.parametrize("road", roads())
    def test_a_plain_cast_answers_for_cast_none(
        self, road: Road, oracle: Any, satmode: str
    ) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", satmode))
        case = Case("pypto-cast", "0.2", "float32", "float64", modes)
        assert patterns_of(oracle.cast(case, ONE_AND_A_HALF)) == [ONE_AND_A_HALF_WIDE]


class TestRefusals:
    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    @pytest.mark.parametrize("road", roads())
    def test_a_mode_that_a_plain_cast_lacks(
        self, road: Road, oracle: Any, modes: dict[str, str]
    ) -> None:
        case = onnx_case("float32", "float64", **modes)
        requests = [
            partial(oracle.cast, case, ONE_AND_A_HALF),
            partial(bind_and_call, oracle, case, ONE_AND_A_HALF),
            partial(oracle.road, case),
        ]
        if road.bitcasts:
            view = onnx_case("float32", "int32", **modes)
            requests.append(partial(oracle.bitcast, view, ONE_AND_A_HALF))
        for request in requests:
            with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
                request()
        if road.bitcasts and isinstance(oracle, WithReproduceBitcast):
            with pytest.raises(Unsupported):
                oracle.reproduce_bitcast(view, ONE_AND_A_HALF)

    @pytest.mark.parametrize(
        ("road", "dtype"),
        params(lambda road: [(dtype,) for dtype in sorted(ALL - road.castable) if road.casts], str),
    )
    def test_a_dtype_that_the_framework_does_not_cast(
        self, road: Road, oracle: Any, dtype: str
    ) -> None:
        for source, target in ((dtype, "float32"), ("float32", dtype)):
            case = onnx_case(source, target)
            bits = bits_of(source, ["1"] if source == "string" else [1])
            requests = [
                partial(oracle.cast, case, bits),
                partial(bind_and_call, oracle, case, bits),
                partial(oracle.road, case),
            ]
            if road.scripts_check_dtypes:
                requests.append(partial(oracle.reproduce, case, bits))
            if road.bitcasts and dtype not in road.moved:
                requests.append(partial(oracle.bitcast, case, bits))
            for request in requests:
                with pytest.raises(Unsupported, match=road.no_dtype.format(dtype=dtype)):
                    request()

    @pytest.mark.parametrize(
        ("road", "case", "reason"),
        params(lambda road: road.refusals if road.casts else (), pair_of),
    )
    def test_cast_and_bind_refuse_a_missing_kernel_with_the_same_line(
        self, road: Road, oracle: Any, case: Case, reason: str
    ) -> None:
        bits = np.zeros(3, format_named(case.source).storage)
        with pytest.raises(Unsupported, match=reason) as by_cast:
            oracle.cast(case, bits)
        with pytest.raises(Unsupported) as by_bind:
            oracle.bind(case, bits)
        assert str(by_bind.value) == str(by_cast.value)
        assert "\n" not in str(by_cast.value)


@cache
def all_cases(source: str) -> list[Case]:
    """Every document's cases of a source."""
    every = (edition for document in documents().values() for edition in editions(document))
    return [case for edition in every for case in edition.cases() if case.source == source]


PLAIN_ROADS = roads(lambda road: road.casts and road.backend not in ("ort", "onnx"))


class TestRoads:
    @pytest.mark.parametrize("road", roads())
    def test_documents_with_the_same_cast_share_its_road(self, road: Road, oracle: Any) -> None:
        assert isinstance(oracle, WithRoad)
        modes = (("mode", "CAST_NONE"), ("satmode", "off"))
        other = Case("pypto-cast", "0.2", "float32", "float64", modes)
        assert oracle.road(other) == oracle.road(onnx_case("float32", "float64"))

    @pytest.mark.parametrize("road", PLAIN_ROADS)
    def test_a_cast_without_parameters_has_one_road_per_pair(self, road: Road, oracle: Any) -> None:
        targets: set[str] = set()
        for case in all_cases("float32"):
            # numpy's modes are roads of their own, and so are jax's function of the array API and
            # other operations than a cast.
            own = case.document == "array-api-astype" and road.backend == "jax"
            is_other = case.document in (openvino.LIKE, "stablehlo-reduce-precision")
            is_plain = case.mode.get("casting", "unsafe") == "unsafe" and not (own or is_other)
            if is_plain and refusal(partial(oracle.road, case)) is None:
                assert oracle.road(case) == f"float32->{case.target}"
                targets.add(case.target)
        assert targets == road.castable

    @pytest.mark.parametrize("road", roads())
    def test_a_road_refuses_only_what_cast_refuses(self, road: Road, oracle: Any) -> None:
        zero = bits_of("float32", [0])
        reasons = {case: refusal(partial(oracle.road, case)) for case in all_cases("float32")}
        refused = {case: reason for case, reason in reasons.items() if reason is not None}
        assert refused
        for case, reason in refused.items():
            assert refusal(partial(oracle.cast, case, zero)) == reason


class TestBinding:
    @pytest.mark.parametrize(
        ("road", "case"),
        params(
            lambda road: [
                (case,)
                for case in BOUND
                if road.casts
                and {case.source, case.target} <= road.castable
                and (road.bound is None or pair_of(case) in road.bound)
            ],
            pair_of,
        ),
    )
    def test_every_refill_is_answered_as_cast_answers_it(
        self, road: Road, oracle: Any, case: Case
    ) -> None:
        assert isinstance(oracle, WithBind)
        reason = road.refusal(case.source, case.target)
        if reason is None:
            assert_follows_its_buffer(oracle, case)
            return
        with pytest.raises(Exception, match=reason):
            bind_and_call(oracle, case, np.zeros(3, format_named(case.source).storage))

    @pytest.mark.parametrize("road", roads())
    def test_a_call_reads_what_the_buffer_holds_then(self, road: Road, oracle: Any) -> None:
        bits = bits_of("float32", [0x3FC00000, 0xC0000000, 0])
        call = oracle.bind(onnx_case("float32", "float64"), bits)
        assert patterns_of(call()) == [ONE_AND_A_HALF_WIDE, MINUS_TWO_WIDE, 0]
        bits[:] = [0x40000000, 0x3FC00000, 0x80000000]
        assert patterns_of(call()) == [TWO_WIDE, ONE_AND_A_HALF_WIDE, MINUS_ZERO_WIDE]

    @pytest.mark.parametrize("step", [1, 2, -1])
    @pytest.mark.parametrize("road", roads())
    def test_a_view_is_read_anew(self, road: Road, oracle: Any, step: int) -> None:
        memory = bits_of("float32", [0x3FC00000, 0xC0000000, 0x40000000, 0])
        view = memory[::step]
        view.flags.writeable = False
        case = onnx_case("float32", "float64")
        if road.backend == "torch" and step < 0:
            pytest.skip("torch has no negative strides: it would read a copy")
        call = oracle.bind(case, view)
        memory[:] = memory[::-1].copy()
        assert_same(call(), oracle.cast(case, view))

    @pytest.mark.parametrize("road", roads())
    def test_calls_do_not_disturb_each_other(self, road: Road, oracle: Any) -> None:
        case = onnx_case("float32", "float64")
        buffers = [bits_of("float32", [code] * 3) for code in (0x3FC00000, 0xC0000000)]
        calls = [oracle.bind(case, bits) for bits in buffers]
        answers = [call() for call in calls]
        assert [patterns_of(answer) for answer in answers] == [
            [ONE_AND_A_HALF_WIDE] * 3,
            [MINUS_TWO_WIDE] * 3,
        ]

    @pytest.mark.parametrize("road", roads())
    def test_a_call_keeps_its_buffer_alive(self, road: Road, oracle: Any) -> None:
        gc.freeze()  # The collector need not look through a framework.
        bits = bits_of("float32", [0x3FC00000])
        buffer = weakref.ref(bits)
        call = oracle.bind(onnx_case("float32", "float64"), bits)
        del bits
        gc.collect()
        gc.unfreeze()
        assert buffer() is not None
        assert patterns_of(call()) == [ONE_AND_A_HALF_WIDE]

    @pytest.mark.parametrize("target", ["int32", "int64"])
    @pytest.mark.parametrize("road", roads())
    def test_answers_share_no_memory_with_the_buffer(
        self, road: Road, oracle: Any, target: str
    ) -> None:
        bits = bits_of("int32", [1, 2])
        answer = oracle.bind(onnx_case("int32", target), bits)()
        bits[:] = 0
        assert answer.tolist() == [1, 2]


BITCASTS = roads(lambda road: road.bitcasts is not None)


class TestBitcasts:
    @pytest.mark.parametrize("road", roads(lambda road: road.bitcasts is None))
    def test_no_road_offers_bitcasts_that_are_not_tested(self, road: Road, oracle: Any) -> None:
        if isinstance(oracle, WithBitcast):
            with pytest.raises(Unsupported):
                oracle.bitcast(view_case("float32", "int32"), ONE_AND_A_HALF)

    @pytest.mark.parametrize(
        ("road", "source", "target", "patterns"),
        params(
            lambda road: [
                row
                for row in SAME_WIDTH
                if road.bitcasts and (road.refuses_other_views or road.views(*row[:2]))
            ],
            lambda source, target, _: f"{source}-{target}",
        ),
    )
    def test_one_width_keeps_the_patterns(
        self, road: Road, oracle: Any, source: str, target: str, patterns: list[int]
    ) -> None:
        assert isinstance(oracle, WithBitcast)
        case, bits = view_case(source, target), bits_of(source, patterns)
        if not road.views(source, target):
            with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
                oracle.bitcast(case, bits)
            return
        assert_same(oracle.bitcast(case, bits), bits_of(target, patterns))

    @pytest.mark.parametrize("road", BITCASTS)
    def test_one_width_keeps_every_shape_in_every_layout(self, road: Road, oracle: Any) -> None:
        flat = bits_of("float32", [0x7F800001 + 7 * n for n in range(12)])
        views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
        for name, view in views.items():
            answer = oracle.bitcast(view_case("float32", "int32"), view)
            assert isinstance(answer, np.ndarray), name
            assert_same(answer, view)

    @pytest.mark.parametrize(
        ("road", "source", "target"),
        params(
            lambda road: [
                row
                for row in (
                    ("float32", "float32"),
                    ("float32", "int32"),
                    ("uint16", "float16"),
                )
                if road.bitcasts and (road.bitcasts != "own" or row[0] != "uint16")
            ],
            lambda source, target: f"{source}-{target}",
        ),
    )
    def test_answers_share_no_memory_with_the_input(
        self, road: Road, oracle: Any, source: str, target: str
    ) -> None:
        bits = bits_of(source, [0x3C00, 0x4000])
        answer = oracle.bitcast(view_case(source, target), bits)
        bits[:] = 0
        answer[1] += 1
        assert patterns_of(answer) == [0x3C00, 0x4001]
        assert patterns_of(bits) == [0, 0]

    @pytest.mark.parametrize(
        ("road", "source", "target", "shape", "patterns", "new_shape", "expected"),
        params(
            lambda road: [
                row
                for row in {"scales": SCALED_DIMENSION, "adds": ADDED_DIMENSION}.get(
                    road.bitcasts or "", []
                )
                if road.views(*row[:2])
            ],
            lambda source, target, shape, *_: f"{source}{shape}-{target}",
        ),
    )
    def test_another_width_changes_the_last_dimension(
        self,
        road: Road,
        oracle: Any,
        source: str,
        target: str,
        shape: Shape,
        patterns: list[int],
        new_shape: Shape,
        expected: list[int],
    ) -> None:
        bits = bits_of(source, patterns).reshape(shape)
        answer = oracle.bitcast(view_case(source, target), bits)
        assert_same(answer, bits_of(target, expected).reshape(new_shape))

    @pytest.mark.parametrize("road", BITCASTS)
    def test_a_text_is_refused(self, road: Road, oracle: Any) -> None:
        for source, target in (("string", "float32"), ("float32", "string")):
            bits = bits_of(source, ["1" if source == "string" else 1])
            with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
                oracle.bitcast(view_case(source, target), bits)


def first_script_of_numbers(road: Road) -> list[tuple[Case, list[Any]]]:
    """The first script's case that casts numbers, with its patterns; none if there is no such."""
    return [
        (case, patterns)
        for case, patterns in road.scripts
        if format_named(case.source).is_numeric and format_named(case.target).is_numeric
    ][:1]


@pytest.mark.parametrize(("road", "case", "patterns"), params(first_script_of_numbers, pair_of))
def test_a_script_takes_a_tensor_of_any_shape(
    road: Road, oracle: Any, case: Case, patterns: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    for shape in ((), (2, 3)) if road.refusal(case.source, case.target) is None else ():
        bits = np.resize(bits_of(case.source, patterns), shape)
        script = oracle.reproduce(case, bits)
        with warnings.catch_warnings(action="ignore"):
            exec(script, {})
        first, *others = capfd.readouterr().out.splitlines()
        printed = [each.rpartition(" -> ")[2] for each in (first, *others)]
        if first.startswith("("):
            printed = " ".join(others).split()
        expected = patterns_of(oracle.cast(case, bits).ravel())
        assert [parse_printed(each) for each in printed] == expected, script


@pytest.mark.ci_runs_one_of(8)  # scripts load a framework anew
class TestScripts:
    @pytest.mark.parametrize(
        ("road", "case", "patterns"), params(lambda road: road.scripts, pair_of)
    )
    def test_a_reproduction_prints_the_oracles_answers(
        self, road: Road, oracle: Any, case: Case, patterns: list[Any]
    ) -> None:
        reason = road.refusal(case.source, case.target)
        if reason is None:
            assert_prints_the_answers(oracle, case, patterns)
            return
        with pytest.raises(Unsupported, match=reason):
            oracle.cast(case, bits_of(case.source, patterns))


def test_every_backend_has_roads_in_the_contract() -> None:
    covered = {road.backend for road in ROADS}
    others = {"reference", "cinn", "pypto"}  # tested as the reference and with stand-ins
    others |= {
        each.name or each.package for each in onnx_optimizers.REWRITERS
    }  # in test_onnx_optimizers.py
    others |= MX_OFFERS.keys()  # in test_block_libraries.py
    # in test_folders.py
    others |= {name for name, builtin in BUILTINS.items() if builtin.has_folder}
    assert covered == BUILTINS.keys() - others
    assert set(formats()) == ALL
