"""``castigate chains``: which casts may be left out of a chain."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from conformance.families.chains import removable_page, rewrites_page
from conformance.families.chains.judged_rewrites import judged_rewrites
from conformance.families.chains.removable_casts import RemovableCast, RemovableCasts, table_of
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
) -> None:
    """Say which casts may be left out of a chain, by the rules of a document, for every input.

    The answers were decided before, by trying all inputs or by a solver, and are shipped.
    """
    match asked:
        case [word] if word == SCHEMA:
            typer.echo(json.dumps(RemovableCasts.model_json_schema(), indent=2))
        case [word] if word == REWRITES:
            every = judged_rewrites()
            _write(every, partial(rewrites_page.page, every), json_file, page_file)
            typer.echo("\n".join(rewrites_page.summary_lines((*every.rules, *every.installed))))
        case [one] if "/" not in one:
            _document(one, json_file, page_file)
        case _ if not all("/" in each for each in asked):
            raise CastigateError(
                "name one document, or chains such as onnx-cast/float32/int32/bool"
            )
        case _ if json_file or page_file:
            raise CastigateError("--json and --page take a whole document; name DOCUMENT:VERSION")
        case _:
            for each in [_looked_up(name) for name in asked]:
                typer.echo("\n".join(removable_page.found_lines(each)))


def _document(name: str, json_file: Path | None, page_file: Path | None) -> None:
    """Print a summary of a document's chains of two casts, and write the files that are given.

    Without a version in ``name``, the last one is taken. Raises CastigateError if the document has
    no chains.
    """
    document, version = document_and_version(name, takes_yardsticks=True)
    if not has_chains(document.name):
        raise CastigateError(
            f"{document.name} has no chains: it is not about casts, or repeats another document"
        )
    every = table_of(f"{document.name}:{version or list(document.entry.versions)[-1]}")
    _write(every, partial(removable_page.page, every), json_file, page_file)
    typer.echo(f"{every.edition}: {len(every.chains):,} chains of two casts")
    typer.echo("\n".join(removable_page.summary_lines(every.chains)))


def _looked_up(name: str) -> RemovableCast:
    """Look a chain up in the table of its edition; raise CastigateError if it is not there."""
    chain = chain_named(name)
    first = chain.steps[0]
    every = table_of(f"{first.document}:{first.version}")
    found = next((each for each in every.chains if each.chain == chain.id), None)
    if found is None:
        raise CastigateError(
            f"the table of {every.edition} has no `{chain.id}`: name two casts that it lists"
        )
    return found


def _write(
    every: StrictModel, page: Callable[[], str], json_file: Path | None, page_file: Path | None
) -> None:
    if json_file is not None:
        json_file.write_text(every.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page(), encoding="utf-8")
