"""``castigate report``: writes the HTML report of runs, and other formats."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from conformance.commands.options import WithOption, parse_folder
from conformance.extras import pages_of
from reports.changes.change import KIND_WORDS, KINDS, ChangeKind
from reports.findings.finding_text import counted
from reports.findings.report import Report
from reports.html.site import write_site
from reports.outputs.write_outputs import RENDERERS, write_output
from reports.run_store.storage import file_to_write, folder_at
from reports.run_store.store import RECORD
from specs.json_source import JsonError, parse_json


def report_command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Folders or URLs of complete runs."),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            parser=parse_folder,
            help="The report's folder or URL; an older report is replaced.",
        ),
    ],
    summary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a summary in Markdown.")
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a row per backend and case.")
    ] = None,
    junit: Annotated[str | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    with_: WithOption = None,
) -> None:
    """Write the HTML report of the latest run, with the changes since the runs before."""
    outputs = zip(RENDERERS, (summary, csv, junit), strict=True)
    files = {name: file for name, file in outputs if file is not None}
    for file in files.values():
        file_to_write(file)  # Raises an error before anything is written.
    if len(runs) > 1:
        runs = sorted(runs, key=_started)
    report = write_site(runs, out, lambda run: pages_of(run, with_ or ()))
    for name, file in files.items():
        write_output(report, name, file)
    typer.echo(f"{folder_at(out).display_path('index.html')}: {describe_report(report)}")


def describe_report(report: Report) -> str:
    """Return a line with a report's numbers of cases, backends and changes since earlier runs."""
    cases = sum(map(len, report.cases.values()))
    counts = [counted(cases, "case"), counted(len(report.backends), "backend")]
    if report.steps:
        changed = sum((Counter(each.counts) for each in report.steps), Counter[ChangeKind]())
        counts += [f"{changed[kind]:,} {KIND_WORDS[kind]}" for kind in KINDS if changed[kind]]
    return ", ".join(counts)


def _started(run: str) -> str:
    """Return when a run began, before its documents are known; empty if its record is damaged.

    The report opens the newest run first, and says what is wrong with a record.
    """
    try:
        content = parse_json(folder_at(run).read(RECORD) or b"")
    except JsonError:
        return ""
    return str(content.get("started", "")) if isinstance(content, dict) else ""
