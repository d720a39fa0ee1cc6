"""``castigate containers``: write with one party, read with another, get the same tensor."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance.commands.options import PythonOption, TimeoutOption
from conformance.exchange.container_findings import Finding, findings_of
from conformance.exchange.container_matrix import (
    Containers,
    WayResult,
    containers,
    finding_lines,
    rich_table,
    tables,
    way_result,
)
from conformance.exchange.container_page import page
from conformance.exchange.container_probes import storable
from conformance.exchange.container_roads import CONTAINERS, ways_of
from oracles.backend.launch_config import DEFAULT_TIMEOUT, launch_configs
from oracles.backend.loading import close
from oracles.containers.parties import installed_parties, known_parties, load_party
from oracles.registry import Backend
from reports.html.containers import CHANGED
from specs.dtype_names import dtype_spelled
from specs.errors import CastigateError
from specs.suggestions import did_you_mean

SCHEMA = "schema"
WIDTH = 120
"""Columns of the tables where the output is no terminal."""


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
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Write tensors with one party and read them with another: they must come back the same.

    Bits, dtype and shape must be those that were written. A refusal is shown, and is no failure.
    """
    if party == [SCHEMA]:
        typer.echo(json.dumps(Containers.model_json_schema(), indent=2))
        return
    names = known_parties(party or installed_parties())
    wanted = _known_containers(container or CONTAINERS)
    dtypes = _known_dtypes(dtype or storable())
    with ExitStack() as stack:
        backends = []
        for name, config in launch_configs(names, python or (), timeout).items():
            backends.append(load_party(name, config))
            stack.callback(close, backends[-1])
        found = survey(backends, wanted, dtypes)
    _show(found)
    if json_file is not None:
        json_file.write_text(found.model_dump_json() + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page(found), encoding="utf-8")
    raise typer.Exit(int(any(way.outcome == CHANGED for way in found.ways)))


def survey(backends: list[Backend], names: list[str], dtypes: list[str]) -> Containers:
    """Ask all parties for all containers, one container after another."""
    ways: list[WayResult] = []
    findings: list[Finding] = []
    for name in names:
        found = ways_of(backends, name, dtypes)
        findings += findings_of(backends, found)
        ways += map(way_result, found)
    versions = {each.name: each.version for each in backends}
    return containers(versions, ways, findings, datetime.now(UTC).date())


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
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    for table in tables(found):
        console.print(rich_table(table))
    for finding in found.findings:
        typer.echo("")
        typer.echo("\n".join(finding_lines(finding)))
    counts = [sum(way.outcome == CHANGED for way in found.ways), len(found.ways)]
    typer.echo("")
    typer.echo(
        f"{len(found.versions)} parties, {len(found.names)} containers: {counts[1]:,} ways of a"
        f" dtype, {counts[0]:,} change it; {len(found.findings)} findings"
    )
