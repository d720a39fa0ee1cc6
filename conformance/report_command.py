"""The command ``castigate report``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from reports.findings.comparing import CHANGES
from reports.html.site import write_site


def report_command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Folders or URLs of complete runs, the oldest first."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The report's folder; an older one is replaced.")
    ],
) -> None:
    """Make the HTML report of the last run, with what has changed since those before."""
    report = write_site(runs, out)
    cases = sum(map(len, report.cases.values()))
    told = [f"{cases:,} cases", f"{len(report.backends)} backends"]
    if len(report.records) > 1:
        kinds = Counter(change.kind for each in report.changes.values() for change in each)
        told += [f"{kinds[kind]:,} {kind}" for kind in CHANGES]
    typer.echo(f"{out / 'index.html'}: {', '.join(told)}")
