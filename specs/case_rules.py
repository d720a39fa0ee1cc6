"""The rules of its document that apply to a case, each with the inputs that it covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from specs.branches import Ruling
from specs.cases import Case
from specs.loader import Document
from specs.operations import of_family
from specs.outcomes import Anything
from specs.ruling import rule_case

EVERY_INPUT = "every input"


class CaseRule(NamedTuple):
    """A rule, the inputs of a case that it covers, and whether it leaves their results open.

    If no single input has a result of its own, ``inputs`` says in the words of the document what
    the rule is about. ``is_rejection`` says that the rule of such a case requires an error; it is
    false where single inputs have rules.
    """

    rule: str
    level: str
    clause: str
    inputs: str
    is_open: bool
    is_rejection: bool = False


@dataclass(frozen=True)
class MatchingRules:
    """The names of the rules that apply to a case.

    ``is_rejection`` says that they require an error for the whole case.
    """

    rules: tuple[str, ...]
    is_rejection: bool


def case_rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield each rule of a case, once for each class of inputs that it takes.

    A rule that only requires some answer takes none. Raise DocumentError if the rules leave a gap,
    overlap, or have another fault.
    """
    rules_of = of_family(document.entry.operation, "rules")
    yield from _of_inputs(rule_case(document, case)) if not rules_of else rules_of(document, case)


def _of_inputs(ruling: Ruling) -> Iterator[CaseRule]:
    for branch in ruling.branches:
        covers_all = ruling.is_open or len(ruling.branches) == 1
        inputs = EVERY_INPUT if covers_all else branch.input_class
        is_open = isinstance(branch.outcome, Anything)
        yield CaseRule(branch.rule, branch.level, branch.clause, inputs, is_open)


def matching_rules(document: Document, case: Case) -> MatchingRules:
    """Return the rules of a case; raise DocumentError if they leave a gap or have another fault."""
    rules_of = of_family(document.entry.operation, "rules")
    if rules_of:
        found = [*rules_of(document, case)]
        names = dict.fromkeys(each.rule for each in found)
        return MatchingRules(tuple(names), any(each.is_rejection for each in found))
    ruling = rule_case(document, case)
    rules = dict.fromkeys(branch.rule for branch in ruling.branches)
    if ruling.answer_due is not None:
        rules[ruling.answer_due.rule] = None
    return MatchingRules(tuple(rules), ruling.is_rejection)
