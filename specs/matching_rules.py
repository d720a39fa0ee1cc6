"""Which rules of its document apply to a case, whatever is asked."""

from __future__ import annotations

from dataclasses import dataclass

from specs.bitcast_ruling import rule_bitcast
from specs.block_ruling import rule_blocks
from specs.cases import Case
from specs.loader import Document
from specs.quantization_ruling import rule_quantization
from specs.ruling import rule_case


@dataclass(frozen=True)
class MatchingRules:
    """The names of the rules that apply to a case, and whether they reject it as a whole."""

    rules: tuple[str, ...]
    is_rejection: bool


def matching_rules(document: Document, case: Case) -> MatchingRules:
    """Return the rules that apply to a case; raise DocumentError if they leave a gap or overlap."""
    if document.entry.bitcast is not None:
        bitcast = rule_bitcast(document, case)
        return MatchingRules((bitcast.rule,), bitcast.is_rejection)
    if document.entry.quantization is not None:
        return MatchingRules(rule_quantization(document, case).rules, is_rejection=False)
    if document.entry.blocks is not None:
        answers = rule_blocks(document, case).answers.values()
        return MatchingRules(tuple(dict.fromkeys(each.rule for each in answers)), False)
    ruling = rule_case(document, case)
    rules = dict.fromkeys(branch.rule for branch in ruling.branches)
    if ruling.answer_due is not None:
        rules[ruling.answer_due.rule] = None
    return MatchingRules(tuple(rules), ruling.is_rejection)
