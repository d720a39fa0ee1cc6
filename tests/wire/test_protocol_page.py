"""docs/protocol.md and docs/protocol.schema.json agree with the code."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.running.selection import case_named
from oracles.isolation.frames import Frame, encode_frame
from oracles.wire.program_client import wire_case
from oracles.wire.reply_checks import ReplyDecoder
from oracles.wire.schema import (
    AskBye,
    AskCast,
    AskHello,
    AskSweep,
    MemoryOffer,
    MemorySlot,
    encode_request,
    json_schema,
)

DOCS = Path(__file__).parents[2] / "docs"
CASE = case_named("onnx-cast:25/float32/float8e4m3fn/saturate:1")
QUESTION = b"".join(
    encode_frame(
        encode_request(AskCast(number=2, case=wire_case(CASE), shape=[3])),
        struct.pack("<3f", 1, 448, float("nan")),
    )
)
CODES = [0x38, 0x7E, 0x7F]


def dump(content: bytes) -> str:
    """Format bytes as a hex dump."""
    lines = []
    for at in range(0, len(content), 16):
        row = content[at : at + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:04x}  {row.hex(' '):<47}  {letters}\n")
    return "".join(lines)


def dumps_on_page() -> list[str]:
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    return re.findall(r"```\n(0000  [^`]*)```", page)


def parse_dump(text: str) -> bytes:
    return b"".join(bytes.fromhex(line[6:53]) for line in text.splitlines())


def test_the_question_on_the_page_is_the_one_that_is_sent() -> None:
    assert dumps_on_page()[0] == dump(QUESTION)


def test_the_answer_on_the_page_is_decoded() -> None:
    content = parse_dump(dumps_on_page()[1])
    assert dump(content) == dumps_on_page()[1]
    _, length, size = struct.unpack("<4sIQ", content[:16])
    header, payload = json.loads(content[16 : 16 + length]), content[16 + length :]
    assert len(payload) == size
    value = ReplyDecoder(CASE.target).decode(Frame(header, bytearray(payload)))
    assert not isinstance(value, BaseException)
    assert value.tolist() == CODES


def test_the_answer_on_the_page_is_the_one_of_the_example_in_c(vendor: Path) -> None:
    done = subprocess.run([vendor], input=QUESTION, capture_output=True, check=True)
    assert dump(done.stdout) == dumps_on_page()[1]


def test_the_schema_file_is_up_to_date() -> None:
    assert (DOCS / "protocol.schema.json").read_text(encoding="utf-8") == json_schema(), (
        "python -m oracles.wire.schema > docs/protocol.schema.json"
    )


WIRE_CASE = wire_case(CASE)
VALID: list[dict[str, Any]] = [
    encode_request(AskHello(number=1, castigate="1", memory=MemoryOffer(descriptor=5, bytes=8))),
    encode_request(AskHello(number=1, castigate="1")),
    encode_request(AskCast(number=1, case=WIRE_CASE, shape=[])),
    encode_request(
        AskSweep(number=1, case=WIRE_CASE, first=0, count=2, memory=MemorySlot(offset=0, bytes=8))
    ),
    encode_request(AskBye(number=1)),
    {"answer": "values", "number": 1, "shape": [2]},
    {"answer": "error", "number": 1, "text": ""},
]
INVALID: list[dict[str, Any]] = [
    {},
    {"answer": "values", "number": 1, "shape": [-1]},
    {"answer": "values", "number": 1, "shape": [2], "more": 1},
    {"answer": "values", "shape": [2]},
    {"ask": "call", "number": 1},
    {"answer": "hello", "number": 1, "protocol": 1, "name": "a\n", "version": "1", "dtypes": []},
]


def test_the_schema_accepts_exactly_the_valid_headers() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(json_schema()))
    assert [header for header in VALID if not validator.is_valid(header)] == []
    assert [header for header in INVALID if validator.is_valid(header)] == []


@pytest.mark.parametrize("word", ["cast", "sweep", "bitcast", "hello", "bye", "unsupported"])
def test_every_question_and_answer_is_on_the_page(word: str) -> None:
    assert f"`{word}`" in (DOCS / "protocol.md").read_text(encoding="utf-8")
