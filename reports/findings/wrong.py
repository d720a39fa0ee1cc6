"""A wrong: what a backend may do instead of what a document wants, as one row of a table.

A row has the name and the sentence of a finding, says to which cases it applies, and computes its
answers. It explains an answer of a backend that equals its own, or that the rules allow which it
follows instead. ``cast_wrongs`` has the rows of casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from oracles.reference.expectations import has_branch
from oracles.reference.reference_oracle import Casts, with_nans
from reports.behaviors.regions import applies_to, evaluate
from reports.findings.failing_inputs import AskedInputs, answered_ruling, expected_of
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    NOT_RECOMMENDED,
    grade_answers,
    is_nan,
)
from specs.behaviors import behaviors
from specs.branches import rounded_otherwise
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding
from specs.ruling import ruling

REFERENCE = Casts()
"""Shared by all cases, because it caches its answers to all patterns of narrow dtypes."""
Patterns = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CaseFormats:
    """A case, with the formats of its inputs and answers."""

    case: Case

    @cached_property
    def source(self) -> Format:
        """The format of the inputs."""
        return format_named(self.case.source)

    @cached_property
    def target(self) -> Format:
        """The format of the answers."""
        return format_named(self.case.target)

    @property
    def is_numeric(self) -> bool:
        """Whether both formats have one number per pattern."""
        return self.source.is_numeric and self.target.is_numeric

    @property
    def is_between_floats(self) -> bool:
        """Whether floats become floats."""
        return self.source.kind == self.target.kind == "float"


@dataclass(frozen=True, eq=False)
class GivenAnswers(CaseFormats):
    """Inputs of a case, and the backend's answers to them."""

    inputs: Patterns
    answers: Patterns

    @cached_property
    def nans(self) -> Mask:
        """Which inputs are NaNs; no text is one."""
        return is_nan(self.source, self.inputs)


class RowAnswers(NamedTuple):
    """The answers of a row to all inputs, and the mask of those inputs that the row is about."""

    codes: Patterns
    concerned: Mask


AnswersOfRow = Callable[[GivenAnswers], RowAnswers | None]
"""Computes what a row answers; None if the document does not define the conversions it needs."""
Matches = Callable[[GivenAnswers, str], Mask | None]
"""Tells which given answers a row explains at a level of rules; None if it explains none."""
Applies = Callable[[CaseFormats], bool]
Follows = Callable[[Case], Case | None]
"""Gives the case whose rules a row follows instead; None if the document has no such case."""
Reads = Callable[[GivenAnswers], Patterns | None]
"""Gives the inputs that a row takes for those given; None if they are not defined."""
Tells = Literal["where", "what", "form", "constant"]
"""What a row says: which inputs are wrong (`where`), or only what comes out.

What comes out is that of another conversion (`what`), of a behavior of ``behaviors.yaml`` (`form`),
or of a behavior with one answer to every input (`constant`)."""


@dataclass(frozen=True, eq=False)
class Wrong:
    """One row: its name, the sentence of a finding, its answers, and to which cases it applies.

    Rows with equal names make one finding. ``matches`` is for a row that explains other answers
    than its own, and ``follows`` for one that follows the rules of another case. Of rows that are
    ``alike`` the first stands for all.
    """

    name: str
    says: str
    answers: AnswersOfRow
    applies: Applies = lambda _: True
    matches: Matches | None = None
    follows: Follows | None = None
    tells: Tells = "where"
    alike: str = ""
    says_in_part: str = ""
    """The sentence if only some of the inputs are wrong that it is about."""
    says_of_negative: str = ""
    """The sentence if all inputs are negative."""
    mistaken: tuple[str, ...] = ()
    """The dtypes that it takes for others, in words."""
    changes_nans: bool = False
    """Whether it says which of several NaNs comes out."""

    def explains(self, given: GivenAnswers, level: str) -> Mask:
        """Tell which of the backend's answers the row explains, at a level of rules.

        These are the answers that ``matches`` accepts, or without it those equal to the row's own.
        """
        if self.matches is not None:
            matching = self.matches(given, level)
        elif (found := self.answers(given)) is not None:
            matching = found.concerned & is_same(given.target, found.codes, given.answers)
        else:
            matching = None
        return nowhere(given) if matching is None else matching


RowsOfTable = Callable[[CaseFormats], Iterable[Wrong]]
"""Gives the rows that apply to a case, where these depend on its document or on its pair."""


def computing(
    name: str, says: str, applies: Applies = lambda _: True, **fields: Any
) -> Callable[[AnswersOfRow], Wrong]:
    """Return a decorator that makes a row of the function that computes its answers."""
    return lambda answers: Wrong(name, says, answers, applies, **fields)


def if_answered(answers: AnswersOfRow) -> AnswersOfRow:
    """Make a function answer None for a case that its document rejects or leaves open."""
    return lambda given: None if answered_ruling(given.case) is None else answers(given)


