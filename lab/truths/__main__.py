"""``python -m lab.truths``: compare the reference with arithmetic that others wrote."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lab.truths import page as pages
from lab.truths.comparison import Counts, Key
from lab.truths.run import RANDOM, TEXTS, run
from lab.truths.truths import missing_packages

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)


@app.command()
def main(
    page: Annotated[Path | None, typer.Option(help="the page to write")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="processes")] = os.cpu_count() or 1,
    random: Annotated[
        int, typer.Option(min=0, help="random patterns of each pair with a wide source")
    ] = RANDOM,
) -> None:
    """Compare and print tables; exit with 0 if no answer differs but the known ones, else 1."""
    if missing := missing_packages():
        are = "are" if len(missing) > 1 else "is"
        needed = f"{', '.join(missing)} {are} not installed"
        typer.echo(f"{needed}; run pip install 'castigate[truths]'", err=True)
        raise typer.Exit(2)
    begun = perf_counter()
    results: dict[Key, Counts] = {}

    def report(pair: str, counts: dict[Key, Counts]) -> None:
        failures = [failure for each in counts.values() for failure in each.failures]
        compared = sum(each.compared for each in counts.values())
        typer.echo(f"{perf_counter() - begun:6.0f} s  {pair}: {compared:,}, {len(failures)} failed")
        for failure in failures:
            typer.echo(f"  {failure}")
        for key, each in counts.items():
            results.setdefault(key, Counts()).add(each)

    run(jobs, random, report)
    for head, rows in (
        (("truth", "version", *pages.HEAD), pages.truth_rows(results)),
        (("truth", "pair", "rounding", *pages.HEAD), pages.rounding_rows(results)),
        (("truth", "what differs", "right is", "answers"), pages.known_rows(results)),
    ):
        typer.echo("\n" + pages.plain(head, list(rows)))
    if page is not None:
        pages.write_page(results, random, min(random, TEXTS), perf_counter() - begun, page)
    raise typer.Exit(1 if any(each.failures for each in results.values()) else 0)


if __name__ == "__main__":
    app()
