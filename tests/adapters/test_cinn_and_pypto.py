"""CINN and pypto, which are hardly ever installed: the adapters against stand-ins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.adapters import cinn, pypto
from oracles.protocol import NotInstalled, Unsupported
from oracles.registry import Backend
from specs.case_calls import call_of
from specs.cases import Case
from specs.selection import case_named, select
from tests.adapters.common import bits_of, onnx_case
from tests.adapters.contract_road import skip_unless_installed

HALVES = [0x3FC00000, 0xC0000000]
PASSED = ("conforms", "open")


class TestCinn:
    def test_without_paddle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "paddle", None)
        with pytest.raises(NotInstalled, match=r"^no published wheel .* -DWITH_CINN=ON$"):
            cinn.Cinn()

    def test_a_paddle_without_cinn_never_stands_in_for_it(self) -> None:
        skip_unless_installed("paddle")
        paddle = cinn.load_paddle()
        if paddle.is_compiled_with_cinn():
            assert cinn.Cinn().version == paddle.__version__
            return
        with pytest.raises(NotInstalled, match="build paddle from source"):
            cinn.Cinn()

    def test_a_cast_goes_through_to_static_with_the_backend_cinn(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A paddle without CINN accepts the backend's name and answers itself; this shows requests.
        skip_unless_installed("paddle")
        paddle = cinn.load_paddle()
        monkeypatch.setattr(paddle, "is_compiled_with_cinn", lambda: True)
        backends, to_static = [], paddle.jit.to_static

        def spying(function: Any, **options: Any) -> Any:
            backends.append(options["backend"])
            return to_static(function, **options)

        monkeypatch.setattr(paddle.jit, "to_static", spying)
        oracle, case = cinn.Cinn(), onnx_case("float32", "float16")
        bits = bits_of("float32", HALVES)
        assert oracle.cast(case, bits).tolist() == [0x3E00, 0xC000]
        assert oracle.bind(case, bits)().tolist() == [0x3E00, 0xC000]
        assert backends == ["CINN"]
        assert oracle.road(case) == "float32->float16"
        assert oracle.identity("float32", bits).tolist() == HALVES
        assert "backend='CINN'" in oracle.reproduce(case, bits)
        for refused in (onnx_case("float32", "int4"), onnx_case("int8", "int8", mode="CAST_ODD")):
            with pytest.raises(Unsupported):
                oracle.road(refused)
        with pytest.raises(Unsupported, match=r"no variant `jit`; it has none$"):
            cinn.Cinn("jit")


class Variable:
    """A variable of the stand-in builder; ``compute`` returns its value when the program runs."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


class Builder:
    """A stand-in for CINN's builders, written from CINN's designs; numpy computes."""

    requests: ClassVar[list[Any]] = []
    feed: Any = None

    def __init__(self, name: str) -> None:
        self.requests.append((type(self).__name__, name))

    def create_input(self, dtype: Any, shape: Any, name: str) -> Variable:
        self.requests.append((dtype, tuple(shape), name))
        return Variable(lambda: self.feed)

    def cast(self, A: Any, dtype: Any, name: str = "") -> Variable:
        self.requests.append(("cast", dtype, name))
        return Variable(lambda: convert(A.compute(), dtype))

    def bitcast_convert(self, A: Any, dytpe: str) -> Variable:
        self.requests.append(("bitcast_convert", dytpe))
        return Variable(lambda: bitcast(A.compute(), np.dtype(dytpe)))

    def build(self) -> Builder:
        return self

    def build_and_get_output(
        self, target: str, inputs: list[Any], feeds: list[Any], outputs: list[Any], **options: Any
    ) -> list[Any]:
        assert options == {"passes": [], "scope": None}
        [self.feed] = feeds
        [output] = outputs
        array = output.compute()
        return [SimpleNamespace(numpy=lambda where: {target: array}[where])]


