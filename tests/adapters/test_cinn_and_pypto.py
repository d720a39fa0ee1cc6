"""Two backends that are hardly ever here: CINN, and pypto, which is never installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from conformance.judging.backend_judge import BackendJudge, Settings
from conformance.running.selection import case_named, select
from oracles.adapters import cinn, pypto
from oracles.protocol import NotInstalled, Unsupported
from oracles.registry import Backend
from specs.case_calls import call_of
from specs.cases import Case
from tests.adapters.common import bits_of, onnx_case, skip_without

HALVES = [0x3FC00000, 0xC0000000]
PASSED = ("conforms", "open")


class TestCinn:
    def test_without_paddle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "paddle", None)
        with pytest.raises(NotInstalled, match=r"^no published wheel .* -DWITH_CINN=ON$"):
            cinn.Cinn()

    def test_a_paddle_without_cinn_never_stands_in_for_it(self) -> None:
        skip_without("paddle")
        paddle = cinn.load_paddle()
        if paddle.is_compiled_with_cinn():
            assert cinn.Cinn().version == paddle.__version__
            return
        with pytest.raises(NotInstalled, match="build paddle from source"):
            cinn.Cinn()

    def test_the_road_through_to_static(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Without CINN paddle takes its name and answers itself: enough to see the way there.
        skip_without("paddle")
        paddle = cinn.load_paddle()
        monkeypatch.setattr(paddle, "is_compiled_with_cinn", lambda: True)
        asked, to_static = [], paddle.jit.to_static

        def spying(function: Any, **options: Any) -> Any:
            asked.append(options["backend"])
            return to_static(function, **options)

        monkeypatch.setattr(paddle.jit, "to_static", spying)
        oracle, case = cinn.Cinn(), onnx_case("float32", "float16")
        bits = bits_of("float32", HALVES)
        assert oracle.cast(case, bits).tolist() == [0x3E00, 0xC000]
        assert oracle.bind(case, bits)().tolist() == [0x3E00, 0xC000]
        assert asked == ["CINN"]
        assert oracle.road(case) == "float32->float16"
        assert oracle.identity("float32", bits).tolist() == HALVES
        assert "backend='CINN'" in oracle.reproduce(case, bits)
        for refused in (onnx_case("float32", "int4"), onnx_case("int8", "int8", mode="CAST_ODD")):
            with pytest.raises(Unsupported):
                oracle.road(refused)
        with pytest.raises(Unsupported, match=r"no variant `jit`; it has none$"):
            cinn.Cinn("jit")


class Variable:
    """A variable of a stand-in builder: what it holds once the program runs."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


class Builder:
    """A stand-in for CINN's builders, written from the designs' own side; numpy computes."""

    asked: ClassVar[list[Any]] = []
    fed: Any = None

    def __init__(self, name: str) -> None:
        self.asked.append((type(self).__name__, name))

    def create_input(self, dtype: Any, shape: Any, name: str) -> Variable:
        self.asked.append((dtype, tuple(shape), name))
        return Variable(lambda: self.fed)

    def cast(self, A: Any, dtype: Any, name: str = "") -> Variable:
        self.asked.append(("cast", dtype, name))
        return Variable(lambda: converted(A.compute(), dtype))

    def bitcast_convert(self, A: Any, dytpe: str) -> Variable:
        self.asked.append(("bitcast_convert", dytpe))
        return Variable(lambda: reshaped(A.compute(), np.dtype(dytpe)))

    def build(self) -> Builder:
        return self

    def build_and_get_output(
        self, target: str, inputs: list[Any], feeds: list[Any], outputs: list[Any], **options: Any
    ) -> list[Any]:
        assert options == {"passes": [], "scope": None}
        [self.fed] = feeds
        [output] = outputs
        array = output.compute()
        return [SimpleNamespace(numpy=lambda where: {target: array}[where])]


