"""``python -m lab.code_mutation``: change the code in small ways, and see whether a test fails."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lab.code_mutation.mutants import Mutant
from lab.code_mutation.page import HEAD, NOW_HEAD, first_rows, page, rows_now
from lab.code_mutation.related_tests import related_files
from lab.code_mutation.results import Results, new_results, read_results, write_results
from lab.code_mutation.selection import select_mutants
from lab.code_mutation.trial import Outcome, trials
from lab.code_mutation.verdicts import read_verdicts
from lab.command import run
from reports.outputs.table import markdown_table
from specs.errors import CastigateError

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "atlas" / "mutation.md"
NUMBER = 300
"""About an hour on two idle cores."""

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)
ResultsFile = Annotated[Path, typer.Option("--results", help="where results are stored")]


@app.command("run")
def run_mutants(
    seed: Annotated[int, typer.Option(help="which mutants are drawn")] = 1,
    number: Annotated[int, typer.Option(min=1, help="how many mutants")] = NUMBER,
    jobs: Annotated[int, typer.Option(min=1, help="processes")] = os.cpu_count() or 1,
    path: ResultsFile = RESULTS,
) -> None:
    """Try mutants and store what becomes of them.

    Stored results of the same seed are continued: mutants that were killed are not tried again,
    those that survived are. At the end, tests that no mutant survived run without any change.
    """
    if find_spec("cosmic_ray") is None:
        raise CastigateError("cosmic-ray is not installed; run pip install 'castigate[dev]'")
    results = read_results(path) if path.exists() else new_results(seed)
    if results.seed != seed:
        raise CastigateError(f"`{path}` has seed {results.seed}; delete it, or name another file")
    mutants = select_mutants(ROOT, seed, number)
    results.keep(mutants)
    waiting = results.untried(mutants)
    typer.echo(f"{len(waiting)} of {len(mutants)} mutants to try, then their tests without them")
    count = iter(range(len(waiting) - 1, -1, -1))

    def report(mutant: Mutant, outcome: Outcome, seconds: float) -> None:
        typer.echo(
            f"{next(count):4} left  {seconds:4.0f} s  {outcome:9}  {mutant.file}:{mutant.line}"
        )
        results.add(mutant, outcome)
        write_results(results, path)

    with trials(ROOT, jobs) as running:
        running.try_mutants(waiting, report)
        results.keep(mutants)
        write_results(results, path)
        if failing := running.failing_lists(unproved_lists(results)):
            named = "; ".join(" ".join(tests) for tests in failing)
            raise CastigateError(
                f"tests fail without any change, so that their mutants say nothing: {named}; mend"
                f" them, delete `{path}` and run again"
            )


def unproved_lists(results: Results) -> list[tuple[str, ...]]:
    """The lists of test files that no mutant survived: perhaps they always fail."""
    lists = dict.fromkeys(related_files(each.mutant.file) for each in results.tried)
    survived = [each for each in results.tried if each.now == "survived"]
    passed = {related_files(each.mutant.file) for each in survived}
    return [tests for tests in lists if tests not in passed]


@app.command("page")
def write_page(path: ResultsFile = RESULTS, out: Annotated[Path, typer.Option()] = PAGE) -> None:
    """Print the tables, and write the page from stored results and ``verdicts.yaml``."""
    results, verdicts = read_results(path), read_verdicts()
    out.write_text(page(results, verdicts), encoding="utf-8")
    for head, rows in ((HEAD, first_rows(results)), (NOW_HEAD, rows_now(results, verdicts))):
        typer.echo("\n".join(markdown_table(head, rows)))


if __name__ == "__main__":
    run(app)
