"""Usual mistakes at the command line: one line each, which says what is wrong and what to do."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from conformance.commands.main import COMMANDS, build_app
from tests.conformance.processes import castigate

ADAPTER = "examples/vendor_python/adapter.py"
FEWEST = 40
LONGEST = 400
"""The most characters of a message."""
MISTAKES = {
    # Questions.
    "explain": ("Missing argument", "write castigate explain fp32 int8 300"),
    "explain fp32": ("`fp32` is one dtype", "name two"),
    "explain fp32 int8": ("needs inputs of float32", "castigate explain fp32 int8 INPUT"),
    "explain fp33 int8 1": ("unknown dtype `fp33`", "did you mean `float32`"),
    "explain 'f32 300 -> fp8'": ("`fp8` may be float8e4m3fn", "write one of these"),
    "explain NaN int32": ("one dtype, `int32`", "castigate explain float32 int32 NaN"),
    "explain '128.5 -> bf16'": ("one dtype, `bf16`", "castigate explain float32 bf16 128.5"),
    "explain fp32 300": ("one dtype, `fp32`", "castigate explain fp32 int8 300"),
    "explain fp32 int8 abc": ("`abc` is not a value of float32", "write a number such as 1.5"),
    "explain fp32 int8 1,5": ("`1,5` is not a value", "write a number such as 1.5"),
    "explain fp32 int8 0x12": ("0x12 has 2 digits", "of float32 has 8", "or a number"),
    "explain int8 fp32 300": ("range of int8, -128 to 127", "castigate explain float32 int8 300"),
    "explain int32 fp16 1.5": ("`1.5` is not a value of int32", "write an integer such as 5"),
    "explain bf16 e4m3fn 448.5": ("not a value of bfloat16", "0x43e0 (448) or 0x43e1 (450)"),
    "explain fp32 int8 300 --backend": ("'--backend' requires", "castigate explain --help"),
    "explain fp32 int8 1 --backend pytorch": ("backend `pytorch`", "did you mean `torch`"),
    "explain fp32 int8 1 --backends ort": (
        "No such option: --backends",
        "did you mean `--backend`",
    ),
    "explain fp32 int8 300 --scale 2": ("documents of quantization", "castigate explain quantize"),
    "explain onnx-cst fp32 int8 1": ("`onnx-cst`", "did you mean `onnx-cast`"),
    "explain onnx-cast:99 fp32 int8 1": ("onnx-cast has no version `99`", "23, 24, 25"),
    "explain onnx-cast:25/float32/int9 1": ("int9`", "did you mean `onnx-cast:25/float32/int8`"),
    "explain tf32 fp32 1": ("`tf32` is no dtype of a tensor", "ask about float32"),
    "explain e4m3 fp32 1": ("`e4m3` may be", "write one of these"),
    "explain quantize 0.25 by 0.1": ("no question about a quantization", "by SCALE as DTYPE"),
    "explain onnx-quantize-linear fp32 int8 1": ("needs one input and a scale", "--scale SCALE"),
    # Runs.
    "run": ("no backend is named", "--backend NAME", "reference"),
    "run ort": ("unexpected extra argument", "did you mean --backend ort"),
    "run --backend": ("'--backend' requires an argument", "castigate run --help"),
    "run --backend torch,ort": ("`torch,ort`", "write --backend torch --backend ort"),
    "run --backend ORT": ("unknown backend `ORT`", "did you mean `ort`"),
    "run --backend nosuch": ("unknown backend `nosuch`", "castigate backends lists all"),
    f"run --backend {ADAPTER}": (ADAPTER, "add its class", ":NumpyCast"),
    f"run --backend {ADAPTER}:Other": ("no `Other` in it", "NumpyCast"),
    "run --backend nothere.py:Own": ("nothere.py does not exist", "give its path"),
    "run --backend exec:./nothere": ("./nothere does not exist", "give a program's path"),
    "run --backend reference --document onnx": ("`onnx`", "`onnx-cast`"),
    "run --backend reference --document mine.yml": ("mine.yml", "no such file", "give its path"),
    "run --backend reference --source fp33": ("unknown dtype `fp33`", "did you mean `float32`"),
    "run --backend reference --tier slow": ("'slow' is not one of 'quick', 'full'", "run --help"),
    "gate --backend reference": ("'--policy'", "--policy pull-request --out GATE"),
    "gate --backend reference --policy stirct --out G": ("`stirct`", "did you mean `strict`"),
    "judge nothere.jsonl": ("nothere.jsonl cannot be read", "give the path of JSON lines"),
    "judge": ("stdin is empty", "give one JSON line per answer"),
    # What a run left.
    "report": ("Missing argument 'RUN'", "write castigate report RUN --out REPORT"),
    "report docs": ("Missing option '--out'", "write castigate report RUN --out REPORT"),
    "report nothere --out R": ("nothere is no run", "give a run's folder"),
    "findings docs": ("docs is no run: it holds no run.json", "give a run's folder"),
    "diff docs": ("docs is no run", "give a run's folder"),
    "verify nothere.json": ("nothere.json cannot be read", "give the path of the certificate.json"),
    # Other commands.
    "portable reference ml_dtypes": ("no pair is named", "write --pair SOURCE/TARGET"),
    "portable reference --pair fp32/int8": ("nothing to agree with", "name a second backend"),
    "portable reference ml_dtypes --pair fp32-int8": ("`fp32-int8`", "such as float32/int8"),
    "check nothere.safetensors --to e4m3fn": ("cannot be read", "give the path of a checkpoint"),
    "check README.md --to e4m3fn": ("README.md begins with", "none of safetensors", "convert it"),
    "upgrade": ("Missing option '--backend'", "write castigate upgrade --backend ort"),
    "codec --format e4m3": ("`e4m3` may be", "write one of these"),
    "specs onnx": ("unknown document `onnx`", "`onnx-cast`"),
    "explian fp32 int8 1": ("No such command 'explian'", "did you mean castigate explain"),
}
"""What people type by mistake, and what the answer must have: what is wrong, and what to do."""


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_answered_in_one_line(typed: str) -> None:
    code, out, err = castigate(*shlex.split(typed))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("castigate: ")
    assert [words for words in MISTAKES[typed] if words not in err] == [], err
    assert len(err) <= LONGEST, err


def test_there_are_enough_mistakes() -> None:
    assert len(MISTAKES) >= FEWEST


def test_a_command_that_needs_arguments_has_an_example_with_its_options() -> None:
    app: Any = typer.main.get_command(build_app(COMMANDS))
    for name, command in app.commands.items():
        example = COMMANDS[name].example
        parameters = getattr(command, "params", [])
        needed = [each for each in parameters if each.required]
        assert bool(needed) == bool(example), name
        known = {option for each in parameters for option in each.opts}
        given = {word for word in example.split() if word.startswith("--")}
        assert given <= known, name
        assert {option for each in needed for option in each.opts if option[:2] == "--"} <= given
