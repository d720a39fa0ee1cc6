"""Recorded casts: what is allowed for an input, in JSON, and the grade of an answer to it."""

from __future__ import annotations

from typing import Any

from oracles.reference.expectations import Allowed
from reports.grading.allowed_answers import (
    OUTCOME_NAMES,
    describe_allowed,
    grade_pattern,
    grade_text,
)
from reports.grading.grades import ALLOWED, NOT_ALLOWED
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.outcomes import Anything, Rejected, Same


def check_example_input(rules: Ruling, given: int | str) -> None:
    """Raise ``CastigateError`` for an input that the document's worked example does not have."""
    if rules.worked and given not in dict(rules.worked):
        worked = [rules.source.hexadecimal(code) for code, _ in rules.worked]
        raise CastigateError(f"the example works out only {', '.join(worked)}")


def allowed_list(
    rules: Ruling, allowed: Allowed, given: int | str, level: str = "required"
) -> list[Any] | str:
    """List allowed patterns or texts as JSON; describe any other outcome by one word."""
    words = describe_allowed(rules, allowed, given, level)
    if allowed.codes:
        return list(words)
    if words[0] in OUTCOME_NAMES and not isinstance(allowed.branch.outcome, Same):
        return words[0]
    return [{"text": word} for word in words]


def grade_answer(
    rules: Ruling, allowed: Allowed, given: int | str, answer: int | str | None
) -> int:
    """The grade of a pattern or a text as the answer to an input; None stands for an error."""
    match allowed.branch.outcome:
        case Anything():
            return ALLOWED
        case Rejected():
            return ALLOWED if answer is None else NOT_ALLOWED
    if answer is None:
        return NOT_ALLOWED
    if isinstance(answer, str):
        return grade_text(rules, allowed.branch_index, given, answer)
    return grade_pattern(rules, allowed, answer)
