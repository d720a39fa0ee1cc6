"""The causes of failures that are no wrong values: refusals, crashes, shapes, and layouts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reports import case_patterns
from reports.findings.cells import BrokenRule, Cell
from reports.findings.finding import Kind
from reports.findings.finding_text import shortened
from reports.findings.mechanism_answers import known_ruling
from reports.findings.shape_rules import SHAPE_RULES, followed_rules
from specs.bitcast_ruling import rule_bitcast
from specs.editions import edition
from specs.errors import CastigateError
from specs.formats import format_named
from specs.loader import document_named
from specs.operations import is_bitcast

REJECTED = ("error",)
"""The words for what a rule allows that wants a case refused."""
ERROR_CLASS = re.compile(r"(?:^|: )([A-Za-z_]\w*): (.*)", re.DOTALL)
"""The class of an error within a message, and its text."""
OPEN_INPUTS = re.compile(r"^open inputs: .*; (?=shape \()", re.DOTALL)
"""The part of a message about open inputs, which precedes the fault of a shape."""
ADDRESS = re.compile(r"\b(?:0x[0-9a-fA-F]{6,}|\d{6,})\b")
"""A number in an error that is likely to be another one in the next run."""
OTHERWISE = re.compile(r"shape \([\d, ]*\): an element answers otherwise than in one row")
"""The part of a message that names an answer that depends on the shape."""
MALFORMED = re.compile(r"(?:shape \([\d, ]*\): )?the (?:answer|adapter)\b")
"""How a message about an answer that cannot be compared begins."""
WORD, NOT_IN_NAMES = re.compile(r"\w+"), re.compile(r"[^a-z0-9]+")
LONGEST_NAME = 50
"""Characters of a name that is made from a message."""


class Cause(NamedTuple):
    """The kind and the name of a finding; a backend has at most one finding of each."""

    kind: Kind
    name: str


CHANGES_WITH_LAYOUT = (
    Cause("depends on layout", "changes-with-layout"),
    "changes its answers with position, length or layout",
)
Failure = tuple[Cell, BrokenRule | None]
"""A cell that fails without wrong values, and the rule that it breaks, if one is named."""


def find_causes(failures: Sequence[Failure]) -> Iterator[tuple[Cause, str]]:
    """Yield the cause of each failure of one backend, and a sentence.

    Of the rules that the shape of an answer may follow it is the one that most answers follow.
    """
    followed = Counter(rule for cell, broken in failures for rule in _shape_rules(cell, broken))
    raised = {
        _cause_of_error(cell)[0].name: _cause_of_error(cell)
        for cell, broken in failures
        if not cell.check and ERROR_CLASS.search(cell.message)
    }
    for cell, broken in failures:
        if cell.check:
            yield _cause_of_check(cell, raised)
        elif rules := _shape_rules(cell, broken):
            name = max(rules, key=lambda rule: followed[rule])
            yield Cause("wrong value", name), SHAPE_RULES[name].says
        else:
            yield _cause(cell, broken)


def _shape_rules(cell: Cell, broken: BrokenRule | None) -> Sequence[str]:
    """The rules that explain the shape of a bitcast between widths."""
    source, target = format_named(cell.source), format_named(cell.target)
    if broken is None or source.bits == target.bits or not is_bitcast(cell.as_case):
        return ()
    return followed_rules(cell.message)


def _cause(cell: Cell, broken: BrokenRule | None) -> tuple[Cause, str]:
    document, operation = cell.document, document_named(cell.document).entry.operation
    if broken is not None and _wants_refusal(cell, broken):
        listed = edition(document_named(document), cell.version).listed
        if (cell.source, cell.target) not in listed:
            cause = Cause("accepts what is not listed", f"accepts-unlisted-{document}")
            return cause, f"{operation}s pairs that the version of {document} does not list"
        says = f"answers where {document} wants an error ({broken.clause})"
        return Cause("lost refusal", f"accepts-what-{document}-refuses"), says
    if cell.verdict == "crashed":
        how = f": {shortened(cell.message)}" if cell.message else ""
        return Cause("crash", "dies"), f"its process dies{how}"
    if ERROR_CLASS.search(cell.message):
        return _cause_of_error(cell)
    if broken is None:
        if MALFORMED.match(cell.message):
            says = f"returns what cannot be compared: {shortened(cell.message)}"
            return Cause("wrong value", "malformed"), says
        return Cause("wrong refusal", "no-answer"), shortened(cell.message)
    if OTHERWISE.match(cell.message):
        return CHANGES_WITH_LAYOUT
    says = shortened(_without_dtypes(cell))
    name = NOT_IN_NAMES.sub("-", says.lower()).strip("-")[:LONGEST_NAME]
    return Cause("wrong value", name), says


def _cause_of_error(cell: Cell) -> tuple[Cause, str]:
    """The cause of a failure whose message names an error.

    An error that open inputs raise, which the message tells first, is no failure.
    """
    error = ERROR_CLASS.search(OPEN_INPUTS.sub("", cell.message))
    assert error is not None
    says = f"raises {error[1]}: {shortened(ADDRESS.sub('…', error[2]))}"
    return Cause("wrong refusal", f"raises-{error[1]}"), says


def _cause_of_check(cell: Cell, raised: Mapping[str, tuple[Cause, str]]) -> tuple[Cause, str]:
    """The cause of a failure of a check on a dtype pair: an error of its cases, or the layout."""
    kind, _, pair = cell.check.partition("/")
    match cell.verdict, kind:
        case "crashed", _:
            return Cause("crash", "dies-in-some-layouts"), "its process dies for some layouts"
        case "error", _:
            if ERROR_CLASS.search(cell.message):
                cause, _ = _cause_of_error(cell)
                if cause.name in raised:
                    return raised[cause.name]
            cause = Cause("depends on layout", "raises-in-some-layouts")
            return cause, "raises an error for some lengths, shapes or layouts"
        case _, case_patterns.VARIANTS:
            road, _, _ = pair.rsplit("/", 2)
            cause = Cause("depends on layout", f"differs-from-{road}")
            return cause, f"answers otherwise than {road}"
        case _:
            return CHANGES_WITH_LAYOUT


def _wants_refusal(cell: Cell, broken: BrokenRule) -> bool:
    """Whether a broken rule wants the case refused; a fault does not say so by what it allows."""
    if broken.allowed == REJECTED:
        return True
    if broken.allowed:
        return False
    if is_bitcast(cell.as_case):
        try:
            return rule_bitcast(document_named(cell.document), cell.as_case).is_rejection
        except (CastigateError, KeyError):
            return False  # The document no longer has the case.
    rules = known_ruling(cell.as_case)
    return rules is not None and rules.is_rejection


def _without_dtypes(cell: Cell) -> str:
    """A cell's message with the roles of its dtypes in place of their names."""
    roles = {cell.target: "the target dtype", cell.source: "the source dtype"}
    return WORD.sub(lambda word: roles.get(word[0], word[0]), cell.message)
