"""``castigate judge``: judges answers that were recorded elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated

import typer

from conformance.commands.options import OwnDocumentOption
from conformance.families.value_spelling import json_text
from conformance.recorded_lines import LineTally, UnansweredInputs, judge_stream
from specs.errors import CastigateError


def judge_command(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE|-", help="JSON lines; - or none: stdin.")
    ] = None,
    document: OwnDocumentOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only JSON lines, no summary on stderr.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Exit with 2 if a case of the lines lacks one of the quick tier's inputs.",
        ),
    ] = False,
) -> None:
    """Judge recorded answers, one JSON object per line.

    A line: {"case": "onnx-cast:25/float32/float16", "input": "0x477ff000", "output": "inf"}.
    Of tensors with names: "input": {"x": [1.5], "scale": 0.5, "zero": 3}, "output": {"y": [6]}.
    """
    tally = LineTally(unanswered=UnansweredInputs() if complete else None)
    for line in _judge_lines(file, tally):
        sys.stdout.write(line)
    if not tally.lines:
        raise CastigateError(f"{file or 'stdin'} is empty; give one JSON line per answer")
    if not as_json:
        counts = ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(tally.verdicts.items())
        )
        malformed = f"; {tally.malformed} malformed" if tally.malformed else ""
        typer.echo(f"{tally.lines} lines: {counts or 'nothing judged'}{malformed}", err=True)
    if tally.unanswered is not None:
        tally.unanswered.check()
    raise typer.Exit(tally.exit_code)


def _judge_lines(file: Path | None, tally: LineTally) -> Iterator[str]:
    try:
        with _opened(file) as stream:
            for result in judge_stream(stream, tally):
                yield f"{json_text(result)}\n"
    except OSError as error:
        reason = f"{error.strerror or error}; give the path of JSON lines"
        raise CastigateError(f"{file or 'stdin'} cannot be read: {reason}") from None


def _opened(file: Path | None) -> IO[str]:
    """Open a file, or stdin, so that bytes that are not UTF-8 spoil no more than their line.

    Raises CastigateError if stdin is closed.
    """
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise CastigateError(
                "stdin is closed; name a FILE, or pipe JSON lines into the command"
            )
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        return sys.stdin
    return file.open(encoding="utf-8", errors="surrogateescape")
