"""onnxruntime's execution providers by name, and a plug-in that a test compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oracles.adapters import ort_providers
from oracles.adapters.ort_providers import CPU, NO_FALLBACK, LeftToCpu, Provider, provider_of
from oracles.protocol import Unsupported
from reports.findings.issue_text import requirements_of
from tests.adapters.common import bits_of, onnx_case, patterns_of, run_script
from tests.adapters.contract import make
from tests.conformance.processes import HALF, castigate

SOURCE = Path(__file__).parent / "ort_plugin/truncating.c"
COMPILERS = ("cc", "gcc", "clang")
BETWEEN = 0x3F801FFF
"""A float32 just below the second float16 above one, to which it rounds."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", minversion="1.23")
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        pytest.skip(f"no C compiler is installed: {', '.join(COMPILERS)}")
    made = tmp_path_factory.mktemp("plugin") / "truncating.so"
    command = [compiler, "-std=c11", "-O1", "-shared", "-fPIC", "-w", "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True)
    return made


class TestPlugin:
    def test_one_command_leads_from_its_path_to_the_first_finding(
        self, library: Path, tmp_path: Path
    ) -> None:
        code, out, _ = castigate(
            "run", f"--backend=ort:ep={library}", *HALF, f"--out={tmp_path / 'run'}"
        )
        assert code == 1
        assert "rounds-toward-zero: 1 case, float32 to float16" in out
        assert re.search(
            r"ort:ep=\S+ 1\.\d+\.\d+ with Truncating 0\.1\.0: 1 finding", " ".join(out.split())
        )

    @pytest.mark.parametrize("least", ["1", "2"])
    def test_its_own_kernel_answers(self, library: Path, least: str) -> None:
        oracle = make("ort", f"ep={library},name=Truncating,least={least}")
        for shape in ((1,), (1, 1, 1), ()):
            bits = bits_of("float32", [BETWEEN]).reshape(shape)
            answer = oracle.cast(onnx_case("float32", "float16"), bits)
            assert (answer.shape, patterns_of(answer.reshape(-1))) == (shape, [0x3C00])

    @pytest.mark.parametrize("least", ["1", "2"])
    def test_its_script_runs_alone_and_tells_of_the_neighbor(
        self, library: Path, least: str
    ) -> None:
        oracle = make("ort", f"ep={library},name=Truncating,least={least}")
        case, bits = onnx_case("float32", "float16"), bits_of("float32", [BETWEEN])
        script = oracle.reproduce(case, bits)
        told = ", which takes no lone Cast: an Identity precedes it" if least == "2" else ""
        assert f": {case.id}\n# on Truncating 0.1.0{told}\n" in script
        assert run_script(script) == ["0x3f801fff -> 0x3c00"]

    def test_the_script_says_which_build_to_install(
        self, library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oracle = make("ort", f"ep={library}")
        case, bits = onnx_case("float32", "float16"), bits_of("float32", [BETWEEN])
        monkeypatch.setattr(ort_providers, "distribution", lambda module: f"{module}-npu")
        version = oracle._ort.__version__
        needed = requirements_of(oracle.reproduce(case, bits))
        assert needed == [f"onnxruntime-npu=={version}", "numpy", "onnx"]

    def test_nothing_is_printed(self, library: Path, capfd: pytest.CaptureFixture[str]) -> None:
        oracle = make("ort", f"ep={library},least=2")
        oracle.cast(onnx_case("float32", "float16"), bits_of("float32", [0]))
        with pytest.raises(Unsupported):
            oracle.cast(onnx_case("float32", "int8"), bits_of("float32", [0]))
        assert capfd.readouterr() == ("", "")

    def test_who_leaves_the_cast_to_the_cpu_is_told(self, library: Path, tmp_path: Path) -> None:
        road = f"ort:ep={library},least=3"
        code, out, _ = castigate("run", f"--backend={road}", *HALF, f"--out={tmp_path / 'run'}")
        assert code == 3
        told = "2 unsupported: Truncating leaves Cast to the CPU\n"
        assert f"{road}: {told}" in out

    def test_what_it_does_not_take_is_unsupported_case_by_case(self, library: Path) -> None:
        oracle = make("ort", f"ep={library}")
        for operation, case in (
            ("cast", onnx_case("float32", "int8")),
            ("cast", onnx_case("float64", "float16")),
            ("bitcast", onnx_case("float32", "int32")),
        ):
            with pytest.raises(Unsupported, match=r"^Truncating leaves \w+ to the CPU$"):
                getattr(oracle, operation)(case, bits_of(case.source, [0]))

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ("name=Truncatin", "did you mean `Truncating`"),
            ("device=gpu", "Truncating has no device `gpu`; it has cpu"),
            ("folded", "`folded` of a plug-in is not KEY=VALUE"),
        ],
    )
    def test_what_it_has_not_is_said(self, library: Path, options: str, reason: str) -> None:
        with pytest.raises(Unsupported, match=reason):
            make("ort", f"ep={library},{options}")


def test_what_is_no_plug_in_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"^there is no library `none\.so`; give its path"):
        make("ort", "ep=none.so,name=Npu")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(Unsupported, match=r"^onnxruntime cannot register `.*text\.so`: "):
        make("ort", f"ep={tmp_path / 'text.so'}")


class Pretended(SimpleNamespace):
    """Stands in for a module, which can be hashed."""

    __hash__ = object.__hash__


class Options:
    """Stands in for the options of a session; an entry is set once."""

    graph_optimization_level = log_severity_level = 0

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        assert key not in self.entries
        self.entries[key] = value


