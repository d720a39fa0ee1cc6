"""Compare every case whose failing inputs a quick run calls exact with a sweep of all inputs.

A quick run follows failing inputs to the ends of their stretches. It would miss a stretch of which
it asks no input; a sweep misses none.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any
from urllib.parse import quote

import typer

from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, run
from reports.findings.cells import Cell
from reports.findings.find import find_findings
from reports.findings.finding import Findings
from reports.findings.finding_text import finding_record
from reports.findings.read_findings import read_cells, read_checks
from reports.judgement import FAILING
from reports.run_store.open_run import RunAnswers, open_run
from reports.run_store.record import Selection, TierOfCases
from reports.run_store.storage import folder_at
from reports.run_store.store import RECORD, RunStore
from specs import VERSION
from specs.formats import format_named

COMPARED = ("wrong", "runs", "digest", "smallest", "answer", "allowed", "segments", "shown_runs")
"""The fields of a broken rule on which a quick run and a sweep must agree."""
INTRODUCTION = """\
# Exact counts against full sweeps

Written by `tox -e exact`, not by hand. A quick run calls the failing inputs of some cases
[exact](../findings.md#exact-and-at-least). A sweep asked each of these cases all 2^32 inputs.

- Both must break the same rules, on the same number of inputs and in the same number of runs.
- Their checksums must be equal: they cover all failing inputs and the answers to them.
- The findings must stay the same when the results of the sweeps replace the exact ones.
- A second quick run, with another seed and in one process, must have the same findings.
  All figures that are exact must be the same.
"""
SECOND_SEED = 1
LONGEST_FIGURE = 100
"""Characters of a figure that differs; lists of runs are longer."""
Labels = tuple[str, str]
"""Name the two runs that are compared."""
TIERS: Labels = ("at quick", "at full")
SEEDS: Labels = ("with seed 0", f"with seed {SECOND_SEED}")
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
            for line in (
                *missing_inputs(cell),
                *cell_differences(self.quick[case], cell, TIERS),
            )
        ]


@dataclass(frozen=True)
class BackendCheck:
    """Holds what was compared of a backend: its pairs with exact cases, and its findings."""

    backend: str
    version: str
    pairs: tuple[PairCheck, ...]
    findings: int
    replaced_differences: tuple[str, ...]
    """One line for each finding that the results of the sweeps change."""
    seed_differences: tuple[str, ...]
    """One line for each finding and exact figure that changes with the seed."""

    @property
    def differences(self) -> list[str]:
        """One line for each figure on which any two runs disagree."""
        of_pairs = [line for each in self.pairs for line in each.differences]
        return [*of_pairs, *self.replaced_differences, *self.seed_differences]


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
    """Compare a backend's quick run with sweeps of ``pairs``; None means all.

    Pairs that have a run in ``out`` already are compared too.
    """
    folder = out / quote(backend, safe="")
    selection = Selection(documents=tuple(documents))
    request = RunRequest((backend,), selection)
    store = _complete_run(request, folder / "quick", jobs)
    second = _complete_run(replace(request, seed=SECOND_SEED), folder / "second-quick", 1)
    exact = _exact_cells(store)
    by_pair: dict[str, dict[str, Cell]] = {}
    for case, cell in exact.items():
        by_pair.setdefault(f"{cell.source}/{cell.target}", {})[case] = cell
    checks = []
    for pair, cells in by_pair.items():
        swept: Cells = {}
        where = folder / pair.replace("/", "-")
        if pairs is None or pair in pairs or where.exists():
            choice = TierOfCases(match=tuple(cells), tier="full")
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
        tuple(finding_differences(_records(found), _records(replaced), TIERS)),
        (
            *finding_differences(
                _exact_records(found), _exact_records(_findings(second, {})), SEEDS
            ),
            *_common_differences(exact, _exact_cells(second)),
        ),
    )


def missing_inputs(swept: Cell) -> Iterator[str]:
    """Yield a line if a sweep did not ask every input."""
    size = 1 << format_named(swept.source).bits
    if swept.inputs != size:
        yield f"{swept.case}: the sweep asked {swept.inputs:,} of {size:,} inputs"


def cell_differences(one: Cell, other: Cell, labels: Labels) -> Iterator[str]:
    """Yield a line for each figure on which two runs disagree about a case."""
    if one.verdict != other.verdict:
        yield f"{one.case}: {_both(one.verdict, other.verdict, labels)}"
    rules, others = ({each.key: each for each in cell.broken} for cell in (one, other))
    for key in rules | others:
        rule, _, level = key
        if key not in rules or key not in others:
            where = labels[0] if key in rules else labels[1]
            yield f"{one.case}: {rule} ({level}) is broken {where} only"
            continue
        for name in COMPARED:
            figures = getattr(rules[key], name), getattr(others[key], name)
            if figures[0] != figures[1]:
                yield f"{one.case}: {rule} ({level}): {name} is {_both(*figures, labels)}"


Records = Mapping[str, Mapping[str, Any]]
"""Findings as data, by id."""


def finding_differences(one: Records, other: Records, labels: Labels) -> Iterator[str]:
    """Yield a line for each finding that only one run has, and for each figure that differs."""
    for name in {**one, **other}:
        if name not in one or name not in other:
            yield f"{name} is a finding {labels[0] if name in one else labels[1]} only"
            continue
        for key in one[name]:
            figures = one[name][key], other[name][key]
            if figures[0] != figures[1]:
                yield f"{name}: {key} is {_both(*figures, labels)}"


def _both(one: object, other: object, labels: Labels) -> str:
    short = (shorten(str(each), LONGEST_FIGURE, placeholder="…") for each in (one, other))
    return ", ".join(f"{each} {label}" for each, label in zip(short, labels, strict=True))


def _records(findings: Findings) -> dict[str, dict[str, Any]]:
    return {
        each.id: finding_record(each, findings, "") for found in findings.values() for each in found
    }


def _exact_records(findings: Findings) -> dict[str, dict[str, Any]]:
    """Reduce findings to what no seed may change: kinds, sentences, and exact figures."""
    return {
        name: {
            "kind": each["kind"],
            "finding": each["finding"],
            "exact cases": [share for share in each["cases"] if share["exact"]],
        }
        for name, each in _records(findings).items()
    }


def _exact_cells(store: RunStore) -> Cells:
    """The cases of a run whose failing inputs were followed to their ends."""
    return {cell.case: cell for cell in read_cells(store) if cell.reaches_ends}


def _common_differences(one: Cells, other: Cells) -> Iterator[str]:
    """Yield the differences of the cases that two quick runs call exact."""
    for case in one:
        if case in other:
            yield from cell_differences(one[case], other[case], SEEDS)


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
    """Find the findings of a run, with ``replaced`` cells in place of its own of the same cases."""
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
    swept = sum(len(each.swept) for each in check.pairs)
    yield f"- Cases called exact: {exact}; swept: {swept}."
    if not check.replaced_differences:
        yield f"- Findings: {check.findings}; the results of the sweeps change none."
    if not check.seed_differences:
        yield "- The second quick run has the same findings and exact figures."
    yield from (f"- **Different**: {line}" for line in check.differences)
    if not exact:
        return
    yield from (
        "",
        "| pair | exact cases | failing inputs (runs) of each rule | sweep |",
        "|---|---|---|---|",
    )
    for each in check.pairs:
        result = "disagrees" if each.differences else "agrees" if each.swept else "not made"
        yield f"| {each.pair} | {len(each.quick)} | {_counts(each.quick.values())} | {result} |"
    yield ""


def _counts(cells: Iterable[Cell]) -> str:
    """The numbers of failing inputs and of their runs, by rule; equal ones once."""
    counts = dict.fromkeys(
        f"{each.rule}: {each.wrong:,} ({each.runs:,})"
        for cell in cells
        for each in cell.broken
        if each.wrong
    )
    return "; ".join(counts)


if __name__ == "__main__":
    app()
