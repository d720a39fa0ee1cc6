"""The parties of frameworks: which tensors come back unchanged, and which are known to change."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from conformance.extras.containers.findings import MOST_LINES, PartyFault, findings_of
from conformance.extras.containers.parties.parties import PARTIES, TEXT
from conformance.extras.containers.parties.party import container_case
from conformance.extras.containers.ways import Way, storable, ways_of
from oracles.protocol import Unsupported
from oracles.registry import Backend

END = "the end of a script"
EACH = f"""
import sys
for script in sys.argv[1:]:
    exec(script, {{}})
    print("{END}")
"""


def survey(container: str, *names: str) -> tuple[list[Way], list[PartyFault]]:
    backends = []
    for name in (TEXT, *names):
        party = PARTIES[name]
        if party.package:
            pytest.importorskip(party.package)
        module = importlib.import_module(f"conformance.extras.containers.parties.{party.module}")
        backends.append(Backend(name, getattr(module, party.attribute)()))
    ways = ways_of(backends, container, storable())
    return ways, findings_of(backends, ways)


def identical(ways: list[Way], writer: str, reader: str) -> set[str]:
    return {
        way.dtype
        for way in ways
        if (way.writer, way.reader) == (writer, reader) and way.identical and not way.different
    }


def test_raw_data_is_the_same_to_all_that_read_onnx() -> None:
    ways, findings = survey("onnx-raw", "onnx", "onnx_ir", "ort")
    assert findings == []
    assert len(identical(ways, TEXT, "onnx")) == len(identical(ways, "onnx_ir", TEXT)) == 27
    assert identical(ways, "onnx", "ort") >= {"int4", "uint2", "float4e2m1", "bfloat16", "bool"}


def test_typed_data_of_onnx_is_read_right_and_written_through_floats() -> None:
    ways, findings = survey("onnx-typed", "onnx", "onnx_ir", "ort")
    assert {each.party for each in findings} <= {"onnx"}
    assert {each.side for each in findings} <= {"writes"}
    assert len(identical(ways, TEXT, "onnx_ir")) == 27
    assert identical(ways, TEXT, "ort") >= {"int4", "uint2", "float4e2m1", "bfloat16"}


def test_files_of_torch_come_back() -> None:
    ways, findings = survey("torch-save", "torch")
    assert findings == []
    assert identical(ways, "torch", "torch") >= {"bfloat16", "float8e8m0", "complex128", "uint64"}


def test_numpy_writes_its_own_dtypes_and_loses_those_of_ml_dtypes() -> None:
    pytest.importorskip("ml_dtypes")
    ways, findings = survey("npy", "numpy")
    assert len(identical(ways, "numpy", "numpy")) == 14
    assert {each.party for each in findings} == {"numpy"}
    assert all(each.fault.startswith("the dtype becomes ") for each in findings)


def test_dlpack_of_numpy_is_what_the_header_says() -> None:
    ways, findings = survey("dlpack", "numpy")
    assert findings == []
    assert len(identical(ways, "numpy", TEXT)) == len(identical(ways, TEXT, "numpy")) == 14


@pytest.mark.parametrize("container", ["onnx-typed", "npy"])
def test_every_script_runs_alone_and_shows_what_was_read(container: str) -> None:
    pytest.importorskip("ml_dtypes")
    _, findings = survey(container, "onnx" if container == "onnx-typed" else "numpy")
    scripts = [each for each in findings if each.example.script and each.example.reader != TEXT]
    # One process for all of them: most of its time is the import of the framework.
    command = [sys.executable, "-c", EACH, *(each.example.script for each in scripts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for each, printed in zip(scripts, done.stdout.split(END)[:-1], strict=True):
        assert len(each.example.script.splitlines()) <= MOST_LINES
        shown = printed.split()[-1]
        patterns = each.example.read_patterns
        assert shown.startswith(bytes.fromhex(patterns[0][2:])[::-1].hex())


def test_safetensors_of_numpy_ignores_the_layout() -> None:
    pytest.importorskip("safetensors")
    ways, findings = survey("safetensors", "numpy", "torch")
    assert len(identical(ways, TEXT, "torch")) >= 17
    assert {(each.party, each.fault) for each in findings} <= {
        ("numpy", "the memory layout is ignored")
    }


def test_blocks_of_gguf_are_sixteen_elements_apart() -> None:
    pytest.importorskip("gguf")
    for container in ("gguf-q4_0", "gguf-q8_0"):
        ways, findings = survey(container, "gguf")
        assert findings == []
        assert identical(ways, "gguf", TEXT) == identical(ways, TEXT, "gguf") != set()


@pytest.mark.parametrize(
    ("error", "fewest", "is_unsupported"),
    [
        (BufferError, 1, True),
        (RuntimeError, 1, True),
        (RuntimeError, 2, False),
    ],
)
def test_torch_lacks_a_dtype_in_dlpack_if_it_exports_not_one_element(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], fewest: int, is_unsupported: bool
) -> None:
    torch = pytest.importorskip("torch")
    module = importlib.import_module("conformance.extras.containers.parties.torch_party")

    def export(made: Any, **_: Any) -> Any:
        if made.numel() >= fewest:
            raise error("no words that say why; unsupported")
        return torch.utils.dlpack.to_dlpack(made)

    bits = np.array([1, 2, 3], np.uint8)
    monkeypatch.setattr(torch.Tensor, "__dlpack__", export)
    with pytest.raises(Unsupported if is_unsupported else error, match="no words"):
        module.TorchParty().write_container(container_case("dlpack", "int8"), bits)
