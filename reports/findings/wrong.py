"""The class ``Wrong``: a mistake that a backend may make in conversions, as a row of a table.

A row has the name and the sentence of a finding, says to which cases it applies, and computes its
answers. It explains each answer of a backend that equals its own. If it follows the rules of
another case instead, it explains each answer that these allow. ``cast_wrongs`` has the rows of
casts. Rows, and the search that tries them, ask here what the rules of a case allow for inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from oracles.reference import expect_by_exact
from oracles.reference.expect_by_kernels import KernelExpectations
from oracles.reference.expectations import Expected, has_branch
from oracles.reference.reference_oracle import Casts, with_nans
from reports.behaviors.regions import (
    Classes,
    applies_to,
    classify,
    evaluate,
    has_behaviors,
    real_format,
    real_patterns,
)
from reports.grading.allowed_answers import (
    ALLOWED,
    NOT_ALLOWED,
    NOT_RECOMMENDED,
    grade_answers,
    is_nan,
)
from specs.behaviors import behaviors
from specs.branches import Ruling, rounded_otherwise
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding
from specs.ruling import ruling

REFERENCE = Casts()
"""Shared by all cases, because it caches its answers to all patterns of narrow dtypes."""
Patterns = NDArray[Any]
EXPECTATIONS_KEPT = 64
"""The most arrays of expectations that are cached: many mechanisms are tried on the same inputs."""
DECODED_KEPT = 2
"""The most arrays of inputs that are cached as the kernels decode them, for all rulings."""
MOST_SAMPLED = 1024
"""The most failing inputs, and the most others, of a sample on which mechanisms are tried."""


@dataclass(frozen=True, eq=False)
class AskedInputs:
    """The inputs of a case that were asked, their answers, and which of them fail."""

    rules: Ruling
    inputs: NDArray[Any]
    answers: NDArray[Any]
    fails: Mask

    @cached_property
    def few(self) -> AskedInputs:
        """A sample of at most ``MOST_SAMPLED`` failing inputs and ``MOST_SAMPLED`` others."""
        chosen = [
            places[:: max(1, -(-places.size // MOST_SAMPLED))]
            for places in (np.flatnonzero(self.fails), np.flatnonzero(~self.fails))
        ]
        some = np.sort(np.concatenate(chosen))
        return AskedInputs(self.rules, self.inputs[some], self.answers[some], self.fails[some])

    @cached_property
    def classes(self) -> Classes:
        """The class of each input, as ``regions.classify`` defines it."""
        return classify(self.rules.source, self.rules.target, self.inputs)

    @cached_property
    def expected(self) -> Expected:
        """The answers that the case's rules allow to each input."""
        return expected_of(self.rules, self.inputs)


@lru_cache(1 << 14)
def known_ruling(case: Case) -> Ruling | None:
    """Return the ruling of a case; None if it has none, or its document no longer has the case."""
    try:
        return ruling(case)
    except (CastigateError, KeyError):
        return None


def answered_ruling(case: Case) -> Ruling | None:
    """Return the ruling of a case; None if there is none, or it rejects or opens the whole case."""
    rules = known_ruling(case)
    return None if rules is None or rules.is_rejection or rules.is_open else rules


def expected_of(rules: Ruling, inputs: NDArray[Any]) -> Expected:
    """Compute what a ruling allows for each input: by the kernels if they can, else by exact."""
    is_numeric = rules.source.is_numeric and rules.target.is_numeric and not rules.worked
    if not is_numeric:
        return expect_by_exact.expect(rules, inputs)
    return _expected_by_kernels(rules, inputs.tobytes())


@lru_cache(EXPECTATIONS_KEPT)
def _expected_by_kernels(rules: Ruling, inputs: bytes) -> Expected:
    patterns, kernels = _decoded(rules.source, inputs)
    return kernels.expect(rules, patterns)


@lru_cache(DECODED_KEPT)
def _decoded(source: Format, inputs: bytes) -> tuple[NDArray[Any], KernelExpectations]:
    """Return the patterns in ``inputs``, and an object that decodes them once for all rulings."""
    return np.frombuffer(inputs, source.storage), KernelExpectations()


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
        """Whether both formats are floats."""
        return self.source.kind == self.target.kind == "float"

    @property
    def lost_digits(self) -> int:
        """How many bits of a float's fraction the target lacks; 0 if it has no fractions at all."""
        source, target = self.source.entry, self.target.entry
        return source.mantissa - target.mantissa if target.mantissa else 0


