"""The adapters of onnxruntime, onnx, torch and ml_dtypes: bits in, one cast, bits out."""

from __future__ import annotations

import importlib
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.packing import pack, unpack
from oracles.protocol import Bits, NotInstalled, Unsupported
from specs.cases import Case
from specs.formats import format_named, formats


@dataclass(frozen=True)
class Adapter:
    """Where an adapter is, what it imports, and which dtypes its framework lacks."""

    module: str
    class_name: str
    packages: tuple[str, ...]
    lacks: frozenset[str]

    def make(self, variant: str | None = None) -> Any:
        for package in self.packages:
            pytest.importorskip(package)
        return getattr(self.load(), self.class_name)(variant)

    def load(self) -> Any:
        return importlib.import_module(f"oracles.adapters.{self.module}")


FLOAT6 = frozenset({"float6e2m3", "float6e3m2"})
COMPLEX = frozenset({"complex64", "complex128"})
SUB_BYTE = FLOAT6 | {"float4e2m1", "int4", "int2", "uint4", "uint2"}
ADAPTERS = {
    "ort": Adapter("ort", "Ort", ("onnxruntime", "onnx"), FLOAT6 | COMPLEX),
    "onnx": Adapter("onnx", "Onnx", ("onnx",), FLOAT6),
    "torch": Adapter("torch", "Torch", ("torch",), SUB_BYTE | {"string"}),
    "ml_dtypes": Adapter("ml_dtypes", "MlDtypes", ("ml_dtypes",), frozenset()),
}
ROADS = [("ort", None), ("ort", "folded"), ("onnx", None), ("torch", None), ("ml_dtypes", None)]
ALL = ("ort", "onnx", "torch", "ml_dtypes")
WITH_TEXT = ("ort", "onnx", "ml_dtypes")

Road = tuple[str, str | None]


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: ":".join(filter(None, road)))
def oracle(request: pytest.FixtureRequest) -> Any:
    name, variant = request.param
    return ADAPTERS[name].make(variant)


def onnx_case(source: str, target: str, version: int = 25, **modes: str) -> Case:
    return Case("onnx-cast", str(version), source, target, tuple(modes.items()))


def bits_of(dtype: str, patterns: list[Any]) -> Bits:
    """Patterns as numbers (or texts) in the dtype's storage."""
    storage = format_named(dtype).storage
    if storage == "V16":
        raw = b"".join(pattern.to_bytes(16, "little") for pattern in patterns)
        return np.frombuffer(raw, storage).copy()
    return np.array(patterns, storage)


def patterns_of(bits: Bits) -> list[Any]:
    """The way back from ``bits_of``."""
    if bits.dtype == np.dtype("V16"):
        return [int.from_bytes(pattern.tobytes(), "little") for pattern in bits]
    return list(bits.tolist())


