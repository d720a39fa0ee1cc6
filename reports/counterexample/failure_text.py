"""A failure people can use: the smallest input, drawn; the rule; how much fails; a script."""

from __future__ import annotations

from collections.abc import Iterator

from reports.counterexample.drawing import allowed_line, columns, line, pattern
from reports.diff.judgement import Divergence, Judgement
from specs.cases import Case
from specs.formats import Format, format_named

SHOWN_RUNS = 3


def block(case: Case, judgement: Judgement) -> str:
    """The whole failure as text."""
    return "\n".join(_lines(case, judgement))


def _lines(case: Case, judgement: Judgement) -> Iterator[str]:
    yield f"{case.id} on {judgement.backend}: {judgement.verdict}"
    for fault in judgement.faults:
        yield f"  rule      {fault.rule}, {fault.level}"
        yield f"  clause    {fault.clause}"
    if judgement.message:
        yield f"  {judgement.message}"
    for divergence in judgement.divergences:
        yield from _divergence(case, judgement, divergence)
    if judgement.reproduction:
        yield "  reproduce"
        yield from (f"    {part}" for part in judgement.reproduction.strip().splitlines())


def _divergence(case: Case, judgement: Judgement, divergence: Divergence) -> Iterator[str]:
    source, target = format_named(case.source), format_named(case.target)
    yield f"  rule      {divergence.rule}, {divergence.level}"
    yield f"  clause    {divergence.clause}"
    rows = [("input", line(source, divergence.smallest))]
    rows += [("expected", allowed_line(target, word)) for word in divergence.allowed]
    rows += [("answer", line(target, divergence.answer))]
    yield from columns(rows)
    yield f"  fails     {divergence.count} of {judgement.inputs} inputs: {runs(source, divergence)}"


def runs(source: Format, divergence: Divergence) -> str:
    """The runs of failing inputs: the first few, and the last."""
    found = divergence.runs
    places = range(found.first.size)
    few = [*places[:SHOWN_RUNS], places[-1]] if found.total > SHOWN_RUNS + 1 else places
    shown = []
    for place in few:
        row = found.at(slice(place, place + 1))
        first, last = (pattern(source, ends.tolist()[0]) for ends in (row.first, row.last))
        shown.append(first if first == last else f"{first} to {last}")
    if len(few) < found.total:
        shown.insert(-1, f"{found.total - len(few)} more runs")
    return ", ".join(shown)
