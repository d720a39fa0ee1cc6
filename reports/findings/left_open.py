"""Counts the inputs that documents leave open, for which no answer of a backend is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expectations import has_branch
from reports.counterexample.drawing import datum_text, value_text
from reports.dtype_order import usual_first
from reports.findings.cells import Cell
from reports.findings.finding_text import counted
from reports.findings.read_findings import read_cells
from reports.findings.wrong import expected_of, known_ruling
from reports.grading.allowed_answers import is_nan
from reports.grading.divergences import datum_of, index_of_simplest
from reports.judgement import VERDICTS
from reports.problems import ShownDatum
from reports.run_store.open_run import RunAnswers
from reports.run_store.store import RunStore
from specs.formats import Format, format_named
from specs.operations import is_cast

CHOOSE = "castigate rules lists choices"
PARTLY_OPEN = tuple(each for each in VERDICTS if each != "open")


def left_open(store: RunStore, cells: Iterable[Cell] | None = None) -> dict[str, str]:
    """Return, by backend, a line that counts the inputs which its documents leave open.

    It has one of them with its answer, of the most usual dtypes for which the run stores answers.
    A case that is open as a whole does not count, and backends without open inputs are left out.
    ``cells`` are those of the run, if they are known already.
    """
    found: dict[str, list[Cell]] = {}
    for cell in read_cells(store, PARTLY_OPEN, has_inputs=False) if cells is None else cells:
        if cell.open and cell.verdict in PARTLY_OPEN:
            found.setdefault(cell.backend, []).append(cell)
    shown = {backend: _usual_cell(some) for backend, some in found.items()}
    digests = [each for cell in shown.values() if cell for each in (cell.asked, cell.answers)]
    answers = RunAnswers(store, [*filter(None, digests)]) if digests else None
    return {
        backend: _line(some, _example(cell, answers) if cell and answers else "")
        for (backend, some), cell in zip(found.items(), shown.values(), strict=True)
    }


def _line(cells: Sequence[Cell], example: str) -> str:
    names = [*dict.fromkeys(each.document for each in cells)]
    editions = [*dict.fromkeys(f"{each.document}:{each.version}" for each in cells)]
    named = editions[0] if len(editions) == 1 else names[0]
    if len(names) > 1:
        named += f" and {counted(len(names) - 1, 'other document')}"
    count = counted(sum(each.open for each in cells), "input")
    such = f", such as {example}" if example else ""
    return f"left open by {named}: {count} in {counted(len(cells), 'case')}{such}; {CHOOSE}"


def _usual_cell(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell with the most usual dtypes whose numbers are stored, of the last version."""
    order = usual_first()
    stored = [
        each
        for each in cells
        if each.asked and each.answers and is_cast(each.as_case)
        if format_named(each.source).kind in ("float", "integer")
    ]
    key = {each.case: (order[each.source], order[each.target]) for each in stored}
    return min(reversed(stored), key=lambda each: key[each.case], default=None)


def _example(cell: Cell, answers: RunAnswers) -> str:
    """Return words for an open input of a cell with its answer; none if the document changed."""
    rules = known_ruling(cell.as_case)
    if rules is None or cell.asked is None or cell.answers is None:
        return ""
    inputs = answers.values(cell.asked)
    is_open = has_branch(expected_of(rules, inputs).branch_indices, rules.open_branches)
    if not is_open.any():
        return ""
    at = _most_telling(rules.source, inputs, is_open)
    given, answer = datum_of(inputs[at]), datum_of(answers.values(cell.answers)[at])
    return (
        f"{cell.source} {_words(rules.source, given)} to {cell.target}"
        f" (answer: {_words(rules.target, answer)})"
    )


def _most_telling(source: Format, inputs: NDArray[Any], is_open: NDArray[np.bool_]) -> int:
    """Return the index of an open input: the simplest NaN if there is one, else the simplest."""
    nans = is_open & is_nan(source, inputs) if source.kind == "float" else is_open
    return index_of_simplest(source, inputs, nans if nans.any() else is_open)


def _words(dtype: Format, datum: ShownDatum) -> str:
    """Write a datum as its value, of a NaN without payload; without a value, as its pattern."""
    value, _, payload = value_text(dtype, datum).partition(",")
    return (value.lstrip("+") if payload else value) or datum_text(dtype, datum)
