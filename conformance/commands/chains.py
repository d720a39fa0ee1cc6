"""``castigate chains``: which casts may be left out of a chain."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from conformance.commands.options import JobsOption
from conformance.surveys.removable_casts import (
    RemovableCast,
    RemovableCasts,
    count_of_chains,
    decide,
    removable_casts,
)
from conformance.surveys.removable_page import found_lines, page, summary_lines
from specs.chains import chain_named, has_chains
from specs.errors import CastigateError
from specs.loader import document_and_version


def chains_command(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT[:VERSION] | CHAIN...",
            help="All chains of two casts of a document, or some, as onnx-cast/float32/int32/bool.",
        ),
    ],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all answers there.")
    ] = None,
    page_file: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write a page of all answers.")
    ] = None,
    jobs: JobsOption = None,
) -> None:
    """Say which casts may be left out of a chain, by the rules of a document, for every input.

    Needs the extra `proof` for sources of more than 16 bits.
    """
    if any("/" in each for each in asked):
        if json_file or page_file:
            raise CastigateError("--json and --page take a whole document; name DOCUMENT:VERSION")
        for each in [decide(chain_named(name)) for name in asked]:
            typer.echo("\n".join(found_lines(each)))
        return
    if len(asked) > 1:
        raise CastigateError("name one document, or chains such as onnx-cast/float32/int32/bool")
    document, version = document_and_version(asked[0])
    if not has_chains(document.name):
        raise CastigateError(f"{document.name} is not about casts, so that it has no chains")
    version = version or list(document.entry.versions)[-1]
    found: list[RemovableCast] = []
    with _progress() as bar:
        total = count_of_chains(document.name, version)
        decided = removable_casts(document.name, version, jobs or os.cpu_count() or 1)
        found += bar.track(decided, total, description="chains")
    edition = f"{document.name}:{version}"
    if json_file is not None:
        every = RemovableCasts(edition=edition, chains=tuple(found))
        json_file.write_text(every.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    if page_file is not None:
        text = page(found, edition, f"{datetime.now(UTC):%Y-%m-%d}")
        page_file.write_text(text, encoding="utf-8")
    typer.echo(f"{edition}: {len(found):,} chains of two casts")
    typer.echo("\n".join(summary_lines(found)))


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
