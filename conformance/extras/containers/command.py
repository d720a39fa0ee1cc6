"""``castigate containers``: write with one party, read with another, get the same tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import PythonOption, TimeoutOption
from conformance.extras.containers.pages import finding_lines, matrix, page
from conformance.extras.containers.parties.parties import installed_parties, known_parties
from conformance.extras.containers.results import CHANGED, Containers, store, survey, tables
from conformance.extras.containers.ways import CONTAINERS, storable
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from reports.findings.finding_text import counted
from reports.outputs.table import in_columns
from reports.run_store.open_run import open_run
from specs.errors import CastigateError, did_you_mean
from specs.formats import dtype_spelled

SCHEMA = "schema"


def containers_command(
    party: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARTY]... | schema",
            help="Who writes and reads (default: all installed); path/to/file.py:Class for one of"
            " your own; `schema` for the JSON schema of --json.",
        ),
    ] = None,
    container: Annotated[
        list[str] | None,
        typer.Option("--container", metavar="NAME", help="Only this container (repeatable)."),
    ] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option(
            "--dtype", metavar="DTYPE", parser=dtype_spelled, help="Only this dtype (repeatable)."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every way there.")
    ] = None,
    page_file: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write a page of what is found.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Store it with this run, whose report then shows it."),
    ] = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Write tensors with one party and read them with another: they must come back the same.

    Bits, dtype and shape must be those that were written; exit code 1 if they are not. A refusal is
    shown, and is no failure.
    """
    if party == [SCHEMA]:
        typer.echo(json.dumps(Containers.model_json_schema(), indent=2))
        return
    names = known_parties(party or installed_parties())
    if run is not None:
        open_run(run)  # Raises an error before anything is asked.
    wanted = _known_containers(container or CONTAINERS)
    dtypes = _known_dtypes(dtype or storable())
    found = survey(names, wanted, dtypes, python or (), timeout)
    _show(found)
    if json_file is not None:
        json_file.write_text(found.model_dump_json() + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page(found), encoding="utf-8")
    if run is not None:
        store(run, found)
    raise typer.Exit(int(any(way.outcome == CHANGED for way in found.ways)))


def _known_containers(names: list[str] | tuple[str, ...]) -> list[str]:
    for name in names:
        if name not in CONTAINERS:
            raise CastigateError(
                f"unknown container `{name}`; {did_you_mean(name, CONTAINERS)}the containers are "
                f"{', '.join(CONTAINERS)}"
            )
    return list(dict.fromkeys(names))


def _known_dtypes(names: list[str]) -> list[str]:
    for name in names:
        if name not in storable():
            raise CastigateError(f"--dtype {name}: containers hold no texts; name another dtype")
    return list(dict.fromkeys(names))


def _show(found: Containers) -> None:
    for table in tables(found):
        typer.echo(table.name)
        typer.echo("\n".join(f"  {line}" for line in in_columns(matrix(table))))
    for finding in found.findings:
        typer.echo("")
        typer.echo("\n".join(finding_lines(finding)))
    changed = sum(way.outcome == CHANGED for way in found.ways)
    typer.echo("")
    counts = (
        f"parties: {len(found.versions)}",
        counted(len(found.names), "container"),
        counted(len(found.findings), "finding"),
    )
    typer.echo(f"{', '.join(counts)}; {changed:,} of {len(found.ways):,} ways of a dtype change it")
