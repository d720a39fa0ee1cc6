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
    assert found["others"] == [{"name": "i", "dtype": "int64"}]
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
        f"castigate: {path} has no tensor of floats to cast to float8e4m3fn; it has 1 of int64;"
        " give another file\n"
    )


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, _, err = castigate("check", str(tmp_path / "pipe"), "--to=e4m3fn")
    assert (code, err.count("\n")) == (2, 1)
    assert "is a pipe or a device; give the name of a file" in err


def special_weights(tmp_path: Path) -> Path:
    x = np.array([[1.5, 500, -1e9], [np.nan, -np.inf, 1e-40]], np.float32)
    return write_safetensors(tmp_path / "m.safetensors", {"x": x, "y": np.ones(2, np.float16)})


def test_what_elements_are_before_the_cast_is_counted(tmp_path: Path) -> None:
    code, out, _ = castigate("check", str(special_weights(tmp_path)), "--to=e4m3fn", "--json")
    found = json.loads(out)
    assert code == 0
    total = {name: found["total"][name] for name in ("nans", "infinities", "subnormals")}
    assert total == {"nans": 1, "infinities": 1, "subnormals": 1}
    example = next(each for each in found["examples"] if each["effect"] == "infinities")
    assert (example["index"], example["pattern"]) == ([1, 1], "0xff800000")


@pytest.mark.parametrize(
    ("effect", "rows"),
    [
        (
            "out-of-range",
            [
                "x,0 1,0x43fa0000,500,0x7e or any-nan",
                "x,0 2,0xce6e6b28,-1000000000,0xfe or any-nan",
                "x,1 1,0xff800000,-INF,0xfe or any-nan",
            ],
        ),
        ("nan", ['x,1 0,0x7fc00000,"+NaN, payload 0x400000",any-nan']),
        ("not-allowed", []),
    ],
)
def test_elements_are_listed(effect: str, rows: list[str], tmp_path: Path) -> None:
    path = special_weights(tmp_path)
    code, out, err = castigate("check", str(path), "--to=e4m3fn", f"--list={effect}")
    assert out.splitlines() == ["tensor,index,pattern,value,allowed", *rows]
    plural = "" if len(rows) == 1 else "s"
    assert (code, err) == (0, f"{len(rows)} element{plural} listed\n")


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("source", ["bfloat16", "float32"])
def test_listed_elements_have_the_answers_of_backends(source: str, tmp_path: Path) -> None:
    x = weights(source).reshape(-1, 1)
    width = {"bfloat16": np.uint16, "float32": np.uint32}[source]
    x.view(width)[[7, 100, 2000]] = WRONG[source]
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    asked = ("check", str(path), "--to=e4m3fn", "--backend=reference", ONE_WRONG)
    for effect in ("backends-differ", "not-allowed"):
        code, out, err = castigate(*asked, f"--list={effect}", "--limit=2")
        header, *rows = [line.split(",") for line in out.splitlines()]
        assert (code, header[-2:]) == (1, ["reference", f"{PLANTED}:OneWrong"])
        assert [row[1] for row in rows] == ["7 0", "100 0"]
        assert [int(row[-1], 16) - int(row[-2], 16) for row in rows] == [1, 1]
        assert err == "2 elements listed; more are left out, --limit 0 lists all\n"
    assert castigate(*asked, "--list=not-allowed", "--limit=0")[2] == "3 elements listed\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--to=e4m3fn", "--list=out-of-rang"), "no list; did you mean `out-of-range`? name one"),
        (("--to=e4m3fn", "--list=nan", "--json"), "--list prints CSV, and --json one object"),
        (("--to=int8",), "`int8` is no float; weights become integers by scales, by a quantizat"),
    ],
)
def test_options_that_do_not_fit(options: tuple[str, ...], says: str, tmp_path: Path) -> None:
    code, out, err = castigate("check", str(special_weights(tmp_path)), *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_a_target_without_specials_is_said_to_clamp(tmp_path: Path) -> None:
    out = castigate("check", str(special_weights(tmp_path)), "--to=e2m1")[1]
    assert "  out of range there is only the largest value of float4e2m1" in out.splitlines()
    assert "NaN and infinity" not in out


def test_tensors_that_are_not_checked_are_named(tmp_path: Path) -> None:
    others = {f"ids.{number}": np.arange(2) for number in range(9)}
    path = write_safetensors(tmp_path / "m.safetensors", {"x": weights("float32", 3), **others})
    *_, last = castigate("check", str(path), "--to=e4m3fn")[1].splitlines()
    named = ", ".join(f"ids.{number}" for number in range(8))
    assert last == f"not checked: 9 tensors (9 of int64): {named}, …"


def test_the_table_is_written_as_csv(tmp_path: Path) -> None:
    from pyarrow import csv

    table = check.check_checkpoint(special_weights(tmp_path), "e4m3fn").to_arrow()
    csv.write_csv(table, tmp_path / "table.csv")
    assert table.column("shape").to_pylist() == ["2×3", "2"]


def test_scales_of_nodes_are_said_to_be_plain_numbers(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    scale = onnx.numpy_helper.from_array(np.full((), 0.1, np.float32), "scale")
    x, y = (
        helper.make_tensor_value_info(name, dtype, [2])
        for name, dtype in (("x", onnx.TensorProto.FLOAT), ("y", onnx.TensorProto.UINT8))
    )
    node = helper.make_node("QuantizeLinear", ["x", "scale"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [scale])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    lines = castigate("check", str(tmp_path / "m.onnx"), "--to=e4m3fn")[1].splitlines()
    assert any(
        line.startswith("scales and zero points of 1 QuantizeLinear are read as plain")
        for line in lines
    )
