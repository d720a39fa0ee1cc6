"""``python -m lab.mutants``: whether the suite finds faults that are planted on purpose."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import JobsOption, SeedOption
from lab.command import progress, run
from lab.mutants.page import page, summary_lines
from lab.mutants.space import combinations
from lab.mutants.trial import (
    MutantResult,
    follow_survivors,
    judge_mutant,
    run_mutants,
)
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
    if page_file is not None and name:
        raise CastigateError("--page needs the mutants of a seed; leave out the names")
    workers, show = jobs or os.cpu_count() or 1, _as_json if as_json else _survivor
    if name:
        results = [judge_mutant(each, seed) for each in name]
        typer.echo("\n".join(map(_as_json if as_json else _outcome, results)))
    else:
        results = []
        with progress() as bar:
            total = -(-sum(1 for _ in combinations(seed)) // every)
            for each in bar.track(run_mutants(seed, workers, every), total, description="mutants"):
                if each is not None:
                    results.append(each)
                    if as_json or not each.is_killed:
                        typer.echo(show(each))
        if not as_json:
            typer.echo("\n".join(summary_lines(results)))
    left = [each for each in results if not each.is_killed]
    if page_file is not None:
        with progress() as bar:
            followed = follow_survivors(left, workers, seed)
            survivors = [*bar.track(followed, len(left), description="survivors")]
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        page_file.write_text(page(results, survivors, date, seed, every))
    raise typer.Exit(1 if left else 0)


def _as_json(result: MutantResult) -> str:
    return json.dumps(asdict(result))


def _survivor(result: MutantResult) -> str:
    return f"survives: {result.name}"


def _outcome(result: MutantResult) -> str:
    found = f"killed by {result.killed_by}" if result.is_killed else "survives"
    return f"{result.name}: {found}; {', '.join(result.findings) or 'no finding'}"


if __name__ == "__main__":
    run(mutants_command)
