"""``castigate history``: the quick tier over past releases, and what each of them changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import (
    DocumentOption,
    JobsOption,
    TimeoutOption,
    parse_folder,
)
from conformance.commands.report import describe_report
from conformance.extras.releases.environments import (
    Environments,
    EnvironmentsOption,
    default_folder,
    releases,
    requirements_of,
)
from conformance.running.nights import Nights
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, run
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from reports.changes.of_runs import changes_of_runs
from reports.changes.words import screen
from reports.findings.finding_text import counted
from reports.findings.read_findings import read_findings
from reports.html.replace_report import check_output_folder
from reports.ledger.version_spans import public_version
from reports.run_store.open_run import open_run
from reports.run_store.record import Selection, current_time
from reports.run_store.store import RunStore
from specs.errors import CastigateError

ROWS_OF_A_RELEASE = 10
"""The most lines that are printed about a release; its report has all changes."""


def history_command(
    backend: Annotated[str, typer.Option("--backend", metavar="NAME", help="The backend.")],
    versions: Annotated[
        str, typer.Option(metavar="RANGE", help="Releases: 1.28..1.32, or 1.28.0,1.30.0.")
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            parser=parse_folder,
            help="The folder or URL of the runs and their report; finished releases are kept.",
        ),
    ],
    document: DocumentOption = None,
    environments: EnvironmentsOption = None,
    jobs: JobsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Run past releases of a framework, each in its own environment, and report them in order."""
    framework = requirements_of(backend)[0]
    known = releases(framework, versions)
    made = Environments(backend, Path(environments) if environments else default_folder())
    nights = Nights(out)
    check_output_folder(nights.report)
    selection = Selection(documents=tuple(document or ()))
    done = _finished(nights, backend, selection)
    before: tuple[str, RunStore] | None = None
    for release in known:
        store = done.get(release)
        if store is None:
            typer.echo(f"castigate: {framework.name} {release}", err=True)
            python = made.python(release)
            request = RunRequest(
                (backend,), selection, pythons=(f"{backend}={python}",), seconds=timeout
            )
            folder = nights.next_run(current_time())
            with progress_reporter() as progress:
                store = run(request, folder, jobs or os.cpu_count() or 1, False, sys.argv, progress)
                progress.begin_phase("writing the tables and finding causes")
                finish_run(store)
        _tell(backend, release, before, store)
        before = release, store
    report = nights.render(lambda line: typer.echo(f"castigate: {line}", err=True))
    typer.echo(f"{nights.report}/index.html: {describe_report(report)}")
    typer.echo(f"the release of one change: castigate bisect CASE --backend {backend}")


def _finished(nights: Nights, backend: str, selection: Selection) -> dict[str, RunStore]:
    """Return by release the complete runs that have only this backend, with this selection."""
    found: dict[str, RunStore] = {}
    for name in nights.folder.names("runs"):
        try:
            store = open_run(f"{nights.runs}/{name}")
        except CastigateError:
            continue
        record = store.record
        if [each.name for each in record.backends] == [backend] and record.selection == selection:
            found[public_version(record.backends[0].version)] = store
    return found


def _tell(backend: str, release: str, before: tuple[str, RunStore] | None, now: RunStore) -> None:
    """Print in a few lines what a release changed since the one before.

    ``before`` is that release with its run, or None for the first, of which only the number of
    findings is printed.
    """
    findings = read_findings(now).get(backend, ())
    if before is None:
        typer.echo(f"{backend} {release}: {counted(len(findings), 'finding')}")
        return
    _, old = before
    steps = changes_of_runs(old, now, [backend])
    for line in screen(steps, ROWS_OF_A_RELEASE):
        typer.echo(line)
