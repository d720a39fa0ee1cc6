"""``castigate upgrade``: what a release of a framework made worse, better, or answers otherwise."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from conformance.commands.options import (
    DocumentOption,
    JobsOption,
    PythonOption,
    TimeoutOption,
    parse_folder,
)
from conformance.extras import pages_of
from conformance.extras.releases.environments import (
    Environments,
    EnvironmentsOption,
    default_folder,
    requirements_of,
)
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, request_of, run
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import close, launch_configs, load_isolated
from reports.changes.change import BackendChanges
from reports.changes.of_runs import changes_of_runs
from reports.changes.words import screen, workflow_commands
from reports.findings.read_findings import read_findings
from reports.html.replace_report import check_output_folder
from reports.html.site import write_site
from reports.ledger.ledger_file import load_ledger
from reports.ledger.news import RunLedgers
from reports.ledger.version_spans import public_version
from reports.outputs.annotations import is_on_github
from reports.outputs.sarif import changes_sarif
from reports.outputs.write_outputs import RENDERERS, write_output
from reports.run_store.open_run import open_run
from reports.run_store.record import Selection, TierOfCases
from reports.run_store.storage import folder_at
from reports.run_store.store import RunStore
from specs import VERSION
from specs.errors import CastigateError

RELEASE = re.compile(r"\d+(\.\w+)*")
SARIF = "changes.sarif"


def upgrade_command(
    backend: Annotated[str, typer.Option("--backend", metavar="NAME", help="The backend.")],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VERSION",
            help="Compare with this release, which is run in an environment of its own.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="RUN", help="Compare with this complete run, on its inputs."
        ),
    ] = None,
    document: DocumentOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            parser=parse_folder,
            help="Keep the runs here, with the report, summary.md and changes.sarif.",
        ),
    ] = None,
    python: PythonOption = None,
    environments: EnvironmentsOption = None,
    jobs: JobsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all changes in full, not one screen.")
    ] = False,
) -> None:
    """Say what an upgrade made worse, better, or otherwise, each with one input.

    The installed release is compared with its ledger, or with another release or run. The exit code
    is 0 if nothing is worse, 1 if something is, and 3 if no case was compared.
    """
    if from_ is not None and baseline is not None:
        raise CastigateError("--from and --baseline exclude each other; leave one out")
    if from_ is not None and not RELEASE.fullmatch(from_):
        raise CastigateError(f"--from `{from_[:40]}` is not a version; write one, such as 1.31.1")
    if from_ is None and baseline is None and load_ledger(backend) is None:
        raise CastigateError(
            f"backend `{backend}` has no ledger to compare with; add --from VERSION or "
            "--baseline RUN"
        )
    if out is not None:
        check_output_folder(_in(out, "report"))
    request = RunRequest(
        (backend,),
        Selection(documents=tuple(document or ())),
        pythons=tuple(python or ()),
        seconds=timeout,
    )
    jobs = jobs or os.cpu_count() or 1
    # To run the earlier release takes minutes, which are lost if the installed one does not load.
    close(load_isolated(backend, launch_configs([backend], request.pythons, timeout)[backend]))
    with TemporaryDirectory(prefix="castigate-") as temporary:
        folder = out if out is not None else temporary
        before = None
        if baseline is not None:
            before = open_run(baseline)
            request = _as_asked(before, request, backend)
        elif from_ is not None:
            made = Environments(backend, Path(environments) if environments else default_folder())
            before = _earlier_run(request, made, from_, _in(folder, "before"), jobs)
        elif request.selection.documents:
            request = replace(request, selection=_as_claimed(request.selection))
        now, steps = _compared(request, _in(folder, "now"), jobs, before)
        if out is not None:
            typer.echo("castigate: writing the report", err=True)
            _write_outputs(out, before, now, steps)
    for line in screen(steps, None) if verbose else screen(steps):
        typer.echo(line)
    if is_on_github():
        for line in workflow_commands(steps):
            typer.echo(line)
    if out is not None:
        typer.echo(f"{_in(out, 'report')}/index.html, {_in(out, 'summary.md')}, {_in(out, SARIF)}")
    if not any(each.same or each.changes for each in steps):
        raise typer.Exit(3)
    raise typer.Exit(int(any(each.is_worse for each in steps)))


def _earlier_run(
    request: RunRequest, made: Environments, version: str, folder: str, jobs: int
) -> RunStore:
    """Return the run of an earlier release; one that is already in the folder is not repeated."""
    [backend] = request.backends
    with suppress(CastigateError):
        kept = open_run(folder)
        record = kept.record
        [ran] = record.backends
        if (
            (ran.name, public_version(ran.version)) == (backend, version)
            and record.selection == request.selection
            and record.suite == VERSION
        ):
            typer.echo(f"castigate: {folder} is kept, a run of {backend} {version}", err=True)
            return kept
    typer.echo(f"castigate: {requirements_of(backend)[0].name} {version}", err=True)
    python = made.python(version)
    return _finished(replace(request, pythons=(f"{backend}={python}",)), folder, jobs)


def _in(folder: str, name: str) -> str:
    return folder_at(folder).display_path(name)


def _as_asked(baseline: RunStore, request: RunRequest, backend: str) -> RunRequest:
    """Return the request for the same inputs as a run's, of the documents asked for if any are.

    Raise CastigateError if the run does not have the backend.
    """
    names = [each.name for each in baseline.record.backends]
    if backend not in names:
        raise CastigateError(
            f"--baseline {baseline.folder.display_name} has no backend `{backend}`; "
            f"it has {', '.join(names)}"
        )
    as_before = request_of(baseline.record)
    selection = request.selection if request.selection.documents else as_before.selection
    return replace(
        as_before,
        backends=request.backends,
        selection=selection,
        pythons=request.pythons,
        seconds=request.seconds,
    )


def _as_claimed(selection: Selection) -> Selection:
    """Select the same cases without counting their documents as claimed, as in a ledger's run."""
    cases = tuple(f"{word}{'/' if ':' in word else ':'}**" for word in selection.documents)
    return Selection(choices=(TierOfCases(match=cases, tier="quick"),))


def _compared(
    request: RunRequest, folder: str, jobs: int, before: RunStore | None
) -> tuple[RunStore, Sequence[BackendChanges]]:
    """Run the installed release, and compare it with a run, or with its ledger if that is None."""
    if before is not None:
        now = _finished(request, folder, jobs)
        return now, changes_of_runs(before, now, request.backends)
    with progress_reporter() as progress:
        now = run(request, folder, jobs, False, sys.argv, progress)
        progress.begin_phase("writing the tables and finding causes")
        ledgers = RunLedgers(now.record)
        finish_run(now, ledgers=ledgers)
        progress.begin_phase("")
    now = open_run(folder)
    return now, ledgers.changes(read_findings(now))


def _finished(request: RunRequest, folder: str, jobs: int) -> RunStore:
    """Run the request in a new folder, and return the complete run."""
    with progress_reporter() as progress:
        store = run(request, folder, jobs, False, sys.argv, progress)
        progress.begin_phase("writing the tables and finding causes")
        finish_run(store)
        progress.begin_phase("")
    return open_run(folder)


def _write_outputs(
    out: str, before: RunStore | None, now: RunStore, steps: Sequence[BackendChanges]
) -> None:
    stores = [now] if before is None else [before, now]
    runs = [each.folder.display_name for each in stores]
    report = write_site(runs, _in(out, "report"), lambda store: pages_of(store, ()), steps)
    for name in RENDERERS:
        write_output(report, name, _in(out, name))
    folder_at(out).write(SARIF, changes_sarif(steps).encode(), "free some space, and run again")
