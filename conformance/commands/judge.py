"""``castigate judge``: judges answers that were recorded elsewhere."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated
from zipfile import BadZipFile

import numpy as np
import typer

from conformance.commands.options import OwnDocumentOption
from conformance.families.recorded_tensors import element_words, judge_arrays
from conformance.families.value_spelling import json_text
from conformance.recorded_lines import LineTally, UnansweredInputs, judge_stream
from specs.cases import Case
from specs.errors import CastigateError
from specs.operations import X, takes_named_tensors
from specs.selection import case_named


def judge_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|-",
            help="JSON lines, or with --case an .npz of arrays; - or none: lines from stdin.",
        ),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            metavar="CASE",
            help="The case of a quantization whose tensors the arrays of an .npz are, by name: x,"
            " scale, zero, y.",
        ),
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
    tensors: Annotated[
        bool,
        typer.Option(
            "--tensors",
            help="Write tensors with names back, and what is allowed for each element.",
        ),
    ] = False,
) -> None:
    """Judge recorded answers, one JSON object per line, or arrays of a quantization.

    A line: {"case": "onnx-cast:25/float32/float16", "input": "0x477ff000", "output": "inf"}.
    Of tensors with names: "input": {"x": [1.5], "scale": 0.5, "zero": 3}, "output": {"y": [6]}.
    """
    is_arrays = file is not None and str(file) != "-" and file.suffix == ".npz"
    if is_arrays != (case is not None):
        raise CastigateError(
            f"{file} holds arrays; name their case: castigate judge {file} --case CASE"
            if is_arrays
            else f"--case is for arrays in an .npz, and {file or 'stdin'} is none"
        )
    if file is not None and case is not None:
        if complete or tensors:
            raise CastigateError("--complete and --tensors are for JSON lines, not for an .npz")
        raise typer.Exit(_judge_arrays(file, case_named(case), as_json))
    tally = LineTally(unanswered=UnansweredInputs() if complete else None)
    for line in _judge_lines(file, tally, tensors):
        sys.stdout.write(line)
    if not tally.lines:
        raise CastigateError(f"{file or 'stdin'} is empty; give one JSON line per answer")
    if not as_json:
        counts = ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(tally.verdicts.items())
        )
        malformed = f"; {tally.malformed} malformed" if tally.malformed else ""
        typer.echo(f"{tally.lines} lines: {counts or 'nothing judged'}{malformed}", err=True)
        if tally.first_wrong:
            _echo_wrong(tally.wrong_elements, tally.first_wrong)
    if tally.unanswered is not None:
        tally.unanswered.check()
    raise typer.Exit(tally.exit_code)


def _echo_wrong(count: int, shown: str) -> None:
    """Print on stderr how many elements are wrong, and one of them."""
    typer.echo(f"wrong: {count:,} element{'s' if count > 1 else ''}; {shown}", err=True)


def _judge_arrays(file: Path, case: Case, as_json: bool) -> int:
    """Judge the arrays of a file, print the verdict, and return the exit code.

    Raise CastigateError if the file cannot be read, or an array does not fit the case.
    """
    if not takes_named_tensors(case):
        raise CastigateError(
            f"{case.id} is no quantization; write JSON lines, or call castigate.judge from Python"
        )
    from conformance.api.tensors import tensors_of_arrays  # It needs all judges; lines do not.

    tensors, answer = tensors_of_arrays(case, _arrays(file))
    found = judge_arrays(case, tensors, answer)
    sys.stdout.write(f"{json_text({'case': case.id, **found})}\n")
    if not as_json:
        elements = found.get("elements", tensors[X].size)
        typer.echo(f"{elements:,} elements: {found['verdict']}", err=True)
        if "element" in found:
            _echo_wrong(found["wrong"], str(element_words(case, found["element"])))
    return int(found["verdict"] in ("violates", "deviates"))


def _arrays(file: Path) -> dict[str, object]:
    """Read the arrays of an .npz file by name; raise CastigateError if the file is no .npz."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise CastigateError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, BadZipFile, EOFError, zlib.error) as error:
        raise CastigateError(
            f"{file} is no .npz of arrays ({error}); write it by numpy.savez"
        ) from None


def _judge_lines(file: Path | None, tally: LineTally, tensors: bool) -> Iterator[str]:
    try:
        with _opened(file) as stream:
            for result in judge_stream(stream, tally, keeps_tensors=tensors):
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
