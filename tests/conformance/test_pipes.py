"""``castigate`` between other programs: a vendor's in the middle, a reader that goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MAIN = "from conformance.commands.main import main; main()"
PROGRAM = Path(__file__).with_name("data") / "vendor_program.py"
HALF = "onnx-cast:25/float16/float32"
TO_E5M2 = "onnx-cast:25/float16/float8e5m2/saturate:0"


def judge_through_pipe(*arguments: str) -> tuple[int, list[Any], str]:
    """``castigate inputs | vendor program | castigate judge`` in a real shell."""
    python = f"'{sys.executable}'"
    command = f"{python} -c '{MAIN}'"
    program = f"{python} '{PROGRAM}' {' '.join(arguments)}"
    line = f"{command} inputs onnx-cast:25/int8/int4 | {program} | {command} judge -"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(row) for row in done.stdout.splitlines()], done.stderr


def test_a_program_is_judged_through_a_pipe() -> None:
    assert judge_through_pipe()[::2] == (0, "256 lines: 256 conforms\n")
    code, rows, output = judge_through_pipe("clamp")
    # Of 240 out of range, 7 of each sign clamp to what their low bits are anyway.
    wrong = 240 - 2 * 7
    assert (code, output) == (1, f"256 lines: {256 - wrong} conforms, {wrong} violates\n")
    assert [int(row["input"], 16) for row in rows] == list(range(256))
    assert [row["verdict"] for row in rows[:9]] == ["conforms"] * 8 + ["violates"]


@pytest.mark.parametrize("what", ["inputs many", "inputs few", "specs", "judge"])
def test_a_closed_pipe_prints_no_error(what: str, tmp_path: Path) -> None:
    recorded = tmp_path / "answers.jsonl"
    line = {"case": HALF, "input": "0x3c00", "output": "0x3f800000"}
    recorded.write_text((json.dumps(line) + "\n") * 2000)
    arguments = {
        "inputs many": ["inputs", TO_E5M2],
        "inputs few": ["inputs", "onnx-cast:25/int2/int8"],
        "specs": ["specs"],
        "judge": ["judge", str(recorded)],
    }[what]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 141