def pretended(
    devices: tuple[tuple[str, str], ...] = (), session: Callable[..., Any] = SimpleNamespace
) -> Any:
    """Return an onnxruntime in which a library adds devices: names of provider and of kind."""

    def device(provider: str, kind: str) -> Any:
        own = SimpleNamespace(type=SimpleNamespace(name=kind), vendor="Vendor")
        return SimpleNamespace(ep_name=provider, ep_metadata={}, device=own)

    registered = [device(CPU, "CPU")]

    def register(name: str, library: str) -> None:
        registered.extend(device(*each) for each in devices)

    return Pretended(
        __version__="1.31.1",
        InferenceSession=session,
        SessionOptions=Options,
        get_available_providers=lambda: ["NpuExecutionProvider", CPU],
        get_ep_devices=lambda: [*registered],
        register_execution_provider_library=register,
    )


class TestRoads:
    @pytest.mark.parametrize(
        ("road", "options"),
        [
            ("npu", {}),
            ("npu,device_type=CPU,path=a=b", {"device_type": "CPU", "path": "a=b"}),
            ("NpuExecutionProvider", {}),
        ],
    )
    def test_a_provider_that_is_built_in(self, road: str, options: dict[str, str]) -> None:
        found = provider_of(pretended(), road, ("folded", "cpu"))
        assert found is not None
        assert (found.name, found.options) == ("NpuExecutionProvider", options)
        assert found.version == "1.31.1"

    @pytest.mark.parametrize("road", ["folded", "cpu", "CPUExecutionProvider"])
    def test_the_cpu_is_no_other_provider(self, road: str) -> None:
        assert provider_of(pretended(), road, ("folded", "cpu")) is None

    @pytest.mark.parametrize(
        ("road", "reason"),
        [
            ("npv", "ort has no variant `npv`; its variants are folded, cpu, npu"),
            ("npu,fast", "`fast` of ort:npu,fast is not KEY=VALUE"),
            ("cpu,threads=2", "ort:cpu has no options; leave out `threads`"),
            ("key=value", "ort has no variant ``"),
        ],
    )
    def test_what_is_no_road_is_said(self, road: str, reason: str) -> None:
        with pytest.raises(Unsupported, match=f"^{re.escape(reason)}"):
            provider_of(pretended(), road, ("folded", "cpu"))

    @pytest.mark.parametrize(
        ("devices", "options", "chosen"),
        [
            ((("A", "CPU"), ("A", "GPU")), "device=gpu", ("A", "GPU", 1)),
            ((("A", "CPU"), ("B", "NPU")), "name=B", ("B", "NPU", 0)),
            ((("A", "CPU"), ("A", "GPU")), "", "A has cpu, gpu; add device=cpu"),
            ((("A", "CPU"), ("B", "CPU")), "", "has A, B; add name=A"),
            ((), "", "is registered, but takes none of this machine's devices: CPU of Vendor$"),
        ],
    )
    def test_which_device_of_a_plug_in(
        self, devices: tuple[Any, ...], options: str, chosen: Any, tmp_path: Path
    ) -> None:
        (tmp_path / "lib.so").touch()
        road = ",".join(filter(None, [f"ep={tmp_path / 'lib.so'}", options]))
        if isinstance(chosen, str):
            with pytest.raises(Unsupported, match=chosen):
                provider_of(pretended(devices), road, ())
            return
        found = provider_of(pretended(devices), road, ())
        assert found is not None
        assert (found.name, found.device.device.type.name, found.place) == chosen


class TestPlacement:
    """What a session says of its nodes decides, not only that onnxruntime opened it."""

    @staticmethod
    def provider(*nodes: tuple[str, str], refuses: bool = False) -> tuple[Provider, Any]:
        """Return a provider of a session whose nodes, pairs of operator and provider, are given."""

        def session(content: bytes, options: Any, **more: Any) -> Any:
            if refuses and options.entries[NO_FALLBACK] == "1":
                raise RuntimeError("no fallback")
            return SimpleNamespace(
                get_providers=lambda: ["NpuExecutionProvider", CPU],
                get_provider_graph_assignment_info=lambda: [
                    SimpleNamespace(
                        ep_name=name, get_nodes=partial(list, [SimpleNamespace(op_type=operator)])
                    )
                    for operator, name in nodes
                ],
            )

        found = Provider(pretended(session=session), "NpuExecutionProvider", {})
        options = found.ort.SessionOptions()
        found.prepare(options)
        return found, options

    def test_all_nodes_are_its_own(self) -> None:
        provider, options = self.provider(("Cast", "NpuExecutionProvider"))
        assert provider.open(b"", options) is not None

    @pytest.mark.parametrize("refuses", [True, False])
    def test_a_node_on_the_cpu_is_not_accepted(self, refuses: bool) -> None:
        provider, options = self.provider(("Cast", CPU), refuses=refuses)
        with pytest.raises(LeftToCpu, match=r"^NpuExecutionProvider leaves Cast to the CPU$"):
            provider.open(b"", options)


def test_a_plain_cast_imports_none_of_it() -> None:
    pytest.importorskip("onnxruntime")
    code = (
        "import sys; from oracles.adapters.ort import Ort; Ort();"
        "print([x for x in sys.modules if 'providers' in x or 'road_words' in x])"
    )
    assert run_script(code) == ["[]"]


def test_the_bits_do_not_change_on_the_way(library: Path) -> None:
    oracle = make("ort", f"ep={library}")
    bits = np.array([0x7F800001, 0x80000000], np.uint32)
    assert patterns_of(oracle.identity("float32", bits)) == [0x7F800001, 0x80000000]
