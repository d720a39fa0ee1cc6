"""What the backends of a run did on open inputs, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from oracles.reference import expect_by_kernels
from reports.behaviors.closed_forms import are_numbers
from reports.behaviors.explanation import explained, told
from reports.behaviors.tally import look_at_each, question
from reports.findings.cells import Cell, Key
from reports.run_store.answers import KeptAnswers
from specs.errors import CastigateError
from specs.ruling import Ruling, ruling

Lines = tuple[str, ...]


@dataclass
class _Alike:
    """Cells that ask a pair the same and leave the same open, by the digests of their answers."""

    rules: Ruling
    asked: str
    cells: dict[str, list[Key]] = field(default_factory=dict)


def explanations(kept: KeptAnswers, cells: Mapping[Key, Cell]) -> dict[Key, Lines]:
    """What explains the open answers of each cell, where forms speak of the pair.

    Many cells are alike: the forms are asked once for all of them.
    """
    alike: dict[tuple[object, str], _Alike] = {}
    for place, cell in cells.items():
        rules = _rules(cell)
        if rules is not None and cell.asked is not None and cell.answers is not None:
            one = alike.setdefault((rules.meaning, cell.asked), _Alike(rules, cell.asked))
            one.cells.setdefault(cell.answers, []).append(place)
    found = {
        place: lines
        for one in alike.values()
        for places, lines in zip(one.cells.values(), _lines(kept, one), strict=True)
        for place in places
    }
    return {place: found[place] for place in cells if found.get(place)}


def _rules(cell: Cell) -> Ruling | None:
    """The rules of a cell with open inputs, where forms speak of the pair."""
    if not cell.open:
        return None
    try:
        rules = ruling(cell.as_case)
    except CastigateError:
        return None  # A bitcast, or the document no longer has the case.
    return rules if are_numbers(rules.source, rules.target) else None


def _lines(kept: KeptAnswers, alike: _Alike) -> Iterator[Lines]:
    """The lines of each of several answers."""
    rules = alike.rules
    inputs = kept.array(alike.asked).values
    is_open = np.ones(inputs.size, bool)
    if not rules.is_open:  # the kernels know no complex128
        is_open = np.isin(expect_by_kernels.expect(rules, inputs).places, rules.open_places)
    asked = question(rules.source, rules.target, rules.rounding)
    answers = [kept.array(digest).values[is_open] for digest in alike.cells]
    for found in look_at_each(asked, inputs[is_open], answers):
        yield tuple(told(found, line) for line in explained(found))
