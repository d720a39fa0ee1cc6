"""What can be said of a case whatever its operation: the rules that take it, and what they ask."""

from __future__ import annotations

from dataclasses import dataclass

from specs.bitcast_ruling import rule_bitcast
from specs.cases import Case
from specs.loader import Document, document_named
from specs.ruling import rule_case


@dataclass(frozen=True)
class Taken:
    """The rules that take a case, and whether it is to be refused as a whole."""

    rules: tuple[str, ...]
    is_rejection: bool


def take(document: Document, case: Case) -> Taken:
    """Resolve a case of any operation, or raise an error that names the rules at fault."""
    if document.entry.bitcast is not None:
        bitcast = rule_bitcast(document, case)
        return Taken((bitcast.rule,), bitcast.is_rejection)
    ruling = rule_case(document, case)
    rules = dict.fromkeys(branch.rule for branch in ruling.branches)
    if ruling.answer_due is not None:
        rules[ruling.answer_due.rule] = None
    return Taken(tuple(rules), ruling.is_rejection)


def is_bitcast(case: Case) -> bool:
    """Whether a case of a shipped document is a bitcast: its shape is judged, not its values."""
    return document_named(case.document).entry.bitcast is not None
