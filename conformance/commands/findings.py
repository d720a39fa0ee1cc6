"""``castigate findings``: the root causes behind the failures of a run."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from reports.findings.finding import Finding, Findings
from reports.findings.finding_text import finding_record, findings_lines
from reports.findings.issue_text import issue_text
from reports.findings.read_findings import read_findings
from reports.outputs.sarif import sarif
from reports.run_store.open_run import open_run
from specs.errors import CastigateError, did_you_mean


def findings_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URL.")],
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME", help="Only this backend (repeatable)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    as_sarif: Annotated[
        bool, typer.Option("--sarif", help="Print SARIF 2.1.0, for code scanning.")
    ] = False,
    issue: Annotated[
        str | None,
        typer.Option(metavar="BACKEND/NAME", help="Print one finding as an issue, in Markdown."),
    ] = None,
) -> None:
    """List the root causes behind the failures of a run: what, where, and how often.

    The exit code is 1 if there are any, else 0; with --issue it is 0.
    """
    store = open_run(run)
    versions = store.record.versions
    for name in backend or ():
        if name not in versions:
            hint = did_you_mean(name, versions) or f"it has {', '.join(versions)}"
            raise CastigateError(f"run {run} has no backend `{name}`; {hint.rstrip('; ')}")
    found = read_findings(store)
    shown = {name: found.get(name, ()) for name in backend or versions}
    if issue is not None:
        typer.echo(issue_text(_finding_named(issue, found, run), store.record))
        return
    if as_json and as_sarif:
        raise CastigateError("--json and --sarif exclude each other; leave one out")
    if as_sarif:
        typer.echo(sarif(shown, store.record), nl=False)
    elif as_json:
        for name, findings in shown.items():
            for each in findings:
                record = finding_record(each, found, versions[name])
                typer.echo(json.dumps(record, ensure_ascii=False))
    else:
        typer.echo("\n".join(findings_lines(shown, versions)).rstrip())
    raise typer.Exit(1 if any(shown.values()) else 0)


def _finding_named(name: str, findings: Findings, run: str) -> Finding:
    known = {each.id: each for found in findings.values() for each in found}
    if name not in known:
        hint = did_you_mean(name, known) or f"castigate findings {run} lists them"
        raise CastigateError(f"run {run} has no finding `{name}`; {hint}")
    return known[name]