def some_patterns(dtype: str, count: int = 4096) -> Bits:
    """Every pattern of up to 16 bits; a seeded sample of wider ones; a few texts."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return np.array(["", "1.5", "-0", "a longer text than fits inline", "né\n"], object)
    if entry.bits <= 16:
        return np.arange(1 << entry.bits).astype(entry.storage)
    raw = np.random.default_rng(0).bytes(count * entry.bits // 8)
    return np.frombuffer(raw, entry.storage).copy()


def assert_same(got: Bits, expected: Bits) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tolist() == expected.tolist()


def layouts(bits: Bits) -> dict[str, Bits]:
    """Views of 12 patterns in layouts that a careless adapter would misread."""
    read_only = bits.copy()
    read_only.flags.writeable = False
    return {
        "strided": bits[::3],
        "reversed": bits[::-1],
        "transposed": bits.reshape(3, 4).T,
        "offset": bits[1:],
        "broadcast": np.broadcast_to(bits[:3], (2, 3)),
        "read-only": read_only,
    }


class TestIdentity:
    @pytest.mark.parametrize("dtype", formats())
    def test_bits_come_out_as_they_went_in(self, oracle: Any, dtype: str) -> None:
        bits = some_patterns(dtype)
        if dtype in ADAPTERS[oracle.name].lacks:
            with pytest.raises(Unsupported):
                oracle.identity(dtype, bits)
        else:
            views = [bits, bits[:0], bits[1:2].reshape(()), np.resize(bits, (1, 3, 1, 5, 1))]
            for view in (*views, *layouts(np.resize(bits, 12)).values()):
                assert_same(oracle.identity(dtype, view), view)

    @pytest.mark.parametrize("name", ["onnx", "ml_dtypes"])
    def test_what_lies_above_a_code_is_dropped(self, name: str) -> None:
        bits = np.array([0xF5, 0x7A], np.uint8)
        assert ADAPTERS[name].make().identity("int4", bits).tolist() == [0x5, 0xA]


# Computed by hand from the formats' fields: source, target, the pairs of patterns, who has both.
KNOWN: list[tuple[str, str, dict[Any, Any], tuple[str, ...]]] = [
    ("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}, ALL),
    ("float16", "float64", {0x3E00: 0x3FF8 << 48, 0x0001: 0x3E70 << 48}, ALL),
    ("float32", "bfloat16", {0x3FC00000: 0x3FC0, 0xC0000000: 0xC000}, ALL),
    ("bfloat16", "float32", {0x3FC0: 0x3FC00000}, ALL),
    ("float32", "float8e4m3fn", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}, ALL),
    ("float32", "float8e4m3fnuz", {0x3FC00000: 0x44, 0xC0000000: 0xC8}, ALL),
    ("float32", "float8e5m2", {0x3FC00000: 0x3E, 0xC0000000: 0xC0}, ALL),
    ("float32", "float8e5m2fnuz", {0x3FC00000: 0x42, 0xC0000000: 0xC4}, ALL),
    ("float8e4m3fn", "float32", {0x3C: 0x3FC00000}, ALL),
    ("float8e8m0", "float32", {0x80: 0x40000000, 0x7F: 0x3F800000}, ALL),
    (
        "float4e2m1",
        "float32",
        {0x7: 0x40C00000, 0xB: 0xBFC00000, 0x1: 0x3F000000},
        ("onnx", "ml_dtypes"),
    ),
    ("float32", "float4e2m1", {0xC0C00000: 0xF, 0x3FC00000: 0x3}, ("onnx", "ml_dtypes")),
    ("float6e2m3", "float32", {0x1F: 0x40F00000, 0x28: 0xBF800000}, ("ml_dtypes",)),
    ("float32", "float6e3m2", {0x41E00000: 0x1F, 0xBF800000: 0x2C}, ("ml_dtypes",)),
    ("int16", "int8", {200: 0xC8, 0xFFFF: 0xFF, 5: 5}, ALL),
    ("uint32", "uint64", {0xFFFFFFFF: 0xFFFFFFFF, 7: 7}, ALL),
    ("int64", "int32", {0xFFFFFFFFFFFFFFFE: 0xFFFFFFFE, 9: 9}, ALL),
    ("uint16", "float32", {3: 0x40400000}, ALL),
    ("int4", "int8", {0x1: 0x01, 0xF: 0xFF, 0x8: 0xF8, 0x7: 0x07, 0x2: 0x02}, WITH_TEXT),
    ("int8", "int4", {0x05: 0x5, 0xFD: 0xD, 0x00: 0x0, 0xF8: 0x8, 0x01: 0x1}, WITH_TEXT),
    ("uint4", "uint8", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}, WITH_TEXT),
    ("uint8", "uint4", {0x1: 0x1, 0xF: 0xF, 0x8: 0x8}, WITH_TEXT),
    ("int2", "int8", {0x1: 0x01, 0x2: 0xFE, 0x3: 0xFF}, WITH_TEXT),
    ("int8", "uint2", {0x1: 0x1, 0x3: 0x3, 0x2: 0x2, 0x0: 0x0}, WITH_TEXT),
    ("bool", "float32", {1: 0x3F800000, 0: 0}, ALL),
    ("float32", "bool", {0x40000000: 1, 0: 0}, ALL),
    ("complex64", "float32", {0xC0000000_3FC00000: 0x3FC00000}, ("torch", "ml_dtypes")),
    (
        "complex64",
        "complex128",
        {0xC0000000_3FC00000: (0xC000 << 112) | (0x3FF8 << 48)},
        ("torch", "ml_dtypes"),
    ),
    (
        "complex128",
        "complex64",
        {(0xC000 << 112) | (0x3FF8 << 48): 0xC0000000_3FC00000},
        ("torch", "ml_dtypes"),
    ),
    ("string", "float32", {"1.5": 0x3FC00000, "-2": 0xC0000000}, WITH_TEXT),
    ("string", "int32", {"-7": 0xFFFFFFF9}, WITH_TEXT),
    ("string", "bfloat16", {"1.5": 0x3FC0}, ("ort",)),
    ("int32", "string", {0xFFFFFFF9: "-7", 12: "12"}, WITH_TEXT),
    ("float32", "string", {0x3FC00000: "1.5"}, WITH_TEXT),
]


class TestKnownValues:
    @pytest.mark.parametrize(
        ("source", "target", "pairs", "who"), KNOWN, ids=[f"{row[0]}-{row[1]}" for row in KNOWN]
    )
    def test_cast(
        self, oracle: Any, source: str, target: str, pairs: dict[Any, Any], who: tuple[str, ...]
    ) -> None:
        if oracle.name not in who:
            with pytest.raises(Exception):  # noqa: B017 (each framework refuses in its own way)
                oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
            return
        answer = oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert patterns_of(answer) == list(pairs.values())

    def test_an_answer_shares_no_memory_with_the_question(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x3FC00000, 0x40000000])
        answer = oracle.cast(onnx_case("float32", "float32"), bits)
        bits[:] = 0
        answer[1] += 1
        assert patterns_of(answer) == [0x3FC00000, 0x40000001]

    def test_signalling_nans_keep_their_bits_on_the_way_in(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x7F800001, 0xFFBFFFFF])
        assert_same(oracle.cast(onnx_case("float32", "float32"), bits), bits)


SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 5), (1, 2, 3, 2), (2, 1, 2, 1, 3), (0,), (2, 0, 3)]
PAIRS = [
    ("float32", "float16", ALL),
    ("int4", "int8", WITH_TEXT),
    ("int8", "int4", WITH_TEXT),
    ("int8", "string", WITH_TEXT),
    ("string", "int8", WITH_TEXT),
    ("complex128", "complex64", ("torch", "ml_dtypes")),
]


class TestShapes:
    @pytest.mark.parametrize(("source", "target", "who"), PAIRS)
    def test_any_rank_any_layout(
        self, oracle: Any, source: str, target: str, who: tuple[str, ...]
    ) -> None:
        if oracle.name not in who:
            pytest.skip(f"{oracle.name} lacks the pair")
        case = onnx_case(source, target)
        patterns = [str(n) for n in range(12)] if source == "string" else list(range(12))
        flat = bits_of(source, patterns)
        expected = dict(zip(patterns, patterns_of(oracle.cast(case, flat)), strict=True))
        views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
        for name, view in views.items():
            answer = oracle.cast(case, view)
            assert isinstance(answer, np.ndarray), name
            assert answer.shape == view.shape, name
            assert answer.dtype == np.dtype(format_named(target).storage), name
            wanted = [expected[pattern] for pattern in patterns_of(view.ravel())]
            assert patterns_of(answer.ravel()) == wanted, name


class TestModes:
    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize(("saturate", "expected"), [("1", 0x7E), ("0", 0x7F)])
    def test_saturate(self, road: Road, saturate: str, expected: int) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        case = onnx_case("float32", "float8e4m3fn", saturate=saturate)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x4E6E6B28]))) == [expected]

    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize(
        ("round_mode", "expected"), [("up", 0x81), ("down", 0x80), ("nearest", 0x80)]
    )
    def test_round_mode(self, road: Road, round_mode: str, expected: int) -> None:
        oracle = ADAPTERS[road[0]].make(road[1])
        case = onnx_case("float32", "float8e8m0", saturate="1", round_mode=round_mode)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x40200000]))) == [expected]

    @pytest.mark.parametrize("satmode", ["off", "on"])
    def test_a_plain_cast_stands_for_cast_none(self, oracle: Any, satmode: str) -> None:
        modes = (("mode", "CAST_NONE"), ("satmode", satmode))
        case = Case("pypto-cast", "0.2", "float32", "float16", modes)
        assert patterns_of(oracle.cast(case, bits_of("float32", [0x3FC00000]))) == [0x3E00]

    @pytest.mark.parametrize("modes", [{"mode": "CAST_FLOOR"}, {"unheard_of": "1"}])
    def test_no_mode_that_a_plain_cast_lacks(self, oracle: Any, modes: dict[str, str]) -> None:
        case = onnx_case("float32", "float16", 25, **modes)
        with pytest.raises(Unsupported, match=r"takes no .*: (CAST_FLOOR|1)$"):
            oracle.cast(case, bits_of("float32", [0x3FC00000]))


class TestOpsets:
    @pytest.mark.parametrize("road", ROADS[:3])
    @pytest.mark.parametrize("version", [6, 9, 13, 19, 21, 23, 24, 25])
    def test_every_opset_casts(self, road: Road, version: int) -> None:
        case = onnx_case("float32", "float16", version)
        answer = ADAPTERS[road[0]].make(road[1]).cast(case, bits_of("float32", [0x3FC00000]))
        assert patterns_of(answer) == [0x3E00]

    def test_a_constant_of_an_old_opset_makes_a_valid_model(self) -> None:
        onnx = pytest.importorskip("onnx")
        models = importlib.import_module("oracles.adapters.onnx_models")
        graph = models.cast_graph(onnx_case("float32", "float16", 6))
        onnx.checker.check_model(models.ModelBuilder(onnx).with_constant(graph, (1,), bytes(4)))

    @pytest.mark.parametrize("name", ["ort", "onnx"])
    @pytest.mark.parametrize(
        ("dtype", "first"),
        [("bfloat16", 13), ("float8e5m2", 19), ("int4", 21), ("float8e8m0", 24), ("int2", 25)],
    )
    def test_a_source_newer_than_the_opset_is_rejected(
        self, name: str, dtype: str, first: int
    ) -> None:
        oracle, bits = ADAPTERS[name].make(), bits_of(dtype, [1])
        oracle.cast(onnx_case(dtype, "float32", first), bits)
        with pytest.raises(Exception, match=r"(?i)type") as caught:
            oracle.cast(onnx_case(dtype, "float32", first - 1), bits)
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("name", ["ort", "onnx"])
    @pytest.mark.parametrize("pair", [("complex64", "float32"), ("float32", "complex128")])
    def test_complex_is_rejected_by_the_framework(self, name: str, pair: tuple[str, str]) -> None:
        oracle = ADAPTERS[name].make()
        with pytest.raises(Exception, match="complex") as caught:
            oracle.cast(onnx_case(*pair), bits_of(pair[0], [0]))
        assert not isinstance(caught.value, Unsupported)

    @pytest.mark.parametrize("source", ["float32", "float16"])
    @pytest.mark.parametrize("name", ["ort", "onnx"])
    def test_nobody_runs_opset_1(self, name: str, source: str) -> None:
        with pytest.raises(Unsupported):
            ADAPTERS[name].make().cast(onnx_case(source, "int32", 1), bits_of(source, [0]))

    def test_a_missing_kernel_is_unsupported(self) -> None:
        with pytest.raises(Unsupported, match="NOT_IMPLEMENTED"):
            ADAPTERS["ort"].make().cast(onnx_case("float32", "float4e2m1"), bits_of("float32", [0]))

    @pytest.mark.parametrize(
        "pair",
        [
            ("string", "bfloat16"),
            ("string", "float8e4m3fn"),
            ("int4", "string"),
            ("int4", "int2"),
        ],
    )
    def test_a_cast_that_numpy_lacks_is_unsupported(self, pair: tuple[str, str]) -> None:
        bits = bits_of(pair[0], ["1" if pair[0] == "string" else 1])
        for name in ("onnx", "ml_dtypes"):
            with pytest.raises(Unsupported):
                ADAPTERS[name].make().cast(onnx_case(*pair), bits)

    @pytest.mark.parametrize(
        ("name", "reason"), [("ort", "stoll"), ("onnx", "abc"), ("ml_dtypes", "abc")]
    )
    def test_a_text_that_cannot_be_read_is_an_error(self, name: str, reason: str) -> None:
        with pytest.raises(Exception, match=reason) as caught:
            ADAPTERS[name].make().cast(onnx_case("string", "int32"), bits_of("string", ["abc"]))
        assert not isinstance(caught.value, Unsupported)

    def test_a_text_that_cannot_be_read_is_not_folded(self) -> None:
        with pytest.raises(Unsupported, match="did not fold"):
            ADAPTERS["ort"].make("folded").cast(
                onnx_case("string", "int32"), bits_of("string", ["abc"])
            )


class TestVariants:
    @pytest.mark.parametrize("name", ADAPTERS)
    def test_an_unknown_variant_names_the_known_ones(self, name: str) -> None:
        adapter = ADAPTERS[name]
        adapter.make()
        with pytest.raises(Unsupported, match="no variant `nonsense`") as caught:
            adapter.make("nonsense")
        assert all(variant in str(caught.value) for variant in adapter.load().VARIANTS)

    @pytest.mark.parametrize("name", ADAPTERS)
    def test_a_missing_package_names_its_extra(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        adapter = ADAPTERS[name]
        for package in adapter.packages:
            monkeypatch.setitem(sys.modules, package, None)
            with pytest.raises(NotInstalled, match=rf"{package}.*'castigate\[{name}\]'$"):
                getattr(adapter.load(), adapter.class_name)()
            monkeypatch.undo()

    def test_nothing_is_imported_before_it_is_asked(self) -> None:
        script = "import sys\n" + "".join(
            f"import oracles.adapters.{adapter.module}\n" for adapter in ADAPTERS.values()
        )
        script += "print({'torch', 'onnx', 'onnxruntime', 'ml_dtypes'} & set(sys.modules))"
        assert run_script(script) == ["set()"]

    def test_a_cast_that_was_not_folded_is_unsupported(self) -> None:
        oracle = ADAPTERS["ort"].make("folded")
        real = oracle._ort
        levels = SimpleNamespace(
            ORT_DISABLE_ALL=real.GraphOptimizationLevel.ORT_DISABLE_ALL,
            ORT_ENABLE_BASIC=real.GraphOptimizationLevel.ORT_DISABLE_ALL,
        )
        oracle._ort = SimpleNamespace(
            SessionOptions=real.SessionOptions,
            InferenceSession=real.InferenceSession,
            GraphOptimizationLevel=levels,
        )
        with pytest.raises(Unsupported, match="did not fold"):
            oracle.cast(onnx_case("float32", "float16"), bits_of("float32", [0]))

    def test_the_cpu_does_not_answer_for_another_provider(self) -> None:
        pytest.importorskip("onnxruntime")
        providers = importlib.import_module("onnxruntime").get_available_providers()
        if "AzureExecutionProvider" not in providers:
            pytest.skip("only a provider without kernels shows it")
        with pytest.raises(Unsupported, match="fallback to CPU EP"):
            ADAPTERS["ort"].make("azure").cast(onnx_case("int8", "int16"), bits_of("int8", [1]))

    def test_onnxruntime_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        for variant in (None, "folded"):
            oracle = ADAPTERS["ort"].make(variant)
            for target in ("complex64", "float4e2m1", "string", "int8"):
                for version in (1, 6, 25):
                    with suppress(Exception):
                        oracle.cast(onnx_case("float16", target, version), bits_of("float16", [0]))
        assert capfd.readouterr() == ("", "")


class TestPacking:
    @given(
        st.integers(1, 8).flatmap(
            lambda bits: st.tuples(st.just(bits), st.lists(st.integers(0, (1 << bits) - 1)))
        )
    )
    def test_round_trip(self, drawn: tuple[int, list[int]]) -> None:
        bits, codes = drawn
        packed = pack(np.array(codes, np.uint8), bits)
        assert packed.size == -(-len(codes) * bits // 8)
        assert unpack(packed, len(codes), bits).tolist() == codes

    def test_low_bits_come_first(self) -> None:
        assert pack(np.array([0x1, 0xF, 0x7], np.uint8), 4).tolist() == [0xF1, 0x07]
        assert pack(np.array([1, 2, 3, 0, 2], np.uint8), 2).tolist() == [0b00_11_10_01, 0b10]
        assert unpack(np.array([0xF1, 0x07], np.uint8), 3, 4).tolist() == [0x1, 0xF, 0x7]


def run_script(script: str) -> list[str]:
    """What a script prints, line by line."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]
