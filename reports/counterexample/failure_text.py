"""A failure as text: rule, smallest input with its bits, how much fails, and a reproduction."""

from __future__ import annotations

from collections.abc import Iterator

from reports.counterexample.drawing import (
    aligned_rows,
    allowed_columns,
    datum_columns,
    datum_text,
)
from reports.judgement import Judgement
from reports.problems import WrongValues
from specs.cases import Case
from specs.formats import Format, format_named
from specs.plain_text import plain_text

SHOWN_RUNS = 3


def failure_text(case: Case, judgement: Judgement) -> str:
    """Describe a failing judgement in several lines: rule, bits, extent and reproduction."""
    return plain_text("\n".join(_lines(case, judgement)))


def _lines(case: Case, judgement: Judgement) -> Iterator[str]:
    yield f"{case.id} on {judgement.backend}: {judgement.verdict}"
    for fault in judgement.faults:
        yield f"  rule      {fault.rule}, {fault.level}"
        yield f"  clause    {fault.clause}"
    if judgement.message:
        yield f"  {judgement.message}"
    for divergence in judgement.divergences:
        yield from _divergence_lines(case, judgement, divergence)
    if judgement.reproduction:
        yield "  reproduce"
        yield from (f"    {line}" for line in judgement.reproduction.strip().splitlines())


def _divergence_lines(case: Case, judgement: Judgement, divergence: WrongValues) -> Iterator[str]:
    source, target = format_named(case.source), format_named(case.target)
    yield f"  rule      {divergence.rule}, {divergence.level}"
    yield f"  clause    {divergence.clause}"
    rows = [("input", datum_columns(source, divergence.smallest))]
    rows += [("expected", allowed_columns(target, allowed)) for allowed in divergence.allowed]
    rows += [("answer", datum_columns(target, divergence.answer))]
    yield from aligned_rows(rows)
    runs = _runs_text(source, divergence)
    yield f"  fails     {divergence.count} of {judgement.inputs} inputs: {runs}"


def _runs_text(source: Format, divergence: WrongValues) -> str:
    """List the first runs of failing inputs, how many are left out, and the last run."""
    runs = divergence.runs
    rows = range(runs.first.size)
    few = [*rows[:SHOWN_RUNS], rows[-1]] if runs.total > SHOWN_RUNS + 1 else rows
    texts = []
    for row in few:
        run = runs.at(slice(row, row + 1))
        first, last = (datum_text(source, ends.tolist()[0]) for ends in (run.first, run.last))
        texts.append(first if first == last else f"{first} to {last}")
    if len(few) < runs.total:
        texts.insert(-1, f"{runs.total - len(few)} more runs")
    return ", ".join(texts)
