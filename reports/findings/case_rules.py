"""The rules that apply to a case, each with the inputs that it covers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reports.findings.cells import Cell
from specs.bitcast_ruling import rule_bitcast
from specs.block_ruling import rule_blocks
from specs.errors import CastigateError
from specs.loader import documents
from specs.outcomes import Anything
from specs.quantization_ruling import Formula, rule_quantization
from specs.ruling import rule_case

EVERY_INPUT = "every input"


class CaseRule(NamedTuple):
    """A rule, the inputs of a case that it covers, and whether it leaves their results open.

    For a quantization ``inputs`` names situations of a step, for blocks a question about them.
    """

    rule: str
    level: str
    clause: str
    inputs: str
    is_open: bool


def case_rules(cell: Cell) -> Iterator[CaseRule]:
    """Yield the rules of a cell's case; none if the document no longer has the case."""
    document, case = documents()[cell.document], cell.as_case
    try:
        if document.entry.bitcast is not None:
            bitcast = rule_bitcast(document, case)
            yield CaseRule(
                bitcast.rule, bitcast.level, bitcast.clause, EVERY_INPUT, bitcast.is_open
            )
            return
        if document.entry.quantization is not None:
            yield from _rules_of_formula(rule_quantization(document, case))
            return
        if document.entry.blocks is not None:
            for question, answer in rule_blocks(document, case).answers.items():
                yield CaseRule(answer.rule, answer.level, answer.clause, question, answer.is_open)
            return
        ruling = rule_case(document, case)
    except (CastigateError, KeyError):
        return
    for branch in ruling.branches:
        covers_all = ruling.is_open or len(ruling.branches) == 1
        inputs = EVERY_INPUT if covers_all else branch.input_class
        is_open = isinstance(branch.outcome, Anything)
        yield CaseRule(branch.rule, branch.level, branch.clause, inputs, is_open)


def _rules_of_formula(formula: Formula) -> Iterator[CaseRule]:
    for step, outcomes in formula.steps:
        situations: dict[tuple[str, str, str, bool], list[str]] = {}
        for situation, each in outcomes:
            key = each.rule, each.level, each.clause, each.is_open
            situations.setdefault(key, []).append(situation)
        for (rule, level, clause, is_open), names in situations.items():
            yield CaseRule(rule, level, clause, f"{step}: {', '.join(names)}", is_open)