def converted(array: Any, dtype: Any) -> Any:
    """As numpy converts, which warns of NaNs and of what lies out of range."""
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def reshaped(array: Any, dtype: Any) -> Any:
    """As the design says: one more dimension where elements shrink."""
    if dtype.itemsize < array.dtype.itemsize:
        return array.reshape(*array.shape, 1).view(dtype)
    return array.view(dtype)


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A paddle that says it has CINN, and a CINN that has the designs' builders."""
    skip_without("paddle")
    paddle = cinn.load_paddle()
    monkeypatch.setattr(paddle, "is_compiled_with_cinn", lambda: True)
    monkeypatch.setattr(Builder, "asked", [])
    base, net = type("BaseBuilder", (Builder,), {}), type("NetBuilder", (Builder,), {})
    frontend = SimpleNamespace(BaseBuilder=base, NetBuilder=net)
    common = SimpleNamespace(
        Bool=lambda: "bool",
        Int=lambda bits: f"int{bits}",
        UInt=lambda bits: f"uint{bits}",
        Float=lambda bits: f"float{bits}",
        DefaultHostTarget=lambda: "host",
    )
    for name, module in (("", ModuleType("")), (".frontend", frontend), (".common", common)):
        monkeypatch.setitem(sys.modules, f"paddle.cinn{name}", module)  # type: ignore[arg-type]
    return frontend


ONE = 0x3F800000


def made(name: str, bits: Any) -> Any:
    case = case_named(name)
    return cinn.Cinn().call(case, call_of(case), {"": bits})


