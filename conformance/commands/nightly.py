"""The command ``castigate nightly``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import (
    DocumentOption,
    JobsOption,
    PythonOption,
    TierChoice,
    TierOption,
    TimeoutOption,
)
from conformance.commands.report import told
from conformance.commands.run import how_to_go_on, tell
from conformance.running.nights import Nights
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, run
from oracles.isolation.launch_config import SECONDS
from oracles.registry import installed
from reports.html.site import room_for
from reports.run_store.record import Selection, now


def nightly_command(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Keeps all nights' runs, and the report of them.")
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend", metavar="NAME", help="Who answers (repeatable; default: all installed)."
        ),
    ] = None,
    document: DocumentOption = None,
    tier: TierOption = TierChoice.quick,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Run every installed backend, compare with the nights before, and make the report."""
    nights = Nights(out)
    # Before the night, not after it: what could not be reported is not begun.
    room_for(nights.report)
    where = nights.next_run(now())
    wanted = RunRequest(
        tuple(dict.fromkeys(backend or installed())),
        Selection(documents=tuple(document or ())),
        tier.value,
        pythons=tuple(python or ()),
        seconds=timeout,
    )
    try:
        with progress_reporter() as shown:
            store = run(wanted, str(where), jobs or os.cpu_count() or 1, False, sys.argv, shown)
        totals = finish_run(store)
        report = nights.render(lambda line: typer.echo(f"castigate: {line}", err=True))
    except KeyboardInterrupt:
        typer.echo(f"castigate: interrupted{how_to_go_on(str(where))}", err=True)
        raise typer.Exit(130) from None
    tell(totals)
    typer.echo(f"{nights.report / 'index.html'}: {told(report)}")
    raise typer.Exit(totals.exit_code)
