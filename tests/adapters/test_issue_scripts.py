"""The script of every issue runs without this project, and shows what the issue says."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.registry import load_backend
from reports.findings.issue_text import requirements_of, script_or_command
from reports.findings.read_findings import read_findings
from tests.reports.judged_run import cases_of, run_of
from tests.reports.script_checks import what_is_wrong

PACKAGES = {"ort": "onnxruntime"}
"""The package of a backend, where it has another name."""
NEEDED = {
    "ort": ["onnxruntime", "numpy", "onnx"],
    "onnx": ["onnx", "numpy"],
    "torch": ["torch", "numpy"],
    "paddle": ["paddlepaddle", "numpy"],
    "jax": ["jax", "numpy"],
}
"""The packages that an issue tells its reader to install."""
MOST_LINES = 19
"""Lines of a script without its comments: of most scripts there are 8 to 14."""
CASES = {
    "ort": (
        "onnx-cast:25/uint16/float8e4m3fn/saturate:0",
        "onnx-cast:25/float8e8m0/string",
        "onnx-cast:25/float8e8m0/uint2",
        "onnx-cast:25/float8e5m2/float8e5m2/saturate:1",
        "onnx-cast:25/string/float8e5m2fnuz/saturate:0",
        "onnx-cast:25/string/float32",
        "onnx-cast:24/string/uint2",
        "pypto-cast:0.2/float16/uint8/mode:CAST_NONE/satmode:on",
        "xla-bitcast-convert:2023/float32/float16/shape:2x2",
    ),
    "onnx": (
        "onnx-cast:25/bool/float8e8m0/saturate:1/round_mode:up",
        "onnx-cast:25/string/float8e8m0/saturate:1/round_mode:up",
        "onnx-cast:25/float8e5m2fnuz/float4e2m1",
        "onnx-cast:25/float16/string",
        "onnx-cast:25/uint16/float8e8m0/saturate:1/round_mode:up",
        "xla-bitcast-convert:2023/bool/uint8/shape:3",
        "xla-bitcast-convert:2023/float32/float16/shape:2x2",
    ),
    "torch": (
        "onnx-cast:25/bfloat16/float8e8m0/saturate:0/round_mode:nearest",
        "onnx-cast:25/bool/complex128",
        "torch-module-type:2023/float32/int8/form:dtype/member:weight",
        "torch-module-type:2023/bool/int8/form:dtype/member:scale",
        "torch-tensor-to:2.13/float32/float32/form:number",
        "torch-sharded-tensor-to:2023/float32/int32/form:listed-dtype-in-full",
        "xla-bitcast-convert:2023/complex128/complex64/shape:2x2",
        "xla-bitcast-convert:2023/complex64/uint64/shape:0x1",
    ),
    "paddle": (
        "onnx-cast:25/float8e5m2/float8e4m3fn/saturate:0",
        "paddle-layer-astype:1.0/complex128/complex64/form:name/member:weight",
        "paddle-layer-astype:1.0/float32/float32/form:unknown-keyword/member:inner.scale",
        "paddle-tensor-to:1.0/float32/float32/form:other-too-many",
        "paddle-tensor-to:1.0/complex128/uint16/form:name",
        "torch-sharded-tensor-to:2023/bool/bool/form:listed-other-copy",
        "torch-sharded-tensor-to:2023/bool/bool/form:listed-device-copy",
        "xla-bitcast-convert:2023/complex128/complex64/shape:2x2",
    ),
    "jax": (
        "onnx-bitcast:26/uint4/uint2/shape:3",
        "onnx-cast:25/bool/complex128",
        "onnx-cast:25/float4e2m1/uint4",
        "xla-bitcast-convert:2023/complex128/complex64/shape:2x2",
    ),
}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("backend", CASES)
def test_every_finding_has_a_script_that_shows_it(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES.get(backend, backend))
    cases = [case for name in CASES[backend] for case in cases_of(name)]
    store = run_of(tmp_path / "run", [load_backend(backend)], cases)
    findings = read_findings(store)[backend]
    assert len(findings) > 2
    for each in findings:
        script = script_or_command(each)
        assert script
        assert "castigate" not in script
        lines = [line for line in script.splitlines() if line and not line.startswith("#")]
        assert len(lines) <= MOST_LINES
        assert what_is_wrong(each.simplest, script) == "", each.id
        framework, *others = requirements_of(script)
        name, version = framework.split("==")
        assert load_backend(backend).version.startswith(version)
        assert [name, *others] == NEEDED[backend]
