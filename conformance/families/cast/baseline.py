"""The answers to a case in one row: the baseline with which all further answers are compared.

With grades, these answers also show which values are wrong. A trap, or an error about one value,
refuses a whole tensor. So where a document wants some inputs refused and the others answered, the
former are kept out of every tensor, and a spread of them is asked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.quick_inputs import inputs_of
from conformance.judging.asking import Ask, Subject
from conformance.judging.values import Departed, ValueAnswer, ask_values
from oracles.backend.replies import Answered, Crashed, NoAnswer, Raised, described, one_line
from oracles.protocol import Bits
from oracles.reference.expectations import Expected, has_branch
from reports.grading.allowed_answers import ALLOWED, Grades, grade_answers
from reports.grading.divergences import find_failures, wrong_values
from reports.grading.failure_runs import Gather, gather
from reports.judgement import Judgement, Verdict
from reports.problem_words import words
from reports.problems import Problem, WrongValues
from specs.branches import Branch, Ruling
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.formats import Format
from specs.loader import document_named
from specs.operations import is_cast
from specs.outcomes import Anything, Nan
from specs.ruling import ruling

NOTHING_TO_ASK = "every document rejects this pair"
MOST_ALONE = 320
"""About how many inputs are requested alone; an error costs as much time as a large tensor."""
WIDEST = 32
"""How many stretches, the widest ones, have their ends requested."""


@dataclass(frozen=True)
class NoBaseline:
    """Replaces a baseline where a backend does not answer a row of all inputs, with the reason."""

    reason: str


@dataclass(frozen=True)
class Baseline:
    """Inputs of a case, what the rules expect for them, and the answers to them in one row."""

    case: Case
    rules: Ruling
    inputs: Bits
    expected: Expected
    answers: Bits

    def at(self, indices: NDArray[np.intp]) -> Baseline:
        """Return the baseline of the inputs with these indices."""
        return Baseline(
            self.case,
            self.rules,
            self.inputs[indices],
            self.expected.at(indices),
            self.answers[indices],
        )

    @cached_property
    def is_open(self) -> NDArray[np.bool_]:
        """A mask of the inputs for which any answer, any NaN, or any NaN of a sign is allowed."""
        without_pattern = [
            index
            for index, branch in enumerate(self.rules.branches)
            if isinstance(branch.outcome, Anything | Nan)
        ]
        return has_branch(self.expected.branch_indices, without_pattern)

    def branch(self, index: int) -> Branch:
        """Return the branch of the rules that takes the input with this index."""
        return self.rules.branches[int(self.expected.branch_indices[index])]

    def changed(
        self, picked: NDArray[np.intp], answers: Bits
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the places where ``answers`` differ from the row's, and a mask of forbidden ones.

        The answers are to the inputs with the indices ``picked``, and the places are indices of
        ``answers``. An open input may be answered differently, but only with what is allowed.
        """
        moved = np.flatnonzero(answers != self.answers[picked])
        if not moved.size:
            return moved, np.zeros(0, bool)
        there = picked[moved]
        grades = grade_answers(
            self.rules, self.inputs[there], self.expected.at(there), answers[moved]
        )
        return moved, ~self.is_open[there] | (grades != ALLOWED)


def candidates(subject: Subject, cases: Sequence[Case], *, calls: bool) -> list[Case]:
    """Return the casts of a pair, or with ``calls`` its calls, in the order to try them.

    Claimed ones come first, then ones that are not open, then documents in the order of ``cases``,
    each with its newest version first. Worked examples and cases that must be refused are left out.
    """
    order = {name: index for index, name in enumerate(dict.fromkeys(c.document for c in cases))}

    def rank(case: Case) -> tuple[bool, bool, int, int]:
        versions = list(document_named(case.document).entry.versions)
        claimed = subject.claims(case)
        return (
            not claimed,
            ruling(case).is_open,
            order[case.document],
            -versions.index(case.version),
        )

    asked = [
        case
        for case in cases
        if is_cast(case)
        and case.example is None
        and (receiver_of(case.document) is not None) == calls
        and not ruling(case).is_rejection
    ]
    return sorted(asked, key=rank)


def baseline_of(subject: Subject, case: Case) -> Ask[Baseline | NoBaseline]:
    """Request the answers to all inputs of a case; after an error, to those that are not open.

    Inputs that must be refused are left out. Returns why there is no baseline if no answers come,
    or if the adapter changes bits of the dtypes.
    """
    for dtype in (case.source, case.target):
        if dtype in subject.broken:
            return NoBaseline(f"the adapter, not the framework: {dtype}: {subject.broken[dtype]}")
    rules, settings = ruling(case), subject.settings
    inputs = inputs_of(case, rules, settings.seed, settings.max_examples)
    expected = subject.expectations.of(rules, inputs)
    if rules.refuses_some:
        inputs, _ = without_refused(rules, inputs, expected)
        expected = subject.expectations.of(rules, inputs)
    is_specified = ~has_branch(expected.branch_indices, rules.open_branches)
    answer = yield from ask_values(case, inputs)
    if isinstance(answer, Raised) and is_specified.any() and not is_specified.all():
        inputs, expected = inputs[is_specified], expected.at(is_specified)
        answer = yield from ask_values(case, inputs)
    return as_baseline(case, rules, inputs, expected, answer)


