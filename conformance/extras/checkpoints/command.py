"""``castigate check``: which numbers of a checkpoint a cast changes, and where backends differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from conformance.commands.options import BackendOption, PythonOption, TimeoutOption
from conformance.extras.checkpoints.check import check_checkpoint
from conformance.extras.checkpoints.element_list import ElementList
from conformance.extras.checkpoints.results import result_lines, result_record
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from reports.findings.finding_text import counted
from specs.errors import CastigateError

MOST_LISTED = 1000


def check_command(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="A file in safetensors, GGUF, npz, npy or ONNX; the index of a safetensors"
            " checkpoint in several files; or a folder of such files.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--to", metavar="DTYPE", help="The dtype to cast to, spelled as any framework does."
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DTYPE",
            help="Only check tensors of this dtype (default: all floats but the target).",
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--document",
            metavar="NAME|FILE[:VERSION]",
            help="The document that decides; without it, the exact value rounded to nearest even"
            " does, and out of range the largest value, NaN and infinity are allowed.",
        ),
    ] = None,
    backend: BackendOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List all tensors, not one screen.")
    ] = False,
    listed: Annotated[
        str | None,
        typer.Option(
            "--list",
            metavar="EFFECT",
            help="Print the elements with an effect as CSV, nothing else: changed, out-of-range,"
            " to-zero, to-subnormal, nan, backends-differ, not-allowed, …",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="The most elements of --list; 0 for all.")
    ] = MOST_LISTED,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Count the elements of a checkpoint that a cast changes, and compare what backends answer.

    Exit code 0 if all answers are alike and allowed, or no backend is named; 1 if not; 2 if the
    file or an option cannot be used.
    """
    if listed is not None and as_json:
        raise CastigateError("--list prints CSV, and --json one object; give one of them")
    listing = None if listed is None else ElementList(listed, limit, sys.stdout)
    with _progress() as progress:
        checked = check_checkpoint(
            checkpoint,
            target,
            source=source,
            document=document,
            backends=backend or (),
            pythons=python or (),
            timeout=timeout,
            progress=progress,
            listing=listing,
        )
    if listing is not None:
        more = "; more are left out, --limit 0 lists all" if listing.has_more else ""
        typer.echo(f"{counted(listing.written, 'element')} listed{more}", err=True)
    elif as_json:
        typer.echo(json.dumps(result_record(checked)))
    else:
        typer.echo("\n".join(result_lines(checked, verbose)))
    raise typer.Exit(int(not checked.is_safe))


@contextmanager
def _progress() -> Iterator[Callable[[int], Callable[[int], None]]]:
    """Show a progress bar on a terminal, and yield a function that begins it.

    That function takes the bytes to read, and returns another, which takes those read since its
    last call.
    """
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    console = Console(stderr=True)
    hidden = not console.is_terminal
    shown = (*columns, TimeRemainingColumn())
    with Progress(*shown, console=console, transient=True, disable=hidden) as bar:

        def begin(total: int) -> Callable[[int], None]:
            task = bar.add_task("reading", total=total)
            return lambda more: bar.advance(task, more)

        yield begin
