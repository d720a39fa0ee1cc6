"""``python -m lab.removable``: make the tables that ``castigate chains`` shows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance.extras.removable_casts.judged_rewrites import RewrittenChains, write_rewrites
from conformance.extras.removable_casts.removable_casts import FOLDER, RemovableCasts, write_table
from lab.command import progress, run
from lab.removable.casts import count_of_chains, removable_casts
from lab.removable.rewrites import (
    changes_by_text,
    changes_of_installed,
    decided,
    questions_of,
)
from specs.chains import has_chains
from specs.errors import CastigateError
from specs.loader import document_and_version

REWRITES = "rewrites"


def removable_command(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT[:VERSION]... | rewrites",
            help="All chains of two casts of editions; `rewrites` for what optimizers leave out.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the tables are written.")
    ] = FOLDER,
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Decide, for every input, which casts may be left out; write a table of each edition."""
    for name in asked:
        path = _rewrites(out, jobs) if name == REWRITES else _edition(name, out, jobs)
        typer.echo(path)


def _edition(name: str, out: Path, jobs: int) -> Path:
    """Decide all chains of two casts of an edition, and write the table; return its path."""
    document, version = document_and_version(name, takes_yardsticks=True)
    if not has_chains(document.name):
        raise CastigateError(f"{document.name} is not about casts, so that it has no chains")
    version = version or list(document.entry.versions)[-1]
    edition = f"{document.name}:{version}"
    with progress() as bar:
        chains = removable_casts(document.name, version, jobs)
        total = count_of_chains(document.name, version)
        found = [*bar.track(chains, total, description=edition)]
    return write_table(RemovableCasts(edition=edition, date=_today(), chains=tuple(found)), out)


def _rewrites(out: Path, jobs: int) -> Path:
    """Judge the rules of optimizers and the installed optimizers; return the path of the table."""
    rules, installed = [*changes_by_text()], [*changes_of_installed()]
    questions = questions_of([*rules, *installed])
    with progress() as bar:
        found = dict(bar.track(decided(questions, jobs), len(questions), description=REWRITES))
    every = RewrittenChains(
        date=_today(),
        rules=tuple(each.judged(found) for each in rules),
        installed=tuple(each.judged(found) for each in installed),
    )
    return write_rewrites(every, out)


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


if __name__ == "__main__":
    run(removable_command)
