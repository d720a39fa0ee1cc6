"""Which rules apply to a case, whether it is a cast, a call or a bitcast."""

from __future__ import annotations

from dataclasses import dataclass

from specs.bitcast_ruling import rule_bitcast
from specs.block_ruling import rule_blocks
from specs.cases import Case
from specs.loader import Document, document_named
from specs.model.document import Operation
from specs.quantization_ruling import rule_quantization
from specs.ruling import rule_case

NAMED_TENSORS: tuple[Operation, ...] = (
    "quantize", "dequantize", "dynamic-quantize", "block-quantize", "block-dequantize",
)  # fmt: skip
"""The operations that take and return tensors by name."""


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


def operation_of(case: Case) -> Operation:
    """Return the operation of a case of a shipped document, such as `cast` or `bitcast`."""
    return document_named(case.document).entry.operation


def is_cast(case: Case) -> bool:
    """Whether a case is a cast, or a call that makes one: each element alone has a ruling."""
    return operation_of(case) in ("cast", "call")


def takes_named_tensors(case: Case) -> bool:
    """Whether a case takes and returns tensors by name, as quantization and blocks do."""
    return operation_of(case) in NAMED_TENSORS


def is_of_blocks(case: Case) -> bool:
    """Whether a case quantizes or dequantizes blocks that share a scale."""
    return operation_of(case) in ("block-quantize", "block-dequantize")


def is_bitcast(case: Case) -> bool:
    """Whether a case of a shipped document is a bitcast: its shape is judged, not its values."""
    return operation_of(case) == "bitcast"