SCRIPTS: list[tuple[Road, Case, list[Any]]] = [
    (("ort", None), onnx_case("float32", "float8e4m3fn", 19, saturate="0"), FLOATS),
    (("ort", None), onnx_case("int4", "uint2"), list(range(16)) * 3),
    (("ort", None), onnx_case("string", "bfloat16"), ["1.5", "-inf", "1e3"]),
    (("ort", None), onnx_case("float16", "string", 13), [0x3E00, 0x7C00]),
    (("ort", "folded"), onnx_case("float32", "float8e8m0", round_mode="down"), FLOATS[:1] * 9),
    (("ort", "folded"), onnx_case("uint4", "float64", 21), [1, 15, 8]),
    (("ort", "folded"), onnx_case("string", "int64"), ["-7"]),
    (("onnx", None), onnx_case("float32", "float4e2m1"), FLOATS),
    (("onnx", None), onnx_case("int4", "int8"), list(range(16))),
    (("onnx", None), onnx_case("string", "float32", 9), ["1.5", "2"]),
    (("onnx", None), onnx_case("bool", "string"), [0, 1]),
    (("torch", None), onnx_case("float32", "bfloat16"), FLOATS),
    (("torch", None), onnx_case("complex128", "float8e5m2"), [0x3FF8 << 48, 1 << 127]),
    (("torch", None), onnx_case("bool", "complex128"), [0, 1]),
    (("ml_dtypes", None), onnx_case("float32", "float6e2m3"), FLOATS),
    (("ml_dtypes", None), onnx_case("int2", "complex128"), [0, 1, 2, 3]),
    (("ml_dtypes", None), onnx_case("string", "float64"), ["1.5", "nan"]),
    (("ml_dtypes", None), onnx_case("float16", "string"), [0x3E00]),
]


@pytest.mark.parametrize(
    ("road", "case", "patterns"), SCRIPTS, ids=[f"{row[0][0]}-{row[1].id}" for row in SCRIPTS]
)
def test_a_reproduction_prints_the_same_answers(road: Road, case: Case, patterns: Any) -> None:
    oracle, bits = ADAPTERS[road[0]].make(road[1]), bits_of(case.source, patterns)
    script = oracle.reproduce(case, bits)
    expected = list(zip(patterns, patterns_of(oracle.cast(case, bits)), strict=True))
    printed = [tuple(read(side) for side in line.split(" -> ")) for line in run_script(script)]
    assert printed == expected
    assert "castigate" not in script
    assert max(map(len, script.splitlines())) <= 100


def read(side: str) -> Any:
    """A printed pattern: a hex number, or a text's repr."""
    return int(side, 16) if side.startswith("0x") else side[1:-1]
