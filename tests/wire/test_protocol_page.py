"""The page of the wire protocol shows the bytes, the schema and the words of the code."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.frames import Frame, encode_frame
from oracles.wire.program_client import ProgramClient, ReplyDecoder, wire_case
from oracles.wire.schema import AskCast, encode_request, json_schema
from specs.selection import case_named
from tests.test_docs import blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CASE = case_named("onnx-cast:25/float32/float8e4m3fn/saturate:1")
QUESTION = b"".join(
    encode_frame(
        encode_request(AskCast(number=2, case=wire_case(CASE), shape=[3])),
        struct.pack("<3f", 1, 448, float("nan")),
    )
)
CODES = [0x38, 0x7E, 0x7F]


def hex_dump(content: bytes) -> tuple[str, ...]:
    """Bytes in lines of 16, in hex and as characters."""
    lines = []
    for offset in range(0, len(content), 16):
        row = content[offset : offset + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{offset:04x}  {row.hex(' '):<47}  {letters}")
    return tuple(lines)


def dumps_of_the_page() -> list[tuple[str, ...]]:
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    return [block.lines for block in blocks(page) if block.lines[0].startswith("0000  ")]


def test_the_protocol_pages_question_is_the_one_that_is_asked() -> None:
    assert dumps_of_the_page()[0] == hex_dump(QUESTION)


def test_the_protocol_pages_answer_is_decoded() -> None:
    shown = dumps_of_the_page()[1]
    content = b"".join(bytes.fromhex(line[6:53]) for line in shown)
    assert hex_dump(content) == shown
    _, length, size = struct.unpack("<4sIQ", content[:16])
    header, payload = json.loads(content[16 : 16 + length]), content[16 + length :]
    assert len(payload) == size
    value: Any = ReplyDecoder(CASE.target).decode(Frame(header, bytearray(payload)))
    assert not isinstance(value, BaseException)
    assert value.tolist() == CODES


def test_the_protocol_pages_answer_is_that_of_the_c_example(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    program = tmp_path / "vendor"
    source = ROOT / "examples" / "vendor_c" / "vendor.c"
    subprocess.run([compiler, "-std=c11", "-o", program, source], check=True)
    done = subprocess.run([program], input=QUESTION, capture_output=True, check=True)
    assert hex_dump(done.stdout) == dumps_of_the_page()[1]


def test_the_protocol_pages_quantization_is_that_of_the_python_example() -> None:
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    [shown] = [block.lines for block in blocks(page) if '"ask":"quantize"' in block.lines[0]]
    asked = frame(*shown[:2])
    client = ProgramClient("exec:true", LaunchConfig())
    tensors = {
        "x": np.array([0.25, 1, 20], np.float32).view(np.uint32),
        "scale": np.array(0.1, np.float32).view(np.uint32),
        "zero": np.array(3, np.uint8),
    }
    case = case_named("onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor")
    request = {"ask": "quantize", "case": case}
    assert asked == b"".join(client.encode(2, request, tensors).frame)
    program = ROOT / "examples" / "vendor_python" / "program.py"
    command = [sys.executable, str(program)]
    done = subprocess.run(command, input=asked, capture_output=True, check=True)
    assert done.stdout == frame(*shown[2:])


def frame(header: str, payload: str) -> bytes:
    """The frame of two lines that the page shows."""
    text, content = header[2:].encode(), bytes.fromhex(payload.removeprefix("  payload"))
    return struct.pack("<4sIQ", b"CST1", len(text), len(content)) + text + content


def test_the_shipped_protocol_schema_is_that_of_the_code() -> None:
    assert (DOCS / "protocol.schema.json").read_text(encoding="utf-8") == json_schema(), (
        "run `python -m oracles.wire.schema > docs/protocol.schema.json`"
    )


@pytest.mark.parametrize(
    "word", ["cast", "sweep", "bitcast", "quantize", "tensors", "hello", "bye", "unsupported"]
)
def test_every_keyword_of_the_protocol_is_on_its_page(word: str) -> None:
    assert f"`{word}`" in (DOCS / "protocol.md").read_text(encoding="utf-8")
