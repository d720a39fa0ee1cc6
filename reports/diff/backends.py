"""Where two oracles answer otherwise: the inputs, both answers, the rule, and who is right.

The quick tier's answers are kept whole in a run, so that nobody has to be asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from reports.diff.allowed_answers import Expectations, allowed_words, levels_broken
from reports.diff.divergences import datum_of, simplest
from reports.diff.failure_runs import Runs, gather
from reports.diff.judgement import Datum
from reports.diff.kept_answers import Answered
from specs.cases import Case
from specs.ruling import Ruling, ruling

Right = Literal["one", "other", "both", "neither", "open"]
RIGHT: tuple[Right, ...] = ("one", "other", "both", "neither", "open")


@dataclass(frozen=True)
class Difference:
    """The inputs on which two oracles differ, ruled by one rule, and who of them is right.

    ``both`` are right where several answers are allowed; where it is ``open`` nobody is wrong. The
    ``runs`` have the first oracle's answers, ``other_runs`` the second's.
    """

    rule: str
    clause: str
    right: Right
    count: int
    runs: Runs
    other_runs: Runs
    smallest: Datum
    answer: Datum
    other_answer: Datum
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """A case on two oracles: how many inputs both were asked, and where they differ."""

    case: Case
    asked: int
    differences: tuple[Difference, ...]

    @cached_property
    def count(self) -> int:
        """On how many inputs they differ."""
        return sum(difference.count for difference in self.differences)


def compare(case: Case, one: Answered, other: Answered, expectations: Expectations) -> Compared:
    """Two oracles' answers to the inputs that both were asked."""
    if one.inputs.digest == other.inputs.digest:
        inputs, answers, others = one.inputs.values, one.answers.values, other.answers.values
        if one.answers.digest == other.answers.digest:
            return Compared(case, inputs.size, ())
    else:
        inputs, answers, others = _common(one, other)
    where = np.flatnonzero(answers != others)
    if not where.size:
        return Compared(case, inputs.size, ())
    rules = ruling(case)
    found = _differences(rules, inputs[where], answers[where], others[where], expectations)
    return Compared(case, inputs.size, tuple(found))


def _common(one: Answered, other: Answered) -> tuple[Bits, Bits, Bits]:
    """The inputs that both were asked, once each, and both answers."""
    places = {given: place for place, given in enumerate(other.inputs.values.tolist())}
    here = [place for place, given in enumerate(one.inputs.values.tolist()) if given in places]
    there = [places[given] for given in one.inputs.values[here].tolist()]
    return one.inputs.values[here], one.answers.values[here], other.answers.values[there]


def _differences(
    rules: Ruling, inputs: Bits, answers: Bits, others: Bits, expectations: Expectations
) -> Iterator[Difference]:
    expected = expectations.of(rules, inputs)
    rights = _rights(
        levels_broken(rules, inputs, expected, answers) == 0,
        levels_broken(rules, inputs, expected, others) == 0,
        np.isin(expected.places, rules.open_places),
    )
    keys: list[tuple[str, str, Right]] = []
    groups = np.zeros(inputs.shape, np.uint8)
    for place, branch in enumerate(rules.branches):
        for number, right in enumerate(RIGHT):
            here = (expected.places == place) & (rights == number)
            if here.any():
                key = (branch.rule, branch.clause, right)
                if key not in keys:
                    keys.append(key)
                groups[here] = keys.index(key) + 1
    runs, other_runs = dict(gather(inputs, answers, groups)), dict(gather(inputs, others, groups))
    for group, key in enumerate(keys, 1):
        here = groups == group
        place = simplest(rules.source, inputs, here)
        smallest = datum_of(inputs[place])
        yield Difference(
            *key,
            int(np.count_nonzero(here)),
            runs[group],
            other_runs[group],
            smallest,
            datum_of(answers[place]),
            datum_of(others[place]),
            allowed_words(rules, expect_by_exact.allow(rules, smallest), smallest),
        )


def _rights(
    one: NDArray[np.bool_], other: NDArray[np.bool_], is_open: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Per input, the place in ``RIGHT``."""
    rights = np.full(one.shape, RIGHT.index("neither"), np.uint8)
    rights[one & ~other] = RIGHT.index("one")
    rights[other & ~one] = RIGHT.index("other")
    rights[one & other] = RIGHT.index("both")
    rights[is_open] = RIGHT.index("open")
    return rights
