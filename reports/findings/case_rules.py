"""Which rule takes which inputs of a case, in a document's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reports.findings.cells import Cell
from specs.bitcast_ruling import rule_bitcast
from specs.errors import CastigateError
from specs.loader import documents
from specs.outcomes import Anything
from specs.ruling import rule_case

EVERY = "every input"


class Part(NamedTuple):
    """A class of a case's inputs, the rule that takes it, and whether that leaves it open."""

    rule: str
    level: str
    clause: str
    inputs: str
    is_open: bool


def parts(cell: Cell) -> Iterator[Part]:
    """The parts of a case; none where its document no longer has the case."""
    made, case = documents()[cell.document], cell.as_case
    try:
        if made.entry.bitcast is not None:
            bitcast = rule_bitcast(made, case)
            yield Part(bitcast.rule, bitcast.level, bitcast.clause, EVERY, bitcast.is_open)
            return
        rules = rule_case(made, case)
    except (CastigateError, KeyError):
        return
    for branch in rules.branches:
        inputs = EVERY if rules.is_open or len(rules.branches) == 1 else branch.input_class
        is_open = isinstance(branch.outcome, Anything)
        yield Part(branch.rule, branch.level, branch.clause, inputs, is_open)
