"""docs/protocol.md: its table of dtypes, its limits, and the exchanges that it shows are true."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from oracles.isolation.frames import (
    MAX_ELEMENTS,
    MAX_HEADER,
    MAX_RANK,
    Frame,
    encode_frame,
    read_frame,
)
from oracles.isolation.launch_config import DEFAULT_TIMEOUT, STARTUP_TIMEOUT
from oracles.isolation.remote_errors import MAX_TEXT
from oracles.isolation.shared_memory import SLOT_BYTES, SLOTS
from oracles.wire.program_client import GOODBYE_NUMBER, GOODBYE_SECONDS, SILENT_SECONDS
from oracles.wire.reply_checks import MAX_TEXT_BYTES, ReplyDecoder
from oracles.wire.schema import ANSWER, MAX_NAME, QUESTION, AskSweep, json_schema
from reports.counterexample.drawing import value_text
from specs.formats import Format, formats
from specs.release import VERSION

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
Exchange = list[tuple[str, dict[str, Any], bytes]]


def dtype_row(form: Format) -> str:
    """The row of the table that a format must have."""
    entry = form.entry
    bias = infinities = nans = zero = ""
    match entry.kind:
        case "float":
            fields = {"sign": entry.sign, "exponent": entry.exponent, "mantissa": entry.mantissa}
            layout = ", ".join(f"{width} {name}" for name, width in fields.items() if width)
            bias = str(entry.bias)
            infinities = "yes" if entry.infinity else "no"
            zero = {"signed": "+0, -0", "unsigned": "+0", "none": "none"}[entry.zero]
            nans = {
                "none": "none",
                "ieee": f"{form.infinity_code + 1:#x} to {form.sign_bit - 1:#x}, both signs",
                "all-ones": "0x7f, 0xff" if entry.sign else "0xff",
                "negative-zero": form.hexadecimal(form.sign_bit),
            }[entry.nan]
        case "integer":
            kind = "two's complement" if form.is_signed else "unsigned"
            layout = f"{form.bits}, {kind}"
        case "boolean":
            layout = "1: 0 is false, 1 is true"
        case "complex":
            layout = f"two {entry.part}, the real part first"
        case _:
            layout = "a text in a JSON list"
    size = "" if entry.kind == "text" else str(max(1, -(-form.bits // 8)))
    cells = (f"`{form.name}`", size, layout, bias, infinities, nans, zero)
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def test_the_table_of_dtypes_is_that_of_the_formats() -> None:
    rows = [row for row in PAGE.splitlines() if re.match(r"\| `(\w+)` \|", row)]
    names = [f"| `{name}` " for name in formats()]
    shown = [row for row in rows if row.startswith(tuple(names))]
    assert shown == [dtype_row(form) for form in formats().values()]


@pytest.mark.parametrize("dtype", ["float8e4m3fn", "float8e5m2", "float4e2m1"])
def test_the_largest_values_of_the_page_are_right(dtype: str) -> None:
    form = formats()[dtype]
    largest = f"{value_text(form, form.max_code)} ({form.hexadecimal(form.max_code)}) in {dtype}"
    assert largest in " ".join(PAGE.split())


def test_texts_of_higher_rank_lie_as_the_page_says() -> None:
    [payload] = re.findall(r"payload `(\[.*?\])` with the shape `\[2,2\]`", PAGE)
    frame = Frame({"answer": "values", "number": 1, "shape": [2, 2]}, bytearray(payload.encode()))
    texts: Any = ReplyDecoder("string").decode(frame)
    assert texts.tolist() == [["a", "b"], ["c", "d"]]


LIMITS = {
    "a header": f"{MAX_HEADER:,} bytes",
    "`shape`": f"{MAX_RANK} dimensions, 2^{MAX_ELEMENTS.bit_length() - 1} elements",
    "the texts of one answer": f"{MAX_TEXT_BYTES:,} bytes",
    "`name`, `version`": f"1 to {MAX_NAME} printable ASCII characters",
    "`reason`, `text`": f"{MAX_TEXT:,} characters, the rest is cut off",
    "time to say hello": (
        f"{STARTUP_TIMEOUT:g} s; after {SILENT_SECONDS:g} s Castigate says that it waits"
    ),
    "time for an answer": f"`--timeout`, {DEFAULT_TIMEOUT:g} s",
    "time for `bye`": f"{GOODBYE_SECONDS:g} s to answer, {GOODBYE_SECONDS:g} s to end",
    "shared memory": f"{SLOTS * SLOT_BYTES:,} bytes, {SLOTS} parts",
}


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_of_the_page_is_that_of_the_code(what: str) -> None:
    rows = [row for row in PAGE.splitlines() if row.startswith(f"| {what} |")]
    assert [row.split(" | ")[1].removesuffix(" |") for row in rows] == [LIMITS[what]]


def test_every_whole_number_of_a_question_is_exact_in_javascript() -> None:
    properties = AskSweep.model_json_schema()["properties"]
    assert properties["first"]["exclusiveMaximum"] == properties["count"]["maximum"] == 1 << 32
    assert GOODBYE_NUMBER < 1 << 53
    assert MAX_ELEMENTS < 1 << 53
    assert "2^53" in PAGE


def exchange() -> Exchange:
    """The headers of the page in their order: `>` or `<`, the header, and the payload below it."""
    found: Exchange = []
    for line in PAGE.splitlines():
        if match := re.fullmatch(r"([<>]) (\{.*\})", line):
            found.append((match[1], json.loads(match[2]), b""))
            assert match[2] == json.dumps(found[-1][1], separators=(",", ":"), ensure_ascii=False)
        elif match := re.fullmatch(r"  payload ((?: ?[0-9a-f]{2})+)", line):
            found[-1] = (*found[-1][:2], bytes.fromhex(match[1]))
    return found


def test_every_question_and_answer_is_shown_and_fits_the_schema() -> None:
    questions = [header for side, header, _ in exchange() if side == ">"]
    answers = [header for side, header, _ in exchange() if side == "<"]
    assert len(questions) == len(answers)
    for header in questions:
        QUESTION.validate_python(header)
    for header in answers:
        ANSWER.validate_python(header)
    kinds = json.loads(json_schema())["$defs"]
    asked = {
        kind["properties"]["ask"]["const"] for kind in kinds.values() if "ask" in kind["properties"]
    }
    answered = {
        kind["properties"]["answer"]["const"]
        for kind in kinds.values()
        if "answer" in kind["properties"]
    }
    assert {header["ask"] for header in questions} == asked
    assert {header["answer"] for header in answers} == answered
    assert questions[0]["castigate"] == VERSION


def test_the_c_example_answers_as_the_page_shows(vendor: Path) -> None:
    shown = exchange()
    sent = b"".join(
        b"".join(encode_frame(header, payload)) for side, header, payload in shown if side == ">"
    )
    done = subprocess.run([vendor], input=sent, capture_output=True, check=True)
    rest = done.stdout
    got: list[Frame] = []

    def read(count: int) -> bytes:
        nonlocal rest
        piece, rest = rest[:count], rest[count:]
        return piece

    while (frame := read_frame(read)) is not None:
        got.append(frame)
    due = [(header, payload) for side, header, payload in shown if side == "<"]
    assert [(frame.header, bytes(frame.payload)) for frame in got] == due