def as_baseline(
    case: Case, rules: Ruling, inputs: Bits, expected: Expected, answer: ValueAnswer
) -> Baseline | NoBaseline:
    """Return a baseline with a backend's answer to all ``inputs``, or why it gave none."""
    if isinstance(answer, Answered):
        return Baseline(case, rules, inputs, expected, answer.value)
    return no_baseline(answer)


def no_baseline(answer: NoAnswer | Departed) -> NoBaseline:
    """Return why there is no baseline, from an answer that is missing or has no values."""
    match answer:
        case Crashed(death):
            return NoBaseline(f"its process ends: {one_line(death)}")
        case Raised(error):
            return NoBaseline(described(error))
        case Departed(promise):
            return NoBaseline(words(promise))
        case missing:
            return NoBaseline(missing.text)


def judgement_on_pair(
    subject: Subject,
    case: Case,
    verdict: Verdict,
    problems: Sequence[Problem] = (),
    baseline: Baseline | None = None,
) -> Judgement:
    """Make a judgement with ``verdict`` and ``problems`` on a pair, under the case it is named by.

    It counts the inputs of ``baseline``, and how many of these are open.
    """
    return Judgement(
        case.id,
        subject.name,
        verdict,
        tuple(problems),
        inputs=baseline.inputs.size if baseline else 0,
        open_inputs=int(np.count_nonzero(baseline.is_open)) if baseline else 0,
    )


@dataclass(frozen=True)
class GradedAnswers:
    """Inputs in rising order, with the answer to each, its grade and its branch of the rules."""

    inputs: Bits
    answers: Bits
    grades: Grades
    branch_indices: NDArray[np.uint8]

    @property
    def fails(self) -> NDArray[np.bool_]:
        """A mask of the answers that are not allowed."""
        fails: NDArray[np.bool_] = self.grades != ALLOWED
        return fails


@dataclass(frozen=True)
class Followed:
    """The wrong values of a case, each with its simplest input.

    ``inputs`` is how many were graded beyond those of the quick tier, without a last round of leaps
    in which none fails. If ``reaches_ends``, the ``values`` have every failing input of each of
    their stretches.
    """

    values: tuple[tuple[WrongValues, Bits], ...]
    inputs: int
    reaches_ends: bool


def not_followed(rules: Ruling, known: GradedAnswers) -> Followed:
    """Return the wrong values of the ``known`` answers, without further requests."""
    found = wrong_values_of(rules, known, gather) if known.fails.any() else ()
    return Followed(found, 0, reaches_ends=False)


def wrong_values_of(
    rules: Ruling, graded: GradedAnswers, gather_runs: Gather
) -> tuple[tuple[WrongValues, Bits], ...]:
    """Return the wrong values among graded answers, each with its simplest input.

    ``gather_runs`` gathers failing inputs into runs.
    """
    found = find_failures(
        rules, graded.inputs, graded.branch_indices, graded.answers, graded.grades, gather_runs
    )
    return tuple(
        (wrong_values(rules, each), graded.inputs[at : at + 1].copy()) for each, at in found
    )


@dataclass(frozen=True)
class RefusedInputs:
    """The inputs of a case that must be refused, in rising order, each with its branch.

    ``stretches`` has one number per input; it is the same for inputs between which none may be
    answered. Beyond a target's range lies one stretch, and between two integers one of fractions.
    """

    inputs: Bits
    branch_indices: NDArray[np.uint8]
    stretches: NDArray[np.intp]

    def spread(self, source: Format) -> RefusedInputs:
        """Choose both ends of each branch, sign and wide stretch, powers of two, and some between.

        There must be inputs. The widest stretches are those beyond the range: their ends are where
        a check of the range may be off by one. Powers of two are chosen of integers: a check that
        misses some bits fails there.
        """
        last = self.inputs.size - 1
        sign = self.inputs >> (8 * self.inputs.dtype.itemsize - 1)
        changes = (np.diff(self.branch_indices) != 0) | (np.diff(sign) != 0)
        begins = np.flatnonzero(changes) + 1
        first = np.concatenate([[0], np.flatnonzero(np.diff(self.stretches)) + 1])
        final = np.concatenate([first[1:] - 1, [last]])
        widest = np.argsort(self.inputs[final] - self.inputs[first], kind="stable")[-WIDEST:]
        powers = np.zeros(0, np.intp)
        if source.kind == "integer":
            magnitudes = np.where(sign == 1, -self.inputs, self.inputs)
            powers = np.flatnonzero(magnitudes & (magnitudes - 1) == 0)
        ends = np.concatenate(
            [[0], begins, begins - 1, [last], first[widest], final[widest], powers]
        )
        even = np.linspace(0, last, min(self.inputs.size, max(2, MOST_ALONE - ends.size)))
        chosen = np.unique(np.concatenate([ends, even.astype(np.intp)]))
        columns = (self.inputs, self.branch_indices, self.stretches)
        return RefusedInputs(*(column[chosen] for column in columns))


def without_refused(rules: Ruling, inputs: Bits, expected: Expected) -> tuple[Bits, RefusedInputs]:
    """Divide inputs into those that can go into one tensor, and those that must be refused.

    ``expected`` is what ``rules`` expect for each input.
    """
    is_refused = has_branch(expected.branch_indices, rules.refused_branches)
    stretches = np.cumsum(~is_refused, dtype=np.intp)[is_refused]
    refused = RefusedInputs(inputs[is_refused], expected.branch_indices[is_refused], stretches)
    return inputs[~is_refused], refused
