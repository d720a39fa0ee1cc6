"""``castigate chains``: which casts may be left out of a chain."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from conformance.commands.options import JobsOption
from conformance.surveys import removable_page, rewrites_page
from conformance.surveys.field_rewrites import (
    RewrittenChains,
    changes_by_text,
    changes_of_installed,
    decided,
    questions_of,
)
from conformance.surveys.removable_casts import (
    RemovableCasts,
    count_of_chains,
    decide,
    removable_casts,
)
from specs.chains import chain_named, has_chains
from specs.errors import CastigateError
from specs.loader import document_and_version
from specs.model.strict_model import StrictModel

REWRITES, SCHEMA = "rewrites", "schema"


def chains_command(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT[:VERSION] | CHAIN... | rewrites | schema",
            help="All chains of two casts of a document; some, as onnx-cast/float32/int32/bool;"
            " `rewrites` for what optimizers leave out; `schema` for the JSON schema of --json.",
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
    processes = jobs or os.cpu_count() or 1
    match asked:
        case [word] if word == SCHEMA:
            typer.echo(json.dumps(RemovableCasts.model_json_schema(), indent=2))
        case [word] if word == REWRITES:
            _rewrites(json_file, page_file, processes)
        case [one] if "/" not in one:
            _document(one, json_file, page_file, processes)
        case _ if not all("/" in each for each in asked):
            raise CastigateError(
                "name one document, or chains such as onnx-cast/float32/int32/bool"
            )
        case _ if json_file or page_file:
            raise CastigateError("--json and --page take a whole document; name DOCUMENT:VERSION")
        case _:
            for each in [decide(chain_named(name)) for name in asked]:
                typer.echo("\n".join(removable_page.found_lines(each)))


def _document(name: str, json_file: Path | None, page_file: Path | None, processes: int) -> None:
    """Decide all chains of two casts of a document."""
    document, version = document_and_version(name, takes_yardsticks=True)
    if not has_chains(document.name):
        raise CastigateError(f"{document.name} is not about casts, so that it has no chains")
    version = version or list(document.entry.versions)[-1]
    edition = f"{document.name}:{version}"
    with _progress() as bar:
        total = count_of_chains(document.name, version)
        chains = removable_casts(document.name, version, processes)
        found = [*bar.track(chains, total, description="chains")]
    every = RemovableCasts(edition=edition, chains=tuple(found))
    _write(every, removable_page.page(found, edition, _today()), json_file, page_file)
    typer.echo(f"{edition}: {len(found):,} chains of two casts")
    typer.echo("\n".join(removable_page.summary_lines(found)))


def _rewrites(json_file: Path | None, page_file: Path | None, processes: int) -> None:
    """Judge the rules of optimizers, and the optimizers that are installed."""
    rules, installed = [*changes_by_text()], [*changes_of_installed()]
    questions = questions_of([*rules, *installed])
    with _progress() as bar:
        answers = decided(questions, processes)
        found = dict(bar.track(answers, len(questions), description="chains"))
    every = RewrittenChains(
        rules=tuple(each.judged(found) for each in rules),
        installed=tuple(each.judged(found) for each in installed),
    )
    _write(every, rewrites_page.page(every, _today()), json_file, page_file)
    typer.echo("\n".join(rewrites_page.summary_lines((*every.rules, *every.installed))))


def _write(every: StrictModel, page: str, json_file: Path | None, page_file: Path | None) -> None:
    if json_file is not None:
        json_file.write_text(every.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page, encoding="utf-8")


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
