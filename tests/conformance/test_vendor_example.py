"""The example adapter runs as its README says, and keeps bits, layouts and ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.protocol import Unsupported
from oracles.registry import load_backend
from oracles.smoke_check import smoke
from specs.selection import case_named

EXAMPLE = Path(__file__).parents[2] / "examples" / "vendor_python"
BACKEND = "adapter.py:NumpyCast"


@pytest.fixture(scope="module")
def backend() -> Any:
    return load_backend(str(EXAMPLE / BACKEND))


def test_it_moves_bits_unchanged(backend: Any) -> None:
    assert smoke(backend) == {}
    assert backend.version == np.__version__
    assert [str(claim) for claim in backend.claimed] == ["onnx-cast"]


VERDICTS = {
    "onnx-cast:25/float64/float32": "conforms",
    "onnx-cast:25/float32/float16": "conforms",
    "onnx-cast:25/float16/int8": "conforms",
    "onnx-cast:25/int64/uint8": "conforms",
    "onnx-cast:25/float16/bool": "conforms",
    "onnx-cast:25/bool/float64": "conforms",
    "onnx-cast:25/int16/int8/example:discarded-bits": "conforms",
    "onnx-cast:25/float32/bfloat16": "unsupported",
    "onnx-cast:25/string/float32": "unsupported",
    "pypto-cast:0.2/float32/float16/mode:CAST_ROUND": "unsupported",
}


@pytest.mark.parametrize("case", VERDICTS)
def test_numpy_does_what_the_document_says_or_opts_out(backend: Any, case: str) -> None:
    found = BackendJudge(backend, smoke(backend), Settings(max_examples=200)).judge(
        case_named(case)
    )
    assert found.verdict == VERDICTS[case], found


def test_layout_and_rank_are_kept(backend: Any) -> None:
    case = case_named("onnx-cast:25/float16/float32")
    bits = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)
    for given in (bits, bits.T, bits[:, ::2], bits[0, 0, 0], bits[:0]):
        answer = backend.oracle.cast(case, np.asarray(given))
        assert (answer.dtype, answer.shape) == (np.dtype(np.uint32), given.shape)
    with pytest.raises(Unsupported, match="astype takes no saturate"):
        backend.oracle.cast(case_named("onnx-cast:25/float16/float8e5m2/saturate:1"), bits)


def test_the_command_of_its_readme_runs() -> None:
    readme = (EXAMPLE / "README.md").read_text()
    options = f"--backend={BACKEND} --document onnx-cast:25"
    assert f"$ pytest --pyargs conformance {options}\n" in readme
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "conformance"]
    done = subprocess.run(
        [*command, *options.split(), "-k", "onnx-cast:25/float32/float16"],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
