"""Runs the scripts of issues, and compares what they show with what the issues say."""

from __future__ import annotations

import re
import subprocess
import sys

from reports.findings.finding import ExplainedCase
from specs.formats import format_named

RAISED = re.compile(r"(?:.*?: )?([A-Za-z]\w+): (.*)")
"""Matches the message of an error: its class and its first line."""
SHAPES = re.compile(r"shape (\([\d, ]*\)) .*?gives shape (\([\d, ]*\))")
OPEN_INPUTS = re.compile(r"^open inputs: .*; (?=shape \()", re.DOTALL)
"""The part of a message about open inputs, which precedes the fault of a shape."""
OTHERWISE = re.compile(r"shape \([\d, ]*\): an element answers otherwise than in one row")
"""The part of a message that names an answer that depends on the shape."""
DTYPE = re.compile(r"(?:is not refused, but )?gives (\w+) instead of \w+")
LONGEST_TEXT = 40
"""Characters of an error that must be in the output; later ones may vary between runs."""


def what_is_wrong(shown: ExplainedCase, script: str) -> str:
    """Say how the output of a script differs from what its issue says; empty if it does not."""
    command = [sys.executable, "-I", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    wanted, is_error = wanted_output(shown)
    if bool(done.returncode) != is_error:
        return f"exit code {done.returncode}: {done.stdout}{done.stderr[-500:]}"
    output = done.stderr if is_error else done.stdout
    missing = [text for text in wanted if text not in output]
    return f"no {missing} in {output[-500:]}" if missing else ""


def wanted_output(shown: ExplainedCase) -> tuple[list[str], bool]:
    """The lines that a script must print, and whether it must end with an error."""
    if shown.smallest:
        is_text = [format_named(dtype).kind == "text" for dtype in pair(shown)]
        given, answer = (
            repr(text) if kept else printed(text)
            for text, kept in zip((shown.smallest, shown.answer), is_text, strict=True)
        )
        return ([] if "form:" in shown.cell.case else [f"{given} -> {answer}"]), False
    if shapes := SHAPES.search(shown.answer):
        return [f"{shapes[1]} -> {shapes[2]}"], False
    if dtype := DTYPE.match(shown.answer):
        return [dtype[1]], False
    if OTHERWISE.search(shown.answer):
        return [], False
    if "receiver's memory, no copy" in shown.answer:
        return ["its memory: True"], False
    if "form:" in shown.cell.case and shown.cell.verdict != "error":
        return [], False
    # onnxruntime puts other words before an error if its answers are bound.
    raised = RAISED.match(OPEN_INPUTS.sub("", shown.answer).replace("Error in execution: ", ""))
    assert raised, shown.answer
    return [raised[2][:LONGEST_TEXT].rstrip()], True


def pair(shown: ExplainedCase) -> tuple[str, str]:
    """The dtypes of a case."""
    return shown.cell.source, shown.cell.target


def printed(text: str) -> str:
    """A pattern as scripts print it: those of up to 64 bits without leading zeros."""
    return text if len(text) > 18 else hex(int(text, 16))
