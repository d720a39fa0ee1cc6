"""The command ``castigate export onnx``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.onnx_export import DOCUMENTS, Exporter, folder_of, questions, why_not
from conformance.options import SourceOption, TargetOption
from conformance.running import chosen
from reports.places import place_of
from reports.run_record import Selection
from specs.errors import CastigateError

export_app = typer.Typer(no_args_is_help=True, help="Write cases for the test runners of others.")


@export_app.callback()
def export_options() -> None:
    """Write cases for the test runners of others."""


@export_app.command(name="onnx")
def export_onnx(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder.")],
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="NAME[:VERSION]",
            help="onnx-cast or onnx-bitcast (repeatable; default: both, all versions).",
        ),
    ] = None,
    source: SourceOption = None,
    target: TargetOption = None,
) -> None:
    """Write a folder per case in the layout of ONNX's backend tests."""
    for word in document or ():
        if word.partition(":")[0] not in DOCUMENTS:
            raise CastigateError(f"`{word}` is no document of ONNX; give {' or '.join(DOCUMENTS)}")
    wanted = Selection(documents=tuple(document or DOCUMENTS), source=source, target=target)
    cases, exporter = chosen(wanted), Exporter()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    written: dict[str, Any] = {}
    left: dict[str, str] = {}
    for case in cases:
        asked = questions(case)
        reason = exporter.knows(case) if asked else why_not(case)
        if reason:
            left[case.id] = reason
            continue
        name = folder_of(case)
        assert name not in written
        try:
            exporter.write(case, asked, out / case.document / name)
        except OSError as error:
            raise CastigateError(
                f"cannot write {out}: {error.strerror}; give another --out"
            ) from None
        written[name] = {
            "case": case.id,
            "inputs": sum(each.inputs.size for each in asked),
            "levels": dict(sum((each.levels for each in asked), Counter())),
            "left-out": dict(sum((each.left_out for each in asked), Counter())),
        }
    text = json.dumps({"tests": written, "left-out": left}, indent=1) + "\n"
    place_of(str(out)).write("cases.json", text.encode(), "give another --out")
    reasons = Counter(left.values())
    typer.echo(f"{out}: {len(written):,} tests of {len(cases):,} cases")
    for reason, count in reasons.most_common():
        typer.echo(f"left out: {count:,} {reason}")
    raise typer.Exit(0 if written else 3)
