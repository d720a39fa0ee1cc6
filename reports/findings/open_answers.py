"""What the backends of a run did on open inputs, in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oracles.reference import by_kernels
from reports.answers import Answered
from reports.behaviour import explained, told
from reports.behaviour_forms import are_numbers
from reports.behaviour_tally import look, question
from reports.findings.cells import Cell, Key
from reports.kept_answers import KeptAnswers
from specs.errors import CastigateError
from specs.ruling import Ruling, ruling

Lines = tuple[str, ...]


def explanations(kept: KeptAnswers, cells: Mapping[Key, Cell]) -> dict[Key, Lines]:
    """What explains the open answers of each cell, where forms speak of the pair.

    Many cases ask a pair the same and leave the same open: that is explained once.
    """
    known: dict[tuple[object, ...], Lines] = {}
    found: dict[Key, Lines] = {}
    for place, cell in cells.items():
        rules = _rules(cell)
        if rules is None:
            continue
        key = (rules.meaning, cell.asked, cell.answers)
        if key not in known:
            answered = kept.answered(cell.asked, cell.answers)
            known[key] = _lines(rules, answered) if answered is not None else ()
        if known[key]:
            found[place] = known[key]
    return found


def _rules(cell: Cell) -> Ruling | None:
    """The rules of a cell with open inputs, where forms speak of the pair."""
    if not cell.open:
        return None
    try:
        rules = ruling(cell.as_case)
    except CastigateError:
        return None  # A bitcast, or the document no longer has the case.
    return rules if are_numbers(rules.source, rules.target) else None


def _lines(rules: Ruling, answered: Answered) -> Lines:
    inputs, answers = answered.inputs.values, answered.answers.values
    is_open = np.ones(inputs.size, bool)
    if not rules.is_open:  # the kernels know no complex128
        is_open = np.isin(by_kernels.expect(rules, inputs).places, rules.open_places)
    asked = question(rules.source, rules.target, rules.rounding)
    found = look(asked, inputs[is_open], answers[is_open])
    return tuple(told(found, line) for line in explained(found))
