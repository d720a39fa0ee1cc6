"""Compare every case whose failing inputs a quick run calls exact with a sweep of all inputs.

A quick run follows failing inputs to the ends of their stretches. It would miss a stretch of which
it asks no input; a sweep misses none.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, run
from reports.diff.verdicts import FAILING
from reports.findings.cells import Cell
from reports.findings.find import find_findings
from reports.findings.finding import Findings
from reports.findings.finding_text import finding_record
from reports.findings.read_cells import read_cells, read_checks
from reports.run_store.answers import RunAnswers
from reports.run_store.open_run import open_run
from reports.run_store.record import Selection, TierChoice
from reports.run_store.storage import folder_at
from reports.run_store.store import RECORD, RunStore
from specs.formats import format_named
from specs.release import VERSION

COMPARED = ("wrong", "runs", "digest", "smallest", "answer", "allowed", "segments", "shown_runs")
"""The fields of a broken rule on which a quick run and a sweep must agree."""
INTRODUCTION = """\
# Exact counts against full sweeps

Written by `tox -e exact`, not by hand. A quick run calls the failing inputs of some cases
[exact](findings.md#exact-and-at-least). A sweep asked each of these cases all 2^32 inputs.

- Both must break the same rules, on the same number of inputs and in the same number of runs.
- Their checksums must be equal: they cover all failing inputs and the answers to them.
- The findings must stay the same when the results of the sweeps replace the exact ones.
"""
Cells = Mapping[str, Cell]
"""Cells by case id."""


@dataclass(frozen=True)
class PairCheck:
    """Holds the exact cases of a dtype pair; ``swept`` has what sweeps found, if there were any."""

    pair: str
    quick: Cells
    swept: Cells

    @property
    def differences(self) -> list[str]:
        """One line for each figure on which the quick run and a sweep disagree."""
        return [
            line
            for case, cell in self.swept.items()
            for line in cell_differences(self.quick[case], cell)
        ]


@dataclass(frozen=True)
class BackendCheck:
    """Holds what was compared of a backend: its pairs with exact cases, and its findings."""

    backend: str
    version: str
    pairs: tuple[PairCheck, ...]
    findings: int
    finding_differences: tuple[str, ...]

    @property
    def differences(self) -> list[str]:
        """One line for each figure on which the tiers disagree."""
        return [line for each in self.pairs for line in each.differences] + [
            *self.finding_differences
        ]


app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)


@app.command()
def main(
    backend: Annotated[list[str], typer.Option(help="repeatable")],
    out: Annotated[
        Path, typer.Option(help="the folder of all runs; it may hold runs of an earlier call")
    ],
    document: Annotated[
        list[str] | None, typer.Option(help="as of castigate run; repeatable (default: all)")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(help="SOURCE/TARGET that is swept; repeatable (default: all)"),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="the page to write")] = None,
    jobs: Annotated[int, typer.Option(help="processes")] = 2,
) -> None:
    """Compare quick runs with sweeps; exit with 1 if they disagree anywhere."""
    checks = [check_backend(name, document or (), pair, out, jobs) for name in backend]
    text = "\n".join(line for check in checks for line in _lines(check))
    typer.echo(text)
    if page is not None:
        page.write_text(f"{INTRODUCTION}\n{_setup()}\n{text}", encoding="utf-8")
    raise typer.Exit(1 if any(check.differences for check in checks) else 0)


def check_backend(
    backend: str, documents: Sequence[str], pairs: Sequence[str] | None, out: Path, jobs: int
) -> BackendCheck:
    """Compare a backend's quick run with sweeps of some pairs, of all, and of those in ``out``."""
    folder = out / quote(backend, safe="")
    selection = Selection(documents=tuple(documents))
    store = _complete_run(RunRequest((backend,), selection), folder / "quick", jobs)
    exact: dict[str, dict[str, Cell]] = {}
    for cell in read_cells(store):
        if cell.reaches_ends:
            exact.setdefault(f"{cell.source}/{cell.target}", {})[cell.case] = cell
    checks = []
    for pair, cells in exact.items():
        swept: Cells = {}
        where = folder / pair.replace("/", "-")
        if pairs is None or pair in pairs or where.exists():
            choice = TierChoice(match=tuple(cells), tier="full")
            chosen = selection.model_copy(update={"choices": (choice,)})
            full = _complete_run(RunRequest((backend,), chosen, "full"), where, jobs)
            swept = {cell.case: cell for cell in read_cells(full)}
        checks.append(PairCheck(pair, cells, swept))
    found = _findings(store, {})
    replaced = _findings(
        store, {case: cell for each in checks for case, cell in each.swept.items()}
    )
    [record] = store.record.backends
    return BackendCheck(
        backend,
        record.version,
        tuple(checks),
        sum(map(len, found.values())),
        tuple(finding_differences(found, replaced)),
    )


def cell_differences(quick: Cell, swept: Cell) -> Iterator[str]:
    """Yield a line for each figure on which a sweep disagrees with an exact case."""
    case, size = quick.case, 1 << format_named(quick.source).bits
    if swept.inputs != size:
        yield f"{case}: the sweep asked {swept.inputs:,} of {size:,} inputs"
    if quick.verdict != swept.verdict:
        yield f"{case}: {quick.verdict} at quick, {swept.verdict} at full"
    one, other = ({each.key: each for each in cell.broken} for cell in (quick, swept))
    for key in one | other:
        rule, _, level = key
        if key not in one or key not in other:
            yield f"{case}: {rule} ({level}) is broken at {'quick' if key in one else 'full'} only"
            continue
        for name in COMPARED:
            before, now = getattr(one[key], name), getattr(other[key], name)
            if before != now:
                yield f"{case}: {rule} ({level}): {name} is {before} at quick, {now} at full"


def finding_differences(quick: Findings, full: Findings) -> Iterator[str]:
    """Yield a line for each finding that only one tier has, and for each figure that differs."""
    one, other = (
        {each.id: finding_record(each, findings, "") for some in findings.values() for each in some}
        for findings in (quick, full)
    )
    for name in one | other:
        if name not in one or name not in other:
            yield f"{name} is a finding at {'quick' if name in one else 'full'} only"
            continue
        for key, before in one[name].items():
            now = other[name][key]
            if before != now:
                yield f"{name}: {key} is {before} at quick, {now} at full"


def _complete_run(request: RunRequest, folder: Path, jobs: int) -> RunStore:
    """Make a run, or continue the one in the folder, and return it when it is complete."""
    out = str(folder)
    resumes = RECORD in folder_at(out).names()
    # The quick run has checked the pairs.
    checks_pairs = request.tier == "quick"
    with progress_reporter() as progress:
        store = run(request, out, jobs, resumes, sys.argv, progress, checks_pairs=checks_pairs)
        if not store.record.complete:
            finish_run(store)
    return open_run(out)


def _findings(store: RunStore, replaced: Cells) -> Findings:
    """The findings of a run in which other cells replace some."""
    cells = (replaced.get(cell.case, cell) for cell in read_cells(store, FAILING))
    return find_findings(chain(cells, read_checks(store, FAILING)), RunAnswers(store).values)


def _setup() -> str:
    """The date and the versions of Castigate and Python."""
    today = datetime.now(UTC).date().isoformat()
    return (
        f"{today}, castigate {VERSION}, Python {platform.python_version()}, {platform.machine()}."
    )


def _lines(check: BackendCheck) -> Iterator[str]:
    """Yield the part of the page on a backend."""
    yield from ("", f"## {check.backend} {check.version}", "")
    exact = sum(len(each.quick) for each in check.pairs)
    if not exact:
        yield from ("No case is called exact.", "")
        return
    swept = sum(len(each.swept) for each in check.pairs)
    differences = check.differences
    result = f"They disagree in {len(differences)} figures:" if differences else "They agree."
    yield f"{exact} cases are called exact, and {swept} of them were swept. {result}"
    yield from (f"- {line}" for line in differences)
    if not check.finding_differences:
        yield f"The sweeps' results change none of the {check.findings} findings."
    yield from (
        "",
        "| pair | exact cases | failing inputs of each rule | sweep |",
        "|---|---|---|---|",
    )
    for each in check.pairs:
        result = "disagrees" if each.differences else "agrees" if each.swept else "not made"
        yield f"| {each.pair} | {len(each.quick)} | {_counts(each.quick.values())} | {result} |"
    yield ""


def _counts(cells: Iterable[Cell]) -> str:
    """The numbers of failing inputs and of their runs, by rule; equal ones once."""
    counts = dict.fromkeys(
        f"{each.rule}: {each.wrong:,} in {each.runs:,} runs"
        for cell in cells
        for each in cell.broken
        if each.wrong
    )
    return "; ".join(counts)


if __name__ == "__main__":
    app()
