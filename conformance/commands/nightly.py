"""``castigate nightly``: runs all installed backends, and reports what has changed."""

from __future__ import annotations

import os
import sys
from pkgutil import resolve_name
from typing import Annotated

import typer

from conformance.commands.options import (
    ChainsOption,
    DocumentOption,
    JobsOption,
    PythonOption,
    TierChoice,
    TierOption,
    TimeoutOption,
    VerboseOption,
    WithOption,
    parse_folder,
)
from conformance.commands.report import describe_report
from conformance.commands.run import how_to_resume, print_screen
from conformance.running.nights import Nights
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, run
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.resource_limits import keep_freed_memory
from oracles.registry import installed_frameworks
from reports.changes.words import screen
from reports.findings.read_findings import read_findings
from reports.html.replace_report import check_output_folder
from reports.ledger.news import RunLedgers
from reports.outputs.totals import ROWS, findings_screens, last_screen
from reports.run_store.record import Selection, current_time


def nightly_command(
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            parser=parse_folder,
            help="The folder or URL of all nights' runs and their report.",
        ),
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="A backend (repeatable; default: all installed frameworks).",
        ),
    ] = None,
    document: DocumentOption = None,
    tier: TierOption = TierChoice.quick,
    chains: ChainsOption = False,
    with_: WithOption = None,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    no_ledger: Annotated[
        bool,
        typer.Option("--no-ledger", help="Exit as castigate run does, known failures included."),
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Run every installed framework, compare with ledgers and past nights, and write the report.

    The exit code is 0 if every backend fails exactly as its ledger lists, else 1; 3 if nothing was
    judged. With --no-ledger it is that of `castigate run`.
    """
    keep_freed_memory()
    nights = Nights(out)
    # Checked before the run, so that no night is run in vain.
    check_output_folder(nights.report)
    now = current_time()
    folder = nights.next_run(now)
    request = RunRequest(
        tuple(dict.fromkeys(backend or installed_frameworks())),
        Selection(documents=tuple(document or ())),
        tier.value,
        seed=int(f"{now:%Y%m%d}"),
        pythons=tuple(python or ()),
        seconds=timeout,
        has_chains=chains,
    )
    try:
        with progress_reporter() as progress:
            jobs = jobs or os.cpu_count() or 1
            store = run(request, folder, jobs, False, sys.argv, progress)
            progress.begin_phase("writing the tables and finding causes")
            ledgers = None if no_ledger else RunLedgers(store.record)
            totals = finish_run(store, ledgers=ledgers)
            for each in with_ or ():
                if each.survey:
                    progress.begin_phase(f"asking what the page of {each.name} shows")
                    resolve_name(each.survey)(folder, timeout)
            progress.begin_phase("writing the report")
            steps = ledgers.changes(read_findings(store)) if ledgers is not None else []
            report = nights.render(
                lambda line: progress.say(f"castigate: {line}"), with_ or (), steps
            )
            progress.begin_phase("")
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(how_to_resume(folder)) from None
    code, rows = totals.exit_code, None if verbose else ROWS
    if ledgers is None:
        versions = report.record.versions
        lines = last_screen([*findings_screens(report.findings, versions)], rows)
    else:
        lines = screen(steps, rows)
        code = code if code not in (0, 1) else int(any(each.changes for each in steps))
    print_screen(lines, totals, verbose)
    typer.echo(f"{nights.report}/index.html: {describe_report(report)}")
    raise typer.Exit(code)
