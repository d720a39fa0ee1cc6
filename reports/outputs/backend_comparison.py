"""Compares the answers of two backends to one case: where they differ, by which rule, who is right.

A run stores all answers of the quick tier, so that no backend has to be asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Expected
from reports.grading.allowed_answers import ALLOWED, Expectations, describe_allowed, grade_answers
from reports.grading.divergences import datum_of, index_of_simplest
from reports.grading.failure_runs import Runs, gather
from reports.judgement import InputsAndAnswers
from reports.problems import ShownDatum
from specs.branches import Ruling
from specs.cases import Case
from specs.ruling import ruling

WhoIsRight = Literal["one", "other", "both", "neither", "open"]
WHO_IS_RIGHT: tuple[WhoIsRight, ...] = get_args(WhoIsRight)


@dataclass(frozen=True)
class Difference:
    """The inputs on which two backends differ, under one rule and with the same backend right.

    ``right`` is `one` or `other` if only that backend's answers have the grade ``ALLOWED``, `both`
    or `neither` if both or none have, and `open` where any answer is allowed. The ``runs`` have the
    first backend's answers.
    """

    rule: str
    clause: str
    right: WhoIsRight
    count: int
    runs: Runs
    smallest: ShownDatum
    answer: ShownDatum
    other_answer: ShownDatum
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class CaseComparison:
    """Two backends on one case: where they differ, among the ``asked`` inputs that both have."""

    case: Case
    asked: int
    differences: tuple[Difference, ...]

    @cached_property
    def count(self) -> int:
        """The number of inputs on which the two backends differ."""
        return sum(difference.count for difference in self.differences)


def compare_answers(
    case: Case, one: InputsAndAnswers, other: InputsAndAnswers, expectations: Expectations
) -> CaseComparison:
    """Compare the answers of two backends to the inputs that both were given.

    ``expectations`` computes what the rules of the case allow.
    """
    if one.inputs.digest == other.inputs.digest:
        inputs, answers, others = one.inputs.values, one.answers.values, other.answers.values
        if one.answers.digest == other.answers.digest:
            return CaseComparison(case, inputs.size, ())
    else:
        inputs, answers, others = _shared_inputs(one, other)
    where = np.flatnonzero(answers != others)
    if not where.size:
        return CaseComparison(case, inputs.size, ())
    rules = ruling(case)
    found = _differences(rules, inputs[where], answers[where], others[where], expectations)
    return CaseComparison(case, inputs.size, tuple(found))


def _shared_inputs(one: InputsAndAnswers, other: InputsAndAnswers) -> tuple[Bits, Bits, Bits]:
    """Return the inputs that both were given, the answers of ``one``, and those of ``other``."""
    index_in_other = {datum: index for index, datum in enumerate(other.inputs.values.tolist())}
    here = [
        index for index, datum in enumerate(one.inputs.values.tolist()) if datum in index_in_other
    ]
    there = [index_in_other[datum] for datum in one.inputs.values[here].tolist()]
    return one.inputs.values[here], one.answers.values[here], other.answers.values[there]


def _differences(
    rules: Ruling, inputs: Bits, answers: Bits, others: Bits, expectations: Expectations
) -> Iterator[Difference]:
    expected = expectations.of(rules, inputs)
    right_by_input = _who_is_right(
        _are_allowed(rules, inputs, expected, answers),
        _are_allowed(rules, inputs, expected, others),
        np.isin(expected.branch_indices, rules.open_branches),
    )
    keys: list[tuple[str, str, WhoIsRight]] = []
    groups = np.zeros(inputs.shape, np.uint8)
    for index, branch in enumerate(rules.branches):
        for number, right in enumerate(WHO_IS_RIGHT):
            here = (expected.branch_indices == index) & (right_by_input == number)
            if here.any():
                key = (branch.rule, branch.clause, right)
                if key not in keys:
                    keys.append(key)
                groups[here] = keys.index(key) + 1
    runs = dict(gather(inputs, answers, groups))
    for group, key in enumerate(keys, 1):
        here = groups == group
        at = index_of_simplest(rules.source, inputs, here)
        smallest = datum_of(inputs[at])
        yield Difference(
            *key,
            int(np.count_nonzero(here)),
            runs[group],
            smallest,
            datum_of(answers[at]),
            datum_of(others[at]),
            describe_allowed(rules, expect_by_exact.allow(rules, smallest), smallest),
        )


def _are_allowed(
    rules: Ruling, inputs: Bits, expected: Expected, answers: Bits
) -> NDArray[np.bool_]:
    """Mark the answers with the grade ``ALLOWED``.

    No answer of complex128 is marked: no kernel computes complex values, whose rules allow any
    answer or require an error.
    """
    if answers.dtype.kind == "V":
        return np.zeros(inputs.shape, bool)
    allowed: NDArray[np.bool_] = grade_answers(rules, inputs, expected, answers) == ALLOWED
    return allowed


def _who_is_right(
    one: NDArray[np.bool_], other: NDArray[np.bool_], is_open: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Return for each input an index in ``WHO_IS_RIGHT``.

    ``one`` and ``other`` mark where that backend's answer has the grade ``ALLOWED``, ``is_open``
    where any answer is allowed.
    """
    right = np.full(one.shape, WHO_IS_RIGHT.index("neither"), np.uint8)
    right[one & ~other] = WHO_IS_RIGHT.index("one")
    right[other & ~one] = WHO_IS_RIGHT.index("other")
    right[one & other] = WHO_IS_RIGHT.index("both")
    right[is_open] = WHO_IS_RIGHT.index("open")
    return right
