"""Explains what the backends of a run answered to open inputs, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from oracles.reference import expect_by_kernels
from reports.behaviors.closed_forms import has_behaviors
from reports.behaviors.explanation import explain, sentence_without_pair
from reports.behaviors.tally import behavior_search, tally_each
from reports.findings.cells import Cell, CellKey
from reports.run_store.answers import RunAnswers
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.ruling import ruling

Lines = tuple[str, ...]
ALL = slice(None)


@dataclass
class _CellGroup:
    """Cells with equal rules and equal inputs, grouped by the digest of their answers."""

    rules: Ruling
    asked: str
    cells: dict[str, list[CellKey]] = field(default_factory=dict)


def explain_open_answers(
    recorded: RunAnswers, cells: Mapping[CellKey, Cell], share: slice = ALL
) -> dict[CellKey, Lines]:
    """Return the sentences that explain the open answers of each cell, where closed forms exist.

    Many cells share rules and inputs; each closed form is evaluated once per such group. With a
    ``share`` of the groups, only their cells are explained.
    """
    groups: dict[tuple[object, str], _CellGroup] = {}
    for key, cell in cells.items():
        rules = _rules_if_open(cell)
        if rules is not None and cell.asked is not None and cell.answers is not None:
            group = groups.setdefault((rules.meaning, cell.asked), _CellGroup(rules, cell.asked))
            group.cells.setdefault(cell.answers, []).append(key)
    found = {
        key: lines
        for group in [*groups.values()][share]
        for keys, lines in zip(group.cells.values(), _explain_group(recorded, group), strict=True)
        for key in keys
    }
    return {key: found[key] for key in cells if found.get(key)}


def _rules_if_open(cell: Cell) -> Ruling | None:
    """The rules of a cell that has open inputs, if closed forms exist for its dtypes."""
    if not cell.open:
        return None
    try:
        rules = ruling(cell.as_case)
    except CastigateError:
        return None  # A bitcast, or the document no longer has the case.
    return rules if has_behaviors(rules.source, rules.target) else None


def _explain_group(recorded: RunAnswers, group: _CellGroup) -> Iterator[Lines]:
    """Yield the explanation of each distinct array of answers in a group."""
    rules = group.rules
    inputs = recorded.array(group.asked).values
    is_open = np.ones(inputs.size, bool)
    if not rules.is_open:  # The kernels do not support complex128.
        is_open = np.isin(
            expect_by_kernels.expect(rules, inputs).branch_indices, rules.open_branches
        )
    asked = behavior_search(rules.source, rules.target, rules.rounding)
    answers = [recorded.array(digest).values[is_open] for digest in group.cells]
    for found in tally_each(asked, inputs[is_open], answers):
        yield tuple(sentence_without_pair(found, line) for line in explain(found))
