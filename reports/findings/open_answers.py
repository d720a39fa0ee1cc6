"""Explains what the backends of a run answered to open inputs, in sentences."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference import expect_by_kernels
from reports.behaviors.closed_forms import has_behaviors
from reports.behaviors.explanation import explain, sentence_without_pair
from reports.behaviors.tally import BehaviorSearch, behavior_search, tally_each
from reports.findings.cells import Cell, CellKey
from reports.run_store.answers import RunAnswers
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.ruling import ruling

Lines = tuple[str, ...]
ALL = slice(None)


@dataclass
class _CellGroup:
    """Cells of one pair and with equal inputs, of any documents.

    ``rules`` has a ruling for each meaning, which decides the open inputs. ``cells`` groups by that
    meaning and the digest of the answers the cells that share an explanation.
    """

    search: BehaviorSearch
    asked: str
    rules: dict[object, Ruling] = field(default_factory=dict)
    cells: dict[tuple[object, str], list[CellKey]] = field(default_factory=dict)


def explain_open_answers(
    recorded: RunAnswers, cells: Mapping[CellKey, Cell], share: slice = ALL
) -> dict[CellKey, Lines]:
    """Return the sentences that explain the open answers of each cell, where closed forms exist.

    Many cells share inputs, of which their documents leave more or fewer open; each closed form is
    evaluated once per such group. With a ``share`` of the groups, only their cells are explained.
    """
    groups: dict[Hashable, _CellGroup] = {}
    for key, cell in cells.items():
        rules = _rules_if_open(cell)
        if rules is not None and cell.asked is not None and cell.answers is not None:
            asked = rules.source, rules.target, rules.rounding
            group = groups.setdefault(
                (*asked, cell.asked), _CellGroup(behavior_search(*asked), cell.asked)
            )
            group.rules[rules.meaning] = rules
            group.cells.setdefault((rules.meaning, cell.answers), []).append(key)
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
    """Yield the explanation of the open answers in each distinct array of answers."""
    inputs = recorded.array(group.asked).values
    is_open = {meaning: _open_inputs(rules, inputs) for meaning, rules in group.rules.items()}
    ever = np.logical_or.reduce([*is_open.values()])
    answers = [recorded.array(digest).values[ever] for _, digest in group.cells]
    counted = [is_open[meaning][ever] for meaning, _ in group.cells]
    for found in tally_each(group.search, inputs[ever], answers, counted):
        yield tuple(sentence_without_pair(found, line) for line in explain(found))


def _open_inputs(rules: Ruling, inputs: NDArray[Any]) -> NDArray[np.bool_]:
    if rules.is_open:
        return np.ones(inputs.size, bool)  # The kernels do not support complex128.
    return np.isin(expect_by_kernels.expect(rules, inputs).branch_indices, rules.open_branches)
