"""Grades answers, bit patterns and texts, by what a ruling allows, without any tolerance.

Every answer gets a grade: ``ALLOWED``, ``NOT_RECOMMENDED`` or ``NOT_ALLOWED``. ``grade_answers``
grades arrays; ``grade_pattern`` and ``grade_text`` grade single answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import exact_text, expect_by_exact, expect_by_kernels, expect_by_staircase
from oracles.reference.expectations import Allowed, Expected
from oracles.reference.kernel_text import surely_read_back
from specs.branches import Ruling
from specs.formats import Format
from specs.outcomes import (
    Anything,
    Either,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Same,
)

OUTCOME_NAMES = (
    "any-nan",
    "+nan",
    "-nan",
    "anything",
    "error",
    "plain-text",
    "plain-value",
    "parses-to-input",
)
"""How ``describe_allowed`` names outcomes that do not list patterns or texts."""

STAIRCASE_FROM = 1000
"""From this many inputs on, building a staircase is faster than deciding each input alone."""
CACHED_RULINGS = 32
"""The most rulings, and the most outcomes for texts, whose results are cached."""
MOST_TEXTS = 1 << 18


class Expectations:
    """Computes what a ruling expects of inputs, and caches it for the last few rulings.

    With ``independent``, the exact definition decides instead of the kernels. So the reference,
    which answers by the kernels, is not judged by them.
    """

    def __init__(self, independent: bool) -> None:
        self.independent = independent
        self._by_kernels = expect_by_kernels.KernelExpectations()
        self._known: dict[Hashable, tuple[Bits, Expected]] = {}
        self._graded: dict[Hashable, tuple[Bits, Bits, Grades]] = {}

    def of(self, ruling: Ruling, inputs: Bits) -> Expected:
        """Return what a ruling expects of each input, cached per array object; if open, zeros."""
        if ruling.is_open:
            # Any answer is allowed, so none is computed; the kernels have no complex values.
            nothing = np.zeros(inputs.shape, ruling.target.storage)
            return Expected(np.zeros(inputs.shape, np.uint8), nothing, nothing)
        known = self._known.get(ruling.meaning)
        if known is not None and known[0] is inputs:
            return known[1]
        expected = self._expect(ruling, inputs)
        _remember(self._known, ruling.meaning, (inputs, expected))
        return expected

    def grades(self, ruling: Ruling, inputs: Bits, expected: Expected, answers: Bits) -> Grades:
        """Return the grade of each answer, cached for the same input array and equal answers."""
        known = self._graded.get(ruling.meaning)
        if known is not None and known[0] is inputs and np.array_equal(known[1], answers):
            return known[2]
        grades = grade_answers(ruling, inputs, expected, answers)
        _remember(self._graded, ruling.meaning, (inputs, answers, grades))
        return grades

    def _expect(self, ruling: Ruling, inputs: Bits) -> Expected:
        to_text = not ruling.target.is_numeric
        if ruling.worked or not ruling.source.is_numeric or (self.independent and to_text):
            return expect_by_exact.expect(ruling, inputs)
        if to_text:
            return expect_by_kernels.expect_texts(ruling, inputs)
        if not self.independent:
            return self._by_kernels.expect(ruling, inputs)
        if inputs.size > STAIRCASE_FROM and _is_rising(inputs):
            return expect_by_staircase.expect(ruling, inputs)
        return expect_by_exact.expect(ruling, inputs)


Kept = TypeVar("Kept")


def _remember(known: dict[Hashable, Kept], key: Hashable, value: Kept) -> None:
    known.pop(key, None)
    if len(known) >= CACHED_RULINGS:
        del known[next(iter(known))]
    known[key] = value


def _is_rising(inputs: Bits) -> bool:
    return inputs.ndim == 1 and bool((inputs[1:] > inputs[:-1]).all())


def grade_answers(ruling: Ruling, inputs: Bits, expected: Expected, answers: Bits) -> Grades:
    """Return the grade of each answer: ALLOWED, NOT_RECOMMENDED or NOT_ALLOWED.

    ``expected`` is what the ruling expects of the inputs, which are in the same order.
    """
    if ruling.is_open:
        return np.full(answers.shape, ALLOWED, np.uint8)
    if ruling.target.kind == "text":
        return _grade_texts(ruling, inputs, expected, answers)
    wrong: NDArray[np.bool_] = (answers != expected.codes) & (answers != expected.others)
    for index, branch in enumerate(ruling.branches):
        match branch.outcome:
            case Anything():
                wrong &= expected.branch_indices != index
            case Nan():
                here = expected.branch_indices == index
                allowed = allowed_by_constant(ruling.target, branch.outcome, answers)
                wrong = np.where(here, ~allowed, wrong)
            case Rejected():
                wrong |= expected.branch_indices == index
    grades = np.where(wrong, np.uint8(NOT_ALLOWED), np.uint8(ALLOWED))
    for index, branch in enumerate(ruling.branches):
        if branch.recommended is not None:
            recommended = allowed_by_constant(ruling.target, branch.recommended, answers)
            here = (grades == ALLOWED) & (expected.branch_indices == index)
            grades[here & ~recommended] = NOT_RECOMMENDED
    return grades


def allowed_by_constant(target: Format, outcome: Outcome, answers: Bits) -> NDArray[np.bool_]:
    """Mark the answers that are allowed by an outcome that is the same for all inputs.

    Such an outcome is one pattern, one of two of them, or the NaNs of a sign. Any other raises
    AssertionError.
    """
    match outcome:
        case Nan(sign=sign):
            return is_nan(target, answers, sign)
        case Exactly(code=code):
            return np.asarray(answers == code)
        case Either(options=options):
            one, *_, other = [allowed_by_constant(target, each, answers) for each in options] * 2
            return one | other
    raise AssertionError(f"{outcome} is not the same for all inputs")


def is_nan(target: Format, patterns: Bits, sign: str = "any") -> NDArray[np.bool_]:
    """Mark the patterns that are NaNs of a sign: ``+``, ``-`` or ``any``."""
    found = np.zeros(patterns.shape, bool)
    for codes in target.nans(sign):
        found |= (patterns >= codes[0]) & (patterns <= codes[-1])
    return found


def _grade_texts(ruling: Ruling, inputs: Bits, expected: Expected, answers: Bits) -> Grades:
    grades = np.full(answers.shape, ALLOWED, np.uint8)
    for index, branch in enumerate(ruling.branches):
        here = np.flatnonzero(expected.branch_indices == index)
        given = ruling.source, inputs[here], answers[here]
        if branch.recommended:
            grades[here[~_accepted(branch.recommended, *given)]] = NOT_RECOMMENDED
        grades[here[~_accepted(branch.outcome, *given)]] = NOT_ALLOWED
    return grades


def _accepted(outcome: Outcome, source: Format, inputs: Bits, answers: Bits) -> NDArray[np.bool_]:
    """Mark the texts that an outcome allows as the answers to their inputs.

    A regular expression or a float64 decides it where that is enough, else the exact definition.
    """
    if isinstance(outcome, Anything):
        return np.ones(answers.shape, bool)
    allowed = np.zeros(answers.shape, bool)
    unsure = np.ones(answers.shape, bool)
    if isinstance(outcome, PlainText):
        plain = (exact_text.PLAIN.fullmatch(each) is not None for each in answers.tolist())
        unsure = np.fromiter(plain, bool, answers.size)
    if isinstance(outcome, ParsesTo | PlainText) and source.kind in ("float", "integer"):
        allowed = unsure & surely_read_back(source, inputs, answers)
        unsure &= ~allowed
    known = _texts_known(source, outcome)
    if len(known) > MOST_TEXTS:
        known.clear()
    rest = np.flatnonzero(unsure)
    rows = [*zip(inputs[rest].tolist(), answers[rest].tolist(), strict=True)]
    for row in rows:
        if row not in known:
            known[row] = exact_text.accepts(source, outcome, *row)
    allowed[rest] = [known[row] for row in rows]
    return allowed


@lru_cache(CACHED_RULINGS)
def _texts_known(source: Format, outcome: Outcome) -> dict[tuple[int | str, str], bool]:
    """Return the cache, which callers fill, of whether an outcome allows a text, by input and text.

    Versions of a document share most outcomes, and so their caches.
    """
    return {}


def grade_text(ruling: Ruling, branch_index: int, datum: int | str, answer: str) -> int:
    """Return the grade of a text as the answer to the input ``datum``.

    ``branch_index`` is the index of the ruling's branch that takes the input.
    """
    branch = ruling.branches[branch_index]
    if not exact_text.accepts(ruling.source, branch.outcome, datum, answer):
        return NOT_ALLOWED
    weak = branch.recommended
    if weak and not exact_text.accepts(ruling.source, weak, datum, answer):
        return NOT_RECOMMENDED
    return ALLOWED


def grade_pattern(ruling: Ruling, allowed: Allowed, answer: int) -> int:
    """Return the grade of a bit pattern as the answer to an input for which ``allowed`` holds.

    The branch must name patterns or NaNs: where it allows anything, the grade is NOT_ALLOWED.
    """
    branch = allowed.branch
    if not _allows(ruling.target, branch.outcome, allowed.codes, answer):
        return NOT_ALLOWED
    recommended = branch.recommended
    if recommended and not _allows(ruling.target, recommended, allowed.codes, answer):
        return NOT_RECOMMENDED
    return ALLOWED


def _allows(target: Format, outcome: Outcome, codes: tuple[int, ...], answer: int) -> bool:
    match outcome:
        case Nan(sign=sign):
            return any(answer in nans for nans in target.nans(sign))
        case Exactly(code=code):
            return answer == code
    return answer in codes


def describe_allowed(
    ruling: Ruling, allowed: Allowed, datum: int | str, level: str = "required"
) -> tuple[str, ...]:
    """Describe what is allowed for an input: hex patterns, a text, or a name of ``OUTCOME_NAMES``.

    At the level ``recommended``, describe only what the rule recommends, if it recommends a part of
    what it allows.
    """
    branch = allowed.branch
    match branch.strictest if level == "recommended" else branch.outcome:
        case Exactly(code=code):
            return (ruling.target.hexadecimal(code),)
        case Anything():
            return ("anything",)
        case Nan(sign=sign):
            return (f"{sign}nan" if sign in "+-" else "any-nan",)
        case Rejected():
            return ("error",)
        case Same() if isinstance(datum, str):
            return (datum,)
        case PlainText(reads_back=reads_back):
            return ("plain-value" if reads_back else "plain-text",)
        case ParsesTo():
            return ("parses-to-input",)
    return tuple(ruling.target.hexadecimal(code) for code in allowed.codes)


ALLOWED: Final = 0
"""The grade of an answer that the rule allows, and that it recommends where it recommends one."""
NOT_RECOMMENDED: Final = 1
"""The grade of an answer that the rule allows, but that is not the one it recommends."""
NOT_ALLOWED: Final = 2
"""The grade of an answer that the rule does not allow, whatever the rule's level is."""

