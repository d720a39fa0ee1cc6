"""torch's devices by name, asked of a device that ``planted_torch_device`` registers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from oracles.adapters.torch import Torch
from oracles.adapters.torch_devices import FallbackWatch
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Unsupported
from tests.adapters.common import bits_of, layouts, onnx_case, patterns_of
from tests.conformance.processes import castigate

MODULE = "tests.adapters.planted_torch_device"
PLANTED = f"torch:planted,import={MODULE}"
ABOVE_ONE = 0x3F808001
"""The float32 above the middle of 1 and the next bfloat16: 0x3f80 truncated, 0x3f81 rounded."""


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    """The device in a process of its own, because torch registers it for good."""
    backend = load_isolated(PLANTED, LaunchConfig())
    yield backend.oracle
    close(backend)


def test_a_device_answers_under_its_name_and_version(device: Any) -> None:
    assert re.fullmatch(rf"2\.\S+, {MODULE} 0\.1", device.version)
    answer = device.cast(onnx_case("float32", "bfloat16"), bits_of("float32", [ABOVE_ONE]))
    assert patterns_of(answer) == [0x3F80]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("float16", "the device left this to the CPU, which ran aten::copy_"),
        ("int8", "the tensor lies on cpu, not on planted"),
        ("float64", "planted has no cast to torch.float64"),
    ],
)
def test_what_the_device_did_not_compute_is_unsupported(
    device: Any, target: str, reason: str
) -> None:
    for _ in range(2):  # as often as it is asked
        with pytest.raises(Unsupported, match=f"^{reason}$"):
            device.cast(onnx_case("float32", target), bits_of("float32", [ABOVE_ONE]))


@pytest.mark.parametrize("layout", ["reversed", "read-only", "offset"])
def test_a_device_gets_any_layout(device: Any, layout: str) -> None:
    bits = layouts(bits_of("float32", [0x3F800000 + 0x10000 * n for n in range(12)]))[layout]
    answer = device.cast(onnx_case("float32", "bfloat16"), bits)
    assert patterns_of(answer) == [pattern >> 16 for pattern in patterns_of(bits)]


def test_a_script_registers_the_device(device: Any) -> None:
    script = device.reproduce(onnx_case("float32", "bfloat16"), bits_of("float32", [ABOVE_ONE]))
    assert f"\nimport {MODULE}\n" in script
    assert '.view(torch.float32).to("planted")\ny = x.to(torch.bfloat16)\n' in script


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("planted,to=cpu", '.to("planted")\ny = x.to("cpu", torch.bfloat16)'),
        ("cpu,to=planted", '.to("cpu")\ny = x.to("planted", torch.bfloat16)'),
    ],
)
def test_a_copy_to_another_device_casts(words: str, steps: str) -> None:
    backend = load_isolated(f"torch:{words},import={MODULE}", LaunchConfig())
    try:
        case, bits = onnx_case("float32", "bfloat16"), bits_of("float32", [ABOVE_ONE])
        oracle: Any = backend.oracle
        assert patterns_of(oracle.cast(case, bits)) == [0x3F80]
        assert steps in oracle.reproduce(case, bits)
        with pytest.raises(Unsupported, match=f"^torch:{words},import={MODULE} casts; "):
            oracle.bitcast(case, bits)
    finally:
        close(backend)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "nonsense",
            "torch has no variant `nonsense`; its variants are .*, its devices here are cp",
        ),
        ("xpu:9", r"torch \S+ sees no device `xpu:9`; devices here are cpu.*import=MODULE$"),
        ("cpu,to=xpu:9", r"torch \S+ sees no device `xpu:9`; devices here are cpu"),
        ("meta", "torch's device `meta` holds no values; devices here are cpu"),
        ("cpu,compile", "torch:cpu,compile must begin with one device, such as torch:cuda:1"),
        ("cpu,form=numpy", "torch has no option `form`; its options are import, to"),
        ("cpu,import=no.such", "import=no.such: No module named 'no'; PYTHONPATH must have its"),
    ],
)
def test_a_wrong_device_says_which_there_are(words: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=f"^{reason}"):
        Torch(words)


def test_the_cpu_may_be_named_as_a_device() -> None:
    answer = Torch("cpu").cast(onnx_case("float32", "float16"), bits_of("float32", [0x3F800000]))
    assert patterns_of(answer) == [0x3C00]


def test_torchs_own_fallback_is_seen() -> None:
    """A fallback copies all tensors of an operation to the CPU by ``_to_cpu``."""
    torch = Torch().names["torch"]
    with pytest.raises(Unsupported, match=r"left this to the CPU, which ran aten::_to_cpu$"):
        FallbackWatch(torch).call(lambda: torch.ops.aten._to_cpu([torch.ones(2)]))


def test_one_command_finds_the_planted_cast() -> None:
    case = "onnx-cast:25/float32/bfloat16"
    _, out, err = castigate("explain", case, hex(ABOVE_ONE), f"--backend={PLANTED}")
    assert out.startswith(f"{case} of about 1.0039064: 1.0078125 is recommended\n"), err
    assert re.search(rf"^  {re.escape(PLANTED)} 0x3f80 .* 1$", out, re.M)
