"""Two backends that are hardly ever here: CINN, and pypto, which is never installed."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oracles.adapters import cinn, pypto
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from tests.adapters.common import bits_of, onnx_case, skip_without

HALVES = [0x3FC00000, 0xC0000000]


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