def convert(array: Any, dtype: Any) -> Any:
    """Convert as numpy does, without its warnings about NaNs and overflow."""
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def bitcast(array: Any, dtype: Any) -> Any:
    """Bitcast as the design says: narrower elements add a dimension."""
    if dtype.itemsize < array.dtype.itemsize:
        return array.reshape(*array.shape, 1).view(dtype)
    return array.view(dtype)


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let paddle report CINN, and provide a CINN with the designs' builders."""
    skip_unless_installed("paddle")
    paddle = cinn.load_paddle()
    monkeypatch.setattr(paddle, "is_compiled_with_cinn", lambda: True)
    monkeypatch.setattr(Builder, "requests", [])
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


def call(name: str, bits: Any) -> Any:
    """Make a case's call on CINN."""
    case = case_named(name)
    return cinn.Cinn().call(case, call_of(case), {"": bits})


class TestBuilders:
    def test_a_bitcast_is_a_program_of_one_operator(self, builders: Any) -> None:
        case = Case("cinn-bitcast-convert", "1.0", "float32", "float16", (("shape", "3"),))
        answer = cinn.Cinn().bitcast(case, bits_of("float32", [ONE, 0, 1]))
        assert answer.tolist() == [[0, 0x3F80], [0, 0], [1, 0]]
        assert answer.dtype == np.uint16
        assert Builder.requests == [
            ("NetBuilder", "castigate"),
            ("float32", (3,), "A1"),
            ("bitcast_convert", "float16"),
        ]

    def test_bitcasts_conform(self, builders: Any) -> None:
        oracle = cinn.Cinn()
        backend_judge = BackendJudge(Backend("cinn", oracle), {}, Settings())
        for name in (
            "cinn-bitcast-convert:1.0/float32/float16/shape:10/example:worked-example",
            "cinn-bitcast-convert:1.0/int32/float32/shape:10/example:shown-call",
            "cinn-bitcast-convert:1.0/float64/float32/shape:scalar",
        ):
            assert backend_judge.judge(case_named(name)).verdict == "conforms", name

    def test_a_bitcast_that_keeps_the_rank_violates(
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
        returned = call(f"cinn-cast-calls:1.0/int32/float32/form:{form}", bits_of("int32", [1, 0]))
        assert (returned.is_receiver, returned.shares_memory) == (False, False)
        tensor = returned.tensors[""]
        assert (tensor.dtype, tensor.device, tensor.bits.tolist()) == ("float32", "cpu", [ONE, 0])
        assert returned.receiver[""].bits.tolist() == [1, 0]
        name = "out" if form in ("all-keywords", "in-full") else ""
        assert Builder.requests[-1] == ("cast", "float32", name)

    def test_a_call_uses_its_builder_class(self, builders: Any) -> None:
        call("cinn-cast-calls:1.0/int32/bool/form:base-builder", bits_of("int32", [1, 0]))
        assert Builder.requests[0] == ("BaseBuilder", "castigate")

    @pytest.mark.parametrize("document", ["cinn-cast-calls", "cinn-bitcast-calls"])
    def test_a_builder_that_follows_the_page_passes_every_call(
        self, builders: Any, document: str
    ) -> None:
        backend_judge = BackendJudge(Backend("cinn", cinn.Cinn()), {}, Settings(max_examples=20))
        verdicts = {case.id: backend_judge.judge(case).verdict for case in select([document])}
        wrong = {name: verdict for name, verdict in verdicts.items() if verdict not in PASSED}
        assert wrong == {}

    @pytest.mark.parametrize(
        ("case", "message"),
        [
            ("paddle-tensor-to:1.0/float32/float64/form:name", "CINN has no tensor"),
            ("cinn-cast-calls:1.0/int64/bool/form:dtype", "CINN's net-builder has no method cast"),
        ],
    )
    def test_a_receiver_or_method_that_cinn_lacks_is_unsupported(
        self, builders: Any, monkeypatch: pytest.MonkeyPatch, case: str, message: str
    ) -> None:
        monkeypatch.delattr(Builder, "cast")
        with pytest.raises(Unsupported, match=f"^{message}"):
            call(case, np.zeros(2, np.uint32 if "float32" in case else np.uint64))

    def test_a_type_or_operator_that_cinn_lacks_is_unsupported(
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
    """A kernel's output, as far as the adapter uses it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def move(self, value: Any) -> None:
        self.tensor.copy_(value)


@pytest.fixture
def ascend(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Provide what the adapter needs of a host with pypto, and record its requests."""
    torch = pytest.importorskip("torch")
    dtypes = {"DT_FP32": torch.float32, "DT_INT32": torch.int32, "DT_INT64": torch.int64}
    requests: list[Any] = []

    def jit(runtime_options: dict[str, Any]) -> Any:
        requests.append(runtime_options)
        return lambda kernel: (
            lambda x, y: (
                requests.append(kernel.__annotations__),
                kernel(x, Output(y)),
            )
        )

    def cast(x: Any, dtype: Any, mode: Any) -> Any:
        requests.append(mode)
        return x.to(dtype)

    host = SimpleNamespace(
        **dtypes,
        CastMode=SimpleNamespace(CAST_NONE="none", CAST_FLOOR="floor"),
        RunMode=SimpleNamespace(NPU="npu"),
        STATIC="static",
        Tensor=lambda shape, dtype: (shape, dtype),
        frontend=SimpleNamespace(jit=jit),
        set_vec_tile_shapes=lambda *tile: requests.append(tile),
        cast=cast,
        requests=requests,
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
    def test_without_its_packages_it_is_not_installed(
        self, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        pytest.importorskip("torch")
        for name in ("pypto", "torch_npu"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(NotInstalled, match=r"^pypto is used only on a host with Ascend"):
            pypto.Pypto()

    def test_without_an_ascend_processor_it_is_not_installed(
        self, ascend: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        npu = SimpleNamespace(is_available=lambda: False)
        monkeypatch.setattr(ascend.torch, "npu", npu, raising=False)
        with pytest.raises(NotInstalled, match=r"^pypto is used only on a host with Ascend"):
            pypto.Pypto()

    def test_no_advice_offers_to_install_it(self) -> None:
        assert "pip install" not in pypto.ADVICE

    def test_a_kernel_holds_one_cast(self, ascend: SimpleNamespace) -> None:
        oracle = pypto.Pypto()
        assert oracle.version == "0 of pypto"
        case = pypto_case("float32", "int32", mode="CAST_FLOOR")
        bits = np.array([HALVES], np.uint32)
        bits.flags.writeable = False
        assert oracle.cast(case, bits).tolist() == [[1, 0xFFFFFFFE]]
        options, annotations, tile, mode = ascend.requests
        assert options == {"run_mode": "npu"}
        assert annotations["x"] == (["static"] * 2, ascend.torch.float32)
        assert annotations["y"] == (["static"] * 2, ascend.torch.int32)
        assert (len(tile), mode) == (2, "floor")

    def test_the_road_is_the_pair_and_the_mode(self, ascend: SimpleNamespace) -> None:
        oracle = pypto.Pypto()
        assert oracle.road(pypto_case("float32", "int32")) == "float32->int32, CAST_NONE"
        floor = pypto_case("float32", "int32", mode="CAST_FLOOR", satmode="off")
        assert oracle.road(floor) == "float32->int32, CAST_FLOOR"
        assert oracle.identity("float32", bits_of("float32", HALVES)).tolist() == HALVES

    def test_a_dtype_or_mode_that_pypto_lacks_is_unsupported(self, ascend: SimpleNamespace) -> None:
        oracle, bits = pypto.Pypto(), bits_of("float32", HALVES)
        for case, message in (
            (pypto_case("float32", "float8e5m2"), "has no dtype float8e5m2$"),
            (pypto_case("int64", "int32", satmode="on"), "^how satmode is given"),
        ):
            for ask in (oracle.road, lambda case: oracle.cast(case, bits)):
                with pytest.raises(Unsupported, match=message):
                    ask(case)
        with pytest.raises(Unsupported, match=r"has no dtype bool$"):
            oracle.identity("bool", bits_of("bool", [1]))
        with pytest.raises(Unsupported, match=r"it has none$"):
            pypto.Pypto("sim")