def following(
    name: str,
    says: str,
    follows: Follows,
    reads: Reads = lambda given: given.inputs,
    *,
    has_nans: bool = True,
    **fields: Any,
) -> Wrong:
    """Make the row of a backend that answers as the document wants it for another case.

    It may also read other inputs than it is given. Without ``has_nans`` it is not about NaNs.
    """

    def other(given: GivenAnswers) -> tuple[Case, Patterns] | None:
        case = follows(given.case)
        read = reads(given) if case is not None else None
        if case is None or read is None or answered_ruling(case) is None:
            return None
        return case, read

    def concerned(given: GivenAnswers, found: Mask) -> Mask:
        return found if has_nans else found & ~given.nans

    def answers(given: GivenAnswers) -> RowAnswers | None:
        if (asked := other(given)) is None:
            return None
        codes, answered = right(*asked)
        return RowAnswers(codes, concerned(given, answered))

    def matches(given: GivenAnswers, level: str) -> Mask | None:
        if (asked := other(given)) is None:
            return None
        return concerned(given, allowed(*asked, given.answers, level))

    return Wrong(name, says, answers, matches=matches, follows=follows, **fields)


def reading(name: str, says: str, reads: Reads, **fields: Any) -> Wrong:
    """Make the row of a backend that reads other inputs than it is given."""
    return replace(following(name, says, without_example, reads, **fields), follows=None)


def predicted_failures(wrong: Wrong, case: Case, asked: AskedInputs) -> Mask | None:
    """Tell on which inputs a row would break a rule of the case; None if it has no answers."""
    rules, inputs = asked.rules, asked.inputs
    given = GivenAnswers(case, inputs, asked.answers)
    found = wrong.answers(given)
    if found is None:
        return None
    codes, concerned = found
    if not wrong.changes_nans:
        concerned = concerned & ~(given.nans & is_nan(rules.target, codes))
    if rules.target.is_numeric:
        grades = grade_answers(rules, inputs, asked.expected, codes)
        failures: Mask = concerned & (grades != ALLOWED)
        return failures
    failures = nowhere(given)
    some = inputs[concerned]
    grades = grade_answers(rules, some, expected_of(rules, some), codes[concerned])
    failures[concerned] = grades != ALLOWED
    return failures


def nowhere(given: GivenAnswers) -> Mask:
    """Return the mask that marks no input."""
    return np.zeros(given.inputs.shape, bool)


def everywhere(given: GivenAnswers) -> Mask:
    """Return the mask that marks every input."""
    return np.ones(given.inputs.shape, bool)


def without_example(case: Case) -> Case:
    """Return the case without its worked example, whose rules cover only the example's inputs."""
    return replace(case, example=None)


def right(case: Case, inputs: Patterns) -> RowAnswers:
    """Return the reference's answers, and which inputs the document does not want refused.

    Refused inputs have the answer 0. Raise an error if the document rejects the whole case.
    """
    rules = ruling(without_example(case))
    if not rules.refuses_some:
        return RowAnswers(REFERENCE.cast(case, inputs), np.ones(inputs.shape, bool))
    answered = ~has_branch(expected_of(rules, inputs).branch_indices, rules.refused_branches)
    codes = np.zeros(inputs.shape, rules.target.storage)
    codes[answered] = REFERENCE.cast(case, inputs[answered])
    return RowAnswers(codes, answered)


def rounded(case: Case, rounding: Rounding, inputs: Patterns) -> Patterns:
    """Return the answers that the rules of a case would require with another rounding."""
    other = rounded_otherwise(ruling(case), rounding)
    found = expected_of(other, inputs)
    return with_nans(other, replace(found, codes=found.codes.copy()))


def is_same(target: Format, codes: Patterns, answers: Patterns) -> Mask:
    """Tell which patterns equal the answers; all NaNs count as equal."""
    same: Mask = codes == answers
    if target.nan_codes:
        same |= is_nan(target, codes) & is_nan(target, answers)
    return same


def allowed(case: Case, inputs: Patterns, answers: Patterns, level: str) -> Mask:
    """Tell which answers break no rule of a case at a level; none if it rejects or is open.

    For an input that the case leaves open, only the usual conversion counts: nearest for floats,
    that of C for integers.
    """
    rules = answered_ruling(case)
    if rules is None:
        return np.zeros(inputs.shape, bool)
    expected = expected_of(rules, inputs)
    grades = grade_answers(rules, inputs, expected, answers)
    found: Mask = grades < (NOT_ALLOWED if level == "required" else NOT_RECOMMENDED)
    is_open = np.isin(expected.branch_indices, rules.open_branches)
    if is_open.any():
        found &= ~is_open
        source, target = rules.source, rules.target
        is_float = target.kind == "float"
        usual = behaviors()["nearest" if is_float else behavior_of_c(source, target)]
        if applies_to(usual, source, target):
            codes, defined = evaluate(usual, source, target, inputs)
            found |= is_open & defined & is_same(target, codes, answers)
    return found


def behavior_of_c(source: Format, target: Format) -> str:
    """Return the name of the behavior by which C converts to an integer on x86-64."""
    if source.kind != "float":
        return "wrap"
    return "via-int32" if target.bits < 32 or target.name == "int32" else "via-int64"
