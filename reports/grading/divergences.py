"""Groups answers that are not allowed by rule; each group has its runs and smallest input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from reports.grading.allowed_answers import ALLOWED, Grades, RuleKey, describe_allowed, rule_groups
from reports.grading.failure_runs import Gather, Runs, gather
from reports.problems import ShownDatum, WrongValues
from specs.branches import Ruling
from specs.formats import Format


@dataclass(frozen=True)
class Failures:
    """The answers that break one rule at one level, with the simplest of their inputs."""

    key: RuleKey
    count: int
    runs: Runs
    smallest: ShownDatum
    answer: Any
    """The answer to the simplest input."""


def find_failures(
    rules: Ruling,
    inputs: Bits,
    branch_indices: NDArray[np.uint8],
    answers: Bits,
    grades: Grades,
    gather: Gather = gather,
) -> Iterator[tuple[Failures, int]]:
    """Yield the failures of each rule and level, and the index of their simplest input.

    Required levels come first. Inputs other than texts are in rising order. ``branch_indices`` are
    those of the branches that take the inputs, and ``grades`` those of the answers.
    """
    groups = rule_groups(rules)
    fails = grades != ALLOWED
    where: NDArray[np.intp] | range = range(grades.size)
    if np.count_nonzero(fails) < grades.size // 2:
        where = np.flatnonzero(fails)
        inputs, answers, grades = inputs[where], answers[where], grades[where]
        branch_indices = branch_indices[where]
    group_of_answer = groups.of(grades, branch_indices)
    for group, runs in gather(inputs, answers, group_of_answer):
        here = group_of_answer == group
        at = index_of_simplest(rules.source, inputs, here)
        count, smallest = int(np.count_nonzero(here)), datum_of(inputs[at])
        key = groups.keys[group - 1]
        yield Failures(key, count, runs, smallest, answers[at]), int(where[at])


def wrong_values(rules: Ruling, failures: Failures) -> WrongValues:
    """Return failures as a problem, with what is allowed for their simplest input."""
    smallest = failures.smallest
    allowed = expect_by_exact.allow(rules, smallest)
    words = describe_allowed(rules, allowed, smallest, failures.key[2])
    runs, answer = failures.runs, datum_of(failures.answer)
    return WrongValues(*failures.key, failures.count, runs, smallest, answer, words)


class FailureTally:
    """Joins the failures of a case whose inputs are graded part by part, in order."""

    def __init__(self, rules: Ruling) -> None:
        self._rules = rules
        self._parts: dict[RuleKey, list[tuple[int, Failures]]] = {}
        """Per key, joined parts: their sizes are falling powers of two, so that joining many parts
        copies each run only a few times."""

    def add(self, failures: Failures) -> None:
        """Join the failures of one rule and level in the next part to those in earlier parts."""
        parts, size = self._parts.setdefault(failures.key, []), 1
        while parts and parts[-1][0] == size:
            failures = self._joined(parts.pop()[1], failures)
            size *= 2
        parts.append((size, failures))

    def divergences(self) -> Iterator[WrongValues]:
        """Yield the wrong values of each rule and level, over all parts."""
        for parts in self._parts.values():
            yield wrong_values(self._rules, reduce(self._joined, (each for _, each in parts)))

    def _joined(self, one: Failures, later: Failures) -> Failures:
        simpler = min(one, later, key=lambda each: simplicity(self._rules.source, each.smallest))
        return replace(simpler, count=one.count + later.count, runs=one.runs.joined(later.runs))


def simplicity(source: Format, datum: Any) -> tuple[int, int, int]:
    """Return a sort key: set bits, then code (of a float, its magnitude); of a text, its length."""
    if isinstance(datum, str):
        return len(datum), 0, 0
    code = datum_of(datum)
    assert isinstance(code, int)
    return code.bit_count(), code if source.is_integral else code & ~source.sign_bit, code


def index_of_simplest(source: Format, inputs: Bits, among: NDArray[np.bool_]) -> int:
    """Return the index of the simplest of the inputs, at least one, that ``among`` marks."""
    if inputs.dtype.kind == "u":
        # Few inputs have the fewest bits: only for these is the whole key computed.
        bits = np.where(among, np.bitwise_count(inputs), np.uint8(255))
        among = bits == bits.min()
    candidates: list[int] = np.flatnonzero(among).tolist()
    return min(candidates, key=lambda index: simplicity(source, inputs[index]))


def simplest_between(source: Format, first: int, last: int) -> int:
    """Return the simplest of all patterns from ``first`` to ``last``.

    A pattern above ``first`` has a one at the highest bit where the two differ. It is simplest if
    only zeros follow, so that one candidate per bit is enough.
    """
    rounded_up = (((first >> bit) + 1) << bit for bit in range(source.bits))
    candidates = [first, *(code for code in rounded_up if code <= last)]
    fewest = min(code.bit_count() for code in candidates)
    return min(
        (code for code in candidates if code.bit_count() == fewest),
        key=lambda code: simplicity(source, code),
    )


def datum_of(element: Any) -> ShownDatum:
    """Return an element of an array of inputs or answers as an integer pattern or a text."""
    if isinstance(element, str | int):
        return element
    return int.from_bytes(element.tobytes(), "little")