@dataclass(frozen=True, eq=False)
class GivenAnswers(CaseFormats):
    """Inputs of a case, and the backend's answers to them."""

    inputs: Patterns
    answers: Patterns

    @cached_property
    def nans(self) -> Mask:
        """The mask of the inputs that are NaNs; no text is one."""
        return is_nan(self.source, self.inputs)


class RowAnswers(NamedTuple):
    """The answers of a row to all inputs, and the mask of the inputs to which the row applies."""

    codes: Patterns
    concerned: Mask


AnswersOfRow = Callable[[GivenAnswers], RowAnswers | None]
"""Computes the answers of a row; None if the document does not define a conversion it needs."""
Matches = Callable[[GivenAnswers, str], Mask | None]
"""Marks the answers that a row explains, at a level of rules; None if it explains none."""
Applies = Callable[[CaseFormats], bool]
Follows = Callable[[Case], Case | None]
"""Returns the case whose rules a row follows instead; None if the document has no such case."""
Reads = Callable[[GivenAnswers], Patterns | None]
"""Returns the inputs that a row takes in place of those given; None if they are not defined."""
Tells = Literal["where", "what", "form", "constant"]
"""Whether a row names the inputs that go wrong (`where`), or only the answers that come out.

The answers are those of another conversion (`what`), of a behavior of ``behaviors.yaml`` (`form`),
or of a behavior with one answer to every input (`constant`)."""


@dataclass(frozen=True, eq=False)
class Wrong:
    """A row: its name, the sentence of a finding, its answers, and to which cases it applies.

    Rows with equal names make one finding. ``matches`` is set for a row that explains other answers
    than its own, and ``follows`` for one that follows the rules of another case. Rows with an equal
    ``alike`` that is not empty do not compete to explain a single input.
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
    """The sentence if only some of the inputs in question are wrong; if empty, ``says``."""
    says_of_negative: str = ""
    """The sentence if all wrong inputs are negative; if empty, ``says``."""
    mistaken: tuple[str, ...] = ()
    """Which dtypes it takes for which others, in words such as `int8 for uint8`."""
    is_behavior: bool = False
    """Whether it converts as many backends do, so that it may give the answers of another cause."""
    outranks_behaviors: bool = False
    """Whether it is the cause where a behavior gives the same answers to inputs of a case."""
    changes_nans: bool = False
    """Whether it predicts which NaN comes out, and not only that one does."""

    def explains(self, given: GivenAnswers, level: str) -> Mask:
        """Mark the backend's answers that the row explains, at a level of rules.

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
"""Returns the rows that apply to a case, where they depend on its document or on its pair."""


def computing(
    name: str, says: str, applies: Applies = lambda _: True, **fields: Any
) -> Callable[[AnswersOfRow], Wrong]:
    """Return a decorator that makes a row of the function that computes its answers.

    ``fields`` are further fields of ``Wrong``.
    """
    return lambda answers: Wrong(name, says, answers, applies, **fields)


