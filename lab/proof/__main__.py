"""``python -m lab.proof``: prove the reference, and report what was proved."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from lab.proof.exhaustion import prove_by_exhaustion
from lab.proof.obligations import TIME_LIMIT, Obligation
from lab.proof.page import write_page
from lab.proof.quantization import prove_quantization
from lab.proof.smt_order import prove_order
from lab.proof.smt_queries import prove_by_solver

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)


@app.command()
def main(
    solver: Annotated[bool, typer.Option("--solver", help="only prove by the SMT solver")] = False,
    exhaustion: Annotated[
        bool, typer.Option("--exhaustion", help="only prove by exhaustion")
    ] = False,
    order: Annotated[
        bool, typer.Option("--order", help="only prove that casts keep the order of values")
    ] = False,
    quantization: Annotated[
        bool, typer.Option("--quantization", help="only prove quantization and blocks")
    ] = False,
    jobs: Annotated[int, typer.Option(help="processes")] = os.cpu_count() or 1,
    timeout: Annotated[float, typer.Option(help="seconds per obligation")] = TIME_LIMIT,
    page: Annotated[
        Path | None,
        typer.Option(help="the page to write; parts that were not proved stay as they are"),
    ] = None,
) -> None:
    """Prove and print one line per obligation; exit with 0 if everything is proved, else 1."""
    every = not (solver or exhaustion or order or quantization)
    obligations: list[Obligation] = []
    if every or solver:
        obligations += prove_by_solver(jobs, timeout, _print)
    if every or order:
        obligations += prove_order(jobs, timeout, _print)
    if every or quantization:
        obligations += prove_quantization(jobs, timeout, _print)
    if every or exhaustion:
        obligations += prove_by_exhaustion(jobs, _print)
    counts = Counter(obligation.verdict for obligation in obligations)
    if page is not None:
        write_page(obligations, page)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    raise typer.Exit(0 if counts["proved"] == len(obligations) else 1)


def _print(obligation: Obligation) -> None:
    print(obligation, flush=True)


if __name__ == "__main__":
    app()