Grades = NDArray[np.uint8]
BLOCK = 1 << 16
"""Answers that are looked up at a time, so that the indices stay in a core's cache."""

RuleKey = tuple[str, str, str]
"""A rule, its clause, and the level at which it is broken."""


@dataclass(frozen=True, eq=False)
class RuleGroups:
    """The rule keys of all branches of a ruling, required levels first."""

    keys: tuple[RuleKey, ...]
    _group_of: NDArray[np.uint8]

    def of(self, grades: Grades, branch_indices: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return 1 + the index of the key that each answer breaks, or 0 where it is allowed."""
        groups, table = np.empty(grades.size, np.uint8), self._group_of.ravel()
        count = np.uint16(self._group_of.shape[1])
        for first in range(0, grades.size, BLOCK):
            here = slice(first, first + BLOCK)
            # One index into the flattened table: numpy takes several times as long for two.
            groups[here] = table.take(count * grades[here] + branch_indices[here])
        return groups


@lru_cache(maxsize=256)
def rule_groups(ruling: Ruling) -> RuleGroups:
    """Return the rule groups of a ruling.

    Each branch has a key with its own level, and one with ``recommended`` even if it recommends
    nothing. Branches with the same rule, clause and level share a key.
    """
    by_branch = [
        {
            NOT_RECOMMENDED: (branch.rule, branch.clause, "recommended"),
            NOT_ALLOWED: (branch.rule, branch.clause, branch.level),
        }
        for branch in ruling.branches
    ]
    distinct = {key for keys in by_branch for key in keys.values()}
    keys = sorted(distinct, key=lambda key: (key[2] != "required", key))
    group_of = np.zeros((NOT_ALLOWED + 1, len(by_branch)), np.uint8)
    for index, key_of_grade in enumerate(by_branch):
        for grade, key in key_of_grade.items():
            group_of[grade, index] = keys.index(key) + 1
    return RuleGroups(tuple(keys), group_of)
