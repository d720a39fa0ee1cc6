"""An ONNX runtime behind a command: each request is run as a model, and its output is judged."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.judgement import Judgement
from specs.formats import format_named
from specs.selection import case_named

EXAMPLE = Path(__file__).parents[2] / "examples" / "vendor_onnx"
TIES = """\
import sys
import onnx
from onnx import numpy_helper

model, source, target = sys.argv[1:]
[node] = onnx.load(model).graph.node
x = numpy_helper.to_array(onnx.load_tensor(source))
print("rounds half away", file=sys.stderr)
with __import__("numpy").errstate(all="ignore"):
    y = (x + 0.5 * (x > 0)).astype("int8")
onnx.save_tensor(numpy_helper.from_array(y), target)
"""
# Three elements each, so that packed elements do not fill the last byte.
KNOWN: dict[str, tuple[list[object], list[object]]] = {
    "onnx-cast:25/float32/float16": (
        [0x3F800000, 0x477FF000, 0xB3000001],
        [0x3C00, 0x7C00, 0x8001],
    ),
    "onnx-cast:25/int4/float16": ([0x7, 0x8, 0xF], [0x4700, 0xC800, 0xBC00]),
    "onnx-cast:25/float16/uint4": ([0x3C00, 0x4700, 0x4B80], [1, 7, 15]),
    "onnx-cast:25/int2/int8": ([0, 1, 2], [0, 1, 0xFE]),
    "onnx-cast:25/int8/string": ([0, 0x7F, 0x80], ["0", "127", "-128"]),
    "onnx-cast:9/string/float32": (["1.5", "-INF", "1e3"], [0x3FC00000, 0xFF800000, 0x447A0000]),
}


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[list[Backend]]:
    """A list of backends that are closed after the test."""
    loaded: list[Backend] = []
    yield loaded
    for backend in loaded:
        close(backend)


def load(backends: list[Backend], runner: Path) -> Backend:
    pytest.importorskip("onnx")
    command = [sys.executable, str(EXAMPLE / "program.py"), sys.executable, str(runner)]
    backends.append(load_isolated(f"exec:{shlex.join(command)}", LaunchConfig(seconds=60)))
    return backends[-1]


def bits_of(dtype: str, values: list[object]) -> Bits:
    return np.array(values, format_named(dtype).storage)


def test_the_answers_of_a_correct_runtime_arrive_unchanged(backends: list[Backend]) -> None:
    oracle = load(backends, EXAMPLE / "run_reference.py").oracle
    for name, (inputs, answers) in KNOWN.items():
        case = case_named(name)
        found = oracle.cast(case, bits_of(case.source, inputs))
        assert found.tolist() == answers, name


@pytest.mark.nightly
def test_a_bitcast_is_asked_of_the_runtime(backends: list[Backend]) -> None:
    oracle: Any = load(backends, EXAMPLE / "run_reference.py").oracle
    case = case_named("onnx-bitcast:26/float16/int16/shape:2x1")
    bits = np.array([[0x3C00], [0xFC00]], np.uint16)
    assert (oracle.bitcast(case, bits) == bits).all()


def test_a_runtime_that_rounds_half_away_is_caught(backends: list[Backend], tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text(TIES)
    backend = load(backends, tmp_path / "runner.py")
    found = judge(backend, "onnx-cast:25/float16/int8")
    assert found.verdict == "deviates"
    assert [divergence.rule for divergence in found.divergences] == ["float-to-integer"]
    assert b"rounds half away" in backend.oracle.log.content  # type: ignore[attr-defined]


def judge(backend: Backend, case: str) -> Judgement:
    return BackendJudge(backend, {}, Settings(max_examples=10)).judge(case_named(case))


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("runner", "message"),
    [
        ("pass", "Error: the command ended with 0"),
        ("raise SystemExit('no kernel')", "Error: no kernel"),
        ("open(__import__('sys').argv[3], 'w').write('?')", "DecodeError: "),
    ],
)
def test_a_missing_or_malformed_output_is_an_error(
    backends: list[Backend], tmp_path: Path, runner: str, message: str
) -> None:
    (tmp_path / "runner.py").write_text(runner)
    found = judge(load(backends, tmp_path / "runner.py"), "onnx-cast:25/int8/int16")
    assert found.verdict == "error"
    assert message in found.message
