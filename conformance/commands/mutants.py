"""``castigate mutants``: whether the suite finds faults that are planted on purpose."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from conformance.commands.options import JobsOption, SeedOption
from conformance.surveys.mutant_space import combinations
from conformance.surveys.mutants import follow_survivors, judge_mutant, run_mutants
from conformance.surveys.mutants_page import page, summary_lines
from specs.errors import CastigateError


def mutants_command(
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="MUTANT", help="Only these, as FAULT[+CONDITION]@CASE."),
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Only every N-th combination.")
    ] = 1,
    page_file: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the whole result there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Plant faults in the reference, and see which of them the tier quick finds and names.

    Exit codes: 0 all are found, 1 some survive, 2 bad usage.
    """
    workers = jobs or os.cpu_count() or 1
    if page_file is not None and (name or every > 1):
        raise CastigateError("--page needs all mutants; leave out the names and --every")
    if name:
        results = [judge_mutant(each, seed) for each in name]
    else:
        with _progress() as bar:
            total = -(-len(list(combinations(seed))) // every)
            task = bar.add_task("mutants", total=total)
            results = run_mutants(seed, workers, every, lambda: bar.advance(task))
            if page_file is not None:
                left = sum(not each.is_killed for each in results)
                task = bar.add_task("survivors", total=left)
                survivors = follow_survivors(results, workers, seed, lambda: bar.advance(task))
                date = f"{datetime.now(UTC):%Y-%m-%d}"
                page_file.write_text(page(results, survivors, date, seed))
    for each in results:
        if as_json:
            typer.echo(json.dumps(asdict(each)))
        elif name:
            found = f"killed by {each.killed_by}" if each.is_killed else "survives"
            typer.echo(f"{each.name}: {found}; {', '.join(each.findings) or 'no finding'}")
        elif not each.is_killed:
            typer.echo(f"survives: {each.name}")
    if not (as_json or name):
        typer.echo("\n".join(summary_lines(results)))
    raise typer.Exit(0 if all(each.is_killed for each in results) else 1)


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