def if_answered(answers: AnswersOfRow) -> AnswersOfRow:
    """Wrap ``answers``: return None for a case without a ruling, or rejected or open as a whole."""
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
    """Return the row for backends that follow the rules of the case that ``follows`` returns.

    They convert the inputs that ``reads`` returns, by default those given. Without ``has_nans``,
    the row does not apply to NaNs. ``fields`` are further fields of ``Wrong``.
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
    """Return the row for backends that convert what ``reads`` returns, not the given inputs."""
    return replace(following(name, says, without_example, reads, **fields), follows=None)


def predicted_failures(wrong: Wrong, case: Case, asked: AskedInputs) -> Mask | None:
    """Mark the inputs asked for which a row's answers break a rule; None if it has no answers.

    A NaN for a NaN breaks none, unless the row ``changes_nans``.
    """
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


def stay_nans(given: GivenAnswers) -> Mask:
    """Mark the NaNs for which the backend gives some NaN."""
    stays: Mask = given.nans & is_nan(given.target, given.answers)
    return stays


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
    """Return the reference's answers, and mark the inputs that the document does not want refused.

    Refused inputs have the answer 0, and those that the document leaves open that of ``usual``.
    Raise RejectedError if the document rejects the whole case.
    """
    rules = ruling(without_example(case))
    answered = np.ones(inputs.shape, bool)
    if rules.refuses_some:
        refused = expected_of(rules, inputs).branch_indices
        answered = ~has_branch(refused, rules.refused_branches)
    codes = np.zeros(inputs.shape, rules.target.storage)
    codes[answered] = REFERENCE.cast(case, inputs[answered])
    if rules.open_branches and (found := usual(rules, inputs)) is not None:
        is_open = np.isin(expected_of(rules, inputs).branch_indices, rules.open_branches)
        codes = np.where(is_open & found.concerned, found.codes, codes)
    return RowAnswers(codes, answered)


def usual(rules: Ruling, inputs: Patterns) -> RowAnswers | None:
    """Return the answers of the usual conversion: nearest for floats, that of C for integers.

    Return None for dtypes that are no numbers.
    """
    source, target = rules.source, rules.target
    behavior = behaviors()["nearest" if target.kind == "float" else behavior_of_c(source, target)]
    if not has_behaviors(source, target) or not applies_to(behavior, source, target):
        return None
    return RowAnswers(*evaluate(behavior, source, target, inputs))


def rounded(case: Case, rounding: Rounding, inputs: Patterns) -> Patterns:
    """Return the answers that the rules of a case would require with another rounding."""
    other = rounded_otherwise(ruling(case), rounding)
    found = expected_of(other, inputs)
    return with_nans(other, replace(found, codes=found.codes.copy()))


def magnitudes_of(dtype: Format, patterns: Patterns) -> Patterns:
    """Return patterns without their sign bits."""
    found: Patterns = patterns & np.dtype(dtype.storage).type(dtype.mask ^ dtype.sign_bit)
    return found


def is_negative(source: Format, inputs: NDArray[Any]) -> Mask:
    """Mark the inputs that have a minus sign; of complex numbers, the real part decides."""
    if source.kind == "text":
        return np.array([text.startswith("-") for text in inputs.tolist()], bool)
    signs = real_patterns(source, inputs) & np.uint64(real_format(source).sign_bit)
    found: Mask = signs != 0
    return found


def negated(target: Format, codes: Patterns) -> Patterns:
    """Negate numbers; the lowest integer and a zero without a sign stay as they are."""
    storage = np.dtype(target.storage).type
    if target.kind == "float":
        sign = storage(target.sign_bit)
        has_sign = (target.entry.zero == "signed") | ((codes & ~sign) != 0)
        return np.where(has_sign, codes ^ sign, codes)
    negative: Patterns = (~codes + storage(1)) & storage(target.mask)
    return negative


def flushed(target: Format, codes: Patterns) -> RowAnswers:
    """Flush subnormal patterns to zeros of the same sign, and mark those affected."""
    magnitudes = magnitudes_of(target, codes)
    affected = (magnitudes != 0) & (magnitudes < 1 << target.entry.mantissa)
    return RowAnswers(np.where(affected, codes ^ magnitudes, codes), affected)


def is_same(target: Format, codes: Patterns, answers: Patterns) -> Mask:
    """Mark where two arrays of patterns or texts are equal; all NaNs count as equal."""
    same: Mask = codes == answers
    if target.nan_codes:
        same |= is_nan(target, codes) & is_nan(target, answers)
    return same


def allowed(case: Case, inputs: Patterns, answers: Patterns, level: str) -> Mask:
    """Mark the answers that a case allows and, unless ``level`` is `required`, recommends.

    None is marked if the case has no ruling, or is rejected or left open as a whole. For an input
    that the case leaves open, only the usual conversion counts: nearest for floats, that of C for
    integers.
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
        if (by_use := usual(rules, inputs)) is not None:
            found |= is_open & by_use.concerned & is_same(rules.target, by_use.codes, answers)
    return found


def behavior_of_c(source: Format, target: Format) -> str:
    """Return the name of the behavior by which C converts to an integer target on x86-64."""
    if source.kind != "float":
        return "wrap"
    return "via-int32" if target.bits < 32 or target.name == "int32" else "via-int64"
