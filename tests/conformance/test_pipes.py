"""``castigate`` between other programs: a vendor's in the middle, a reader that goes away."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.processes import MAIN, ONNX, ROOT, backend, tables

PROGRAM = Path(__file__).with_name("data") / "vendor_program.py"
HALF = "onnx-cast:25/float16/float32"
TO_E5M2 = "onnx-cast:25/float16/float8e5m2/saturate:0"


def test_a_program_is_judged_through_a_pipe() -> None:
    python = f"'{sys.executable}'"
    command = f"{python} -c '{MAIN}'"
    program = f"{python} '{PROGRAM}' clamp"
    line = f"{command} inputs onnx-cast:25/int8/int4 | {program} | {command} judge -"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    # Of 240 values out of range, 7 of each sign clamp to the value of their low bits.
    wrong = 240 - 2 * 7
    assert done.stderr == f"256 lines: {256 - wrong} conforms, {wrong} violates\n"
    assert done.returncode == 1
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


CLOSED = ("2>&-", ">&-", "<&-", "<&- >&- 2>&-")


def in_shell(code: str, *arguments: str, streams: str) -> tuple[int, str, str]:
    """Run Python code in a shell that closes or redirects some of its standard streams."""
    words = shlex.join([sys.executable, "-c", code, *arguments])
    done = subprocess.run(
        f"{words} {streams}", shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("streams", CLOSED)
def test_the_exit_code_is_that_of_the_result_if_streams_are_closed(
    streams: str, tmp_path: Path
) -> None:
    recorded = tmp_path / "answers.jsonl"
    recorded.write_text(json.dumps({"case": HALF, "input": "0x3c00", "output": "0x3f800001"}))
    for code, arguments in ((0, ["specs", "cinn-cast"]), (2, ["specs", "no-such-document"])):
        assert in_shell(MAIN, *arguments, streams=streams)[0] == code
    code, out, err = in_shell(MAIN, "judge", str(recorded), streams=streams)
    assert code == 1
    assert '"violates"' in out or ">&-" in streams.split()
    assert err == ("" if "2>&-" in streams else "1 lines: 1 violates\n")


def test_a_hidden_package_is_code_2_if_stderr_is_closed() -> None:
    code = "import castigate as entry; entry.hidden_package = lambda: 'no'; entry.main()"
    assert in_shell(code, streams="2>&-") == (2, "", "")


@pytest.mark.parametrize("streams", ["<&-", f"<{os.devnull}", "0>answers.jsonl"])
def test_a_stdin_that_cannot_be_read_is_one_line(streams: str, tmp_path: Path) -> None:
    streams = streams.replace("answers.jsonl", shlex.quote(str(tmp_path / "answers.jsonl")))
    code, out, err = in_shell(MAIN, "judge", streams=streams)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("castigate: stdin ")


def test_no_table_of_a_run_gets_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    given = ("run", backend("Right"), ONNX, "--source=uint8", "--target=int4")
    for name, streams in (("open", ""), ("closed", "<&- >&- 2>&-")):
        assert in_shell(MAIN, *given, f"--out={tmp_path / name}", streams=streams)[0] == 0
    assert tables(tmp_path / "closed") == tables(tmp_path / "open")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_the_exit_code_is_that_of_the_result_if_stderr_is_full() -> None:
    assert in_shell(MAIN, "specs", "no-such-document", streams="2>/dev/full")[0] == 2