class TestTheBuildersOfCinn:
    def test_a_bitcast_is_a_program_of_one_operator(self, builders: Any) -> None:
        case = Case("cinn-bitcast-convert", "1.0", "float32", "float16", (("shape", "3"),))
        answer = cinn.Cinn().bitcast(case, bits_of("float32", [ONE, 0, 1]))
        assert answer.tolist() == [[0, 0x3F80], [0, 0], [1, 0]]
        assert answer.dtype == np.uint16
        assert Builder.asked == [
            ("NetBuilder", "castigate"),
            ("float32", (3,), "A1"),
            ("bitcast_convert", "float16"),
        ]

    def test_bitcasts_are_judged(self, builders: Any) -> None:
        oracle = cinn.Cinn()
        backend_judge = BackendJudge(Backend("cinn", oracle), {}, Settings())
        for name in (
            "cinn-bitcast-convert:1.0/float32/float16/shape:10/example:worked-example",
            "cinn-bitcast-convert:1.0/int32/float32/shape:10/example:shown-call",
            "cinn-bitcast-convert:1.0/float64/float32/shape:scalar",
        ):
            assert backend_judge.judge(case_named(name)).verdict == "conforms", name

    def test_bits_in_the_shape_that_they_had_are_wrong(
        self, builders: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def scaled(self: Builder, A: Any, dytpe: str) -> Variable:
            return Variable(lambda: A.compute().view(dytpe))

        monkeypatch.setattr(Builder, "bitcast_convert", scaled)
        backend_judge = BackendJudge(Backend("cinn", cinn.Cinn()), {}, Settings())
        name = "cinn-bitcast-convert:1.0/float32/float16/shape:10/example:worked-example"
        found = backend_judge.judge(case_named(name))
        assert (found.verdict, found.faults[0].rule) == ("violates", "narrower")

    @pytest.mark.parametrize("form", ["dtype", "keywords", "all-keywords", "in-full", "sample"])
    def test_a_call_is_made_as_it_is_written(self, builders: Any, form: str) -> None:
        gave = made(f"cinn-cast-calls:1.0/int32/float32/form:{form}", bits_of("int32", [1, 0]))
        assert (gave.is_receiver, gave.shares_memory) == (False, False)
        tensor = gave.tensors[""]
        assert (tensor.dtype, tensor.device, tensor.bits.tolist()) == ("float32", "cpu", [ONE, 0])
        assert gave.receiver[""].bits.tolist() == [1, 0]
        name = "out" if form in ("all-keywords", "in-full") else ""
        assert Builder.asked[-1] == ("cast", "float32", name)

    def test_the_class_is_the_one_that_is_asked_for(self, builders: Any) -> None:
        made("cinn-cast-calls:1.0/int32/bool/form:base-builder", bits_of("int32", [1, 0]))
        assert Builder.asked[0] == ("BaseBuilder", "castigate")

    @pytest.mark.parametrize("document", ["cinn-cast-calls", "cinn-bitcast-calls"])
    def test_every_call_of_a_builder_that_does_as_the_page_says_passes(
        self, builders: Any, document: str
    ) -> None:
        backend_judge = BackendJudge(Backend("cinn", cinn.Cinn()), {}, Settings(max_examples=20))
        verdicts = {case.id: backend_judge.judge(case).verdict for case in select([document])}
        wrong = {name: verdict for name, verdict in verdicts.items() if verdict not in PASSED}
        assert wrong == {}

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            ("paddle-tensor-to:1.0/float32/float64/form:name", "CINN has no tensor"),
            ("cinn-cast-calls:1.0/int64/bool/form:dtype", "CINN's net-builder has no method cast"),
        ],
    )
    def test_what_cinn_does_not_offer(
        self, builders: Any, monkeypatch: pytest.MonkeyPatch, call: str, words: str
    ) -> None:
        monkeypatch.delattr(Builder, "cast")
        with pytest.raises(Unsupported, match=f"^{words}"):
            made(call, np.zeros(2, np.uint32 if "float32" in call else np.uint64))

    def test_types_and_operators_that_are_not_there(
        self, builders: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle, bits = cinn.Cinn(), bits_of("float32", HALVES)
        for target in ("bfloat16", "complex64"):
            case = Case("cinn-bitcast-convert", "1.0", "float32", target, (("shape", "2"),))
            with pytest.raises(Unsupported, match=f"^CINN's builder has no type {target}$"):
                oracle.bitcast(case, bits)
        case = Case("cinn-bitcast-convert", "1.0", "float32", "int32", (("shape", "2"),))
        monkeypatch.delattr(Builder, "bitcast_convert")
        with pytest.raises(Unsupported, match=r"NetBuilder has no bitcast_convert$"):
            oracle.bitcast(case, bits)
        monkeypatch.delattr(builders, "NetBuilder")
        with pytest.raises(Unsupported, match=r"^this CINN has no NetBuilder$"):
            oracle.bitcast(case, bits)
        for package in ("paddle.cinn", "cinn"):
            monkeypatch.setitem(sys.modules, f"{package}.frontend", None)
        with pytest.raises(Unsupported, match="no builder in Python"):
            oracle.bitcast(case, bits)

    def test_an_output_of_another_type_is_an_error(
        self, builders: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Builder, "bitcast_convert", lambda self, A, dytpe: A)
        case = Case("cinn-bitcast-convert", "1.0", "float32", "int32", (("shape", "2"),))
        with pytest.raises(TypeError, match="asked for int32, got float32"):
            cinn.Cinn().bitcast(case, bits_of("float32", HALVES))


class Output:
    """A kernel's output, as far as the adapter knows one."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def move(self, value: Any) -> None:
        self.tensor.copy_(value)


@pytest.fixture
def ascend(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the adapter asks of a host with pypto, written from the adapter's own side."""
    torch = pytest.importorskip("torch")
    dtypes = {"DT_FP32": torch.float32, "DT_INT32": torch.int32, "DT_INT64": torch.int64}
    asked: list[Any] = []

    def jit(runtime_options: dict[str, Any]) -> Any:
        asked.append(runtime_options)
        return lambda kernel: (
            lambda x, y: (
                asked.append(kernel.__annotations__),
                kernel(x, Output(y)),
            )
        )

    def cast(x: Any, dtype: Any, mode: Any) -> Any:
        asked.append(mode)
        return x.to(dtype)

    host = SimpleNamespace(
        **dtypes,
        CastMode=SimpleNamespace(CAST_NONE="none", CAST_FLOOR="floor"),
        RunMode=SimpleNamespace(NPU="npu"),
        STATIC="static",
        Tensor=lambda shape, dtype: (shape, dtype),
        frontend=SimpleNamespace(jit=jit),
        set_vec_tile_shapes=lambda *tile: asked.append(tile),
        cast=cast,
        asked=asked,
        torch=torch,
    )
    monkeypatch.setitem(sys.modules, "pypto", host)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    npu = SimpleNamespace(is_available=lambda: True)
    monkeypatch.setattr(torch, "npu", npu, raising=False)
    monkeypatch.setattr(pypto, "DEVICE", "cpu")
    monkeypatch.setattr(pypto, "version", lambda name: f"0 of {name}")
    return host


def pypto_case(source: str, target: str, **modes: str) -> Case:
    return Case("pypto-cast", "0.2", source, target, tuple(modes.items()))


class TestPypto:
    @pytest.mark.parametrize("missing", ["pypto", "torch_npu"])
    def test_elsewhere_it_is_not_installed(
        self, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        pytest.importorskip("torch")
        for name in ("pypto", "torch_npu"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(NotInstalled, match=r"^pypto is used only on a host with Ascend"):
            pypto.Pypto()

    def test_nor_is_it_without_a_processor(
        self, ascend: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        npu = SimpleNamespace(is_available=lambda: False)
        monkeypatch.setattr(ascend.torch, "npu", npu, raising=False)
        with pytest.raises(NotInstalled, match=r"^pypto is used only on a host with Ascend"):
            pypto.Pypto()

    def test_nothing_offers_to_install_it(self) -> None:
        assert "pip install" not in pypto.ADVICE

    def test_a_kernel_is_made_for_one_cast(self, ascend: SimpleNamespace) -> None:
        oracle = pypto.Pypto()
        assert oracle.version == "0 of pypto"
        case = pypto_case("float32", "int32", mode="CAST_FLOOR")
        bits = np.array([HALVES], np.uint32)
        bits.flags.writeable = False
        assert oracle.cast(case, bits).tolist() == [[1, 0xFFFFFFFE]]
        options, annotations, tile, mode = ascend.asked
        assert options == {"run_mode": "npu"}
        assert annotations["x"] == (["static"] * 2, ascend.torch.float32)
        assert annotations["y"] == (["static"] * 2, ascend.torch.int32)
        assert (len(tile), mode) == (2, "floor")

    def test_roads_and_bits(self, ascend: SimpleNamespace) -> None:
        oracle = pypto.Pypto()
        assert oracle.road(pypto_case("float32", "int32")) == "float32->int32, CAST_NONE"
        floor = pypto_case("float32", "int32", mode="CAST_FLOOR", satmode="off")
        assert oracle.road(floor) == "float32->int32, CAST_FLOOR"
        assert oracle.identity("float32", bits_of("float32", HALVES)).tolist() == HALVES

    def test_refusals(self, ascend: SimpleNamespace) -> None:
        oracle, bits = pypto.Pypto(), bits_of("float32", HALVES)
        for case, words in (
            (pypto_case("float32", "float8e5m2"), "has no dtype float8e5m2$"),
            (pypto_case("int64", "int32", satmode="on"), "^how satmode is given"),
        ):
            for ask in (oracle.road, lambda case: oracle.cast(case, bits)):
                with pytest.raises(Unsupported, match=words):
                    ask(case)
        with pytest.raises(Unsupported, match=r"has no dtype bool$"):
            oracle.identity("bool", bits_of("bool", [1]))
        with pytest.raises(Unsupported, match=r"it has none$"):
            pypto.Pypto("sim")
