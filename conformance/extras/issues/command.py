"""``castigate docket``: which public threads about conversions are right, and which are mended."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import PythonOption, TimeoutOption
from conformance.extras.issues.asked import ask_backends
from conformance.extras.issues.docket import Thread, docket
from conformance.extras.issues.threads import PRESENT, VERDICTS, DecidedThread, decide
from conformance.extras.issues.words import counts, page, thread_data, thread_lines
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs, load_all
from reports.findings.finding_text import counted
from specs.errors import CastigateError, did_you_mean


def docket_command(
    backend: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BACKEND...",
            help="Backends to ask: the threads about each, or all if none is about it. Without"
            " any, documents alone decide.",
        ),
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(metavar="OWNER/NAME", help="Only threads of this project (repeatable)."),
    ] = None,
    fail_if_present: Annotated[
        bool, typer.Option("--fail-if-present", help="Exit with 1 if a fault is present.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line per thread.")] = False,
    page_file: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write a page of all threads.")
    ] = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Decide public threads about conversions: by the document, and by what is answered today."""
    threads = [decide(each) for each in _threads(project or [])]
    with ExitStack() as stack:
        backends = load_all(stack, launch_configs(backend or (), python or (), timeout))
        threads = ask_backends(threads, backends)
        versions = {each.name: each.version for each in backends}
    if page_file is not None:
        page_file.write_text(page(threads, versions, f"{datetime.now(UTC):%Y-%m-%d}"), "utf-8")
    elif versions:
        threads = [each for each in threads if each.today]
    threads.sort(key=lambda each: [*VERDICTS].index(each.verdict.verdict))
    for each in threads if page_file is None else ():
        if as_json:
            typer.echo(json.dumps(thread_data(each), ensure_ascii=False))
        else:
            typer.echo("\n".join(thread_lines(each, versions)))
    if not as_json:
        typer.echo(summary(threads))
    if fail_if_present and any(each.verdict.verdict == PRESENT for each in threads):
        raise typer.Exit(1)


def summary(threads: list[DecidedThread]) -> str:
    """Return the total of threads and the number of threads by verdict, in one line."""
    numbers = [f"{number} {verdict}" for verdict, number in counts(threads).items()]
    return f"{counted(len(threads), 'thread')}: {', '.join(numbers) or 'nothing to decide'}"


def _threads(projects: list[str]) -> list[Thread]:
    """Return the threads of the named projects, or of all if none is named.

    Raise CastigateError for a project without threads.
    """
    known = {each.project.project for each in docket()}
    for name in projects:
        if name not in known:
            raise CastigateError(
                f"the docket has no threads of `{name}`; {did_you_mean(name, known)}"
                f"its projects are {', '.join(sorted(known, key=str.lower))}"
            )
    return [each for each in docket() if not projects or each.project.project in projects]
