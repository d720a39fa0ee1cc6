"""``castigate check`` as people call it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.extras.checkpoints import check
from oracles.registry import load_backend
from tests.conformance.extras.checkpoints.files import brute_force, weights, write_safetensors
from tests.conformance.extras.checkpoints.planted_backends import WRONG
from tests.conformance.processes import castigate, castigate_process

PLANTED = "tests/conformance/extras/checkpoints/planted_backends.py"
ONE_WRONG = f"--backend={PLANTED}:OneWrong"


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask backends in this process, where that is not the point."""
    monkeypatch.setattr(check, "load_all", lambda stack, configs: [*map(load_backend, configs)])


def test_the_first_line_is_the_result(tmp_path: Path) -> None:
    x = weights("bfloat16")
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x, "y": np.ones(5, np.float32)})
    code, out, err = castigate("check", str(path), "--to=e4m3fn")
    changed, elements = brute_force(x, "float8e4m3fn")["changed"], x.size + 5
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == (
        f"{path}: {changed:,} of {elements:,} elements ({100 * changed / elements:.1f}%) change in"
        " value as float8e4m3fn, in 1 of 2 tensors"
    )


def test_backends_in_processes_of_their_own(tmp_path: Path) -> None:
    x = weights("bfloat16").reshape(-1, 1)
    x.view(np.uint16)[5] = WRONG["bfloat16"]
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    asked = ("check", str(path), "--to=e4m3fn", "--backend=reference", ONE_WRONG)
    code, out, err = castigate_process(*asked)
    first, *lines = out.splitlines()
    assert (code, err) == (1, "")
    name = f"{PLANTED}:OneWrong"
    assert first.endswith(
        f"; reference and {name} differ on 1 element; 1 answer of {name} is not allowed"
    )
    at = lines.index(f"backends differ, {name} not allowed: x[5, 0] is 0x3f99 (1.1953125)")
    assert lines[at + 1 : at + 4] == [
        "  allowed 0x3a (1.25)",
        "  reference 0x3a (1.25)",
        f"  {name} 0x3b (1.375)",
    ]


@pytest.mark.usefixtures("_in_this_process")
def test_one_json_object(tmp_path: Path) -> None:
    x = weights("float32")
    x.view(np.uint32)[5] = WRONG["float32"]
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x, "i": np.arange(3)})
    options = ("--to=e4m3fn", "--document=onnx-cast:25", ONE_WRONG, "--json")
    code, out, _ = castigate("check", str(path), *options)
    found: dict[str, Any] = json.loads(out)
    assert (code, found["is_safe"]) == (1, False)
    assert found["total"]["breaking"] == {f"{PLANTED}:OneWrong": 1}
    assert found["decided_by"] == {"float32": ["onnx-cast:25/float32/float8e4m3fn/saturate:1"]}
    assert found["others"] == [{"name": "i", "dtype": "I64"}]
    [row] = found["tensors"]
    expected = brute_force(x, "float8e4m3fn")
    assert {name: row["effects"][name] for name in expected} == expected


def test_a_screenful_and_verbose(tmp_path: Path) -> None:
    tensors = {f"layer.{number}": weights("float16", 3, number) for number in range(23)}
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    lines = castigate("check", str(path), "--to=e5m2")[1].splitlines()
    assert sum(line.startswith("layer.") for line in lines) == 20
    assert "and 3 more; --verbose shows all" in lines
    lines = castigate("check", str(path), "--to=e5m2", "--verbose")[1].splitlines()
    assert sum(line.startswith("layer.") for line in lines) == 23


def test_control_characters_are_escaped(tmp_path: Path) -> None:
    evil = "x\x1b[2J\r\n\u202egone"
    tensors = {evil: weights("float32", 3), f"{evil}i": np.arange(2)}
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    out = castigate("check", str(path), "--to=e4m3fn")[1]
    assert "x\\u001b[2J \\u202egone" in out
    assert not {"\x1b", "\r", "\u202e"} & {*out}
    path.write_bytes(path.read_bytes()[:-5])
    code, _, err = castigate("check", str(path), "--to=e4m3fn")
    assert code == 2
    assert err.count("\n") == 1
    assert not {"\x1b", "\r", "\u202e"} & {*err}


@pytest.mark.parametrize("options", [("--to=e4m3fn",), ("--to=e4m3fn", "--backend=reference")])
def test_nothing_to_check(options: tuple[str, ...], tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"i": np.arange(3)})
    code, out, err = castigate("check", str(path), *options)
    assert (code, out) == (2, "")
    assert err == (
        f"castigate: {path} has no tensor of floats to cast to float8e4m3fn; it has 1 of I64;"
        " give another file\n"
    )


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, _, err = castigate("check", str(tmp_path / "pipe"), "--to=e4m3fn")
    assert (code, err.count("\n")) == (2, 1)
    assert "is a pipe or a device; give the name of a file" in err
