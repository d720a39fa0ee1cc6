"""Judges recorded casts: lists what is allowed for an input, in JSON, and grades an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.families.cast.quick_inputs import inputs_of
from conformance.families.value_spelling import (
    ErrorDatum,
    InputDatum,
    OutputDatum,
    TextDatum,
    datum,
    patterns_of_line,
)
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    NOT_RECOMMENDED,
    OUTCOME_NAMES,
    describe_allowed,
    grade_pattern,
    grade_text,
)
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.outcomes import Anything, Rejected, Same
from specs.ruling import ruling


def check_example_input(rules: Ruling, given: int | str) -> None:
    """Raise ``CastigateError`` for an input that the document's worked example does not have."""
    if rules.worked and given not in dict(rules.worked):
        worked = [rules.source.hexadecimal(code) for code, _ in rules.worked]
        raise CastigateError(f"the example works out only {', '.join(worked)}")


def allowed_list(
    rules: Ruling, allowed: Allowed, given: int | str, level: str = "required"
) -> list[Any] | str:
    """List the allowed patterns or texts as JSON; describe any other outcome by one word.

    ``level`` is ``required``, or ``recommended`` for what is recommended among what is allowed.
    """
    words = describe_allowed(rules, allowed, given, level)
    if allowed.codes:
        return list(words)
    if words[0] in OUTCOME_NAMES and not isinstance(allowed.branch.outcome, Same):
        return words[0]
    return [{"text": word} for word in words]


def grade_answer(
    rules: Ruling, allowed: Allowed, given: int | str, answer: int | str | None
) -> int:
    """Return the grade of ``answer``, a code or text, to the input ``given``; None is an error."""
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


class CastLines:
    """Reads and judges recorded lines of a cast or a call: patterns, numbers or texts."""

    def __init__(self, case: Case) -> None:
        self._case, self._rules = case, ruling(case)

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]:
        """Yield the inputs of the tier quick as hex patterns, or texts as ``{"text": TEXT}``."""
        source = self._rules.source
        inputs = inputs_of(self._case, self._rules, seed, max_examples)
        if source.kind == "text":
            yield from ({"text": text} for text in inputs.tolist())
        elif source.bits > 64:
            for element in inputs:
                yield source.hexadecimal(int.from_bytes(element.tobytes(), "little"))
        else:
            yield from map(source.hexadecimal, inputs.tolist())

    def spelled(self, given: InputDatum) -> Any:
        """Return an input in the spelling of ``listed``; a text stays a text, whatever the source.

        Raise CastigateError for any other input that is no value of the source.
        """
        if isinstance(given, TextDatum):
            return given.model_dump()
        return self._rules.source.hexadecimal(int(datum(self._rules.source, given, "input")))

    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]:
        """Return ``verdict``, ``rule``, ``level``, ``clause`` and ``allowed``, as data for JSON.

        Full patterns are added where the line does not spell them. The output may be an error.
        Raises CastigateError if a value is none of its dtype, or if the case is a worked example
        without this input.
        """
        rules, is_error = self._rules, isinstance(output, ErrorDatum)
        value = datum(rules.source, given, "input")
        check_example_input(rules, value)
        allowed = expect_by_exact.allow(rules, value)
        branch = allowed.branch
        answer = None if isinstance(output, ErrorDatum) else datum(rules.target, output, "output")
        grade = grade_answer(rules, allowed, value, answer)
        rule, clause, level = branch.rule, branch.clause, branch.level
        if grade == NOT_RECOMMENDED:
            level = "recommended"
        # An open input may raise an error; of a case that is open as a whole, an answer may be due.
        elif is_error and (grade != ALLOWED or rules.is_open) and rules.answer_due:
            due = rules.answer_due
            rule, clause, level, grade = due.rule, due.clause, due.level, NOT_ALLOWED
        verdict = "conforms"
        if isinstance(branch.outcome, Anything) and grade == ALLOWED:
            verdict = "open"
        elif grade != ALLOWED:
            verdict = "violates" if level == "required" else "deviates"
        return {
            **patterns_of_line((rules.source, given), (rules.target, output)),
            "verdict": verdict,
            "rule": rule,
            "level": level,
            "clause": clause,
            "allowed": allowed_list(rules, allowed, value, level),
        }
