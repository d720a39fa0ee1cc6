"""Compares a case of two editions, on all inputs by staircases, or on listed ones for texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.editions.edition_pairs import CasePair
from conformance.extras.editions.input_set import InputSet, region, run_grid
from conformance.extras.editions.ruling_changes import (
    CodeRanges,
    RisingRanges,
    RuleAtLevel,
    RuleChange,
    constant_answers,
    direction_of_branches,
    direction_of_codes,
    direction_of_levels,
    key_of,
    names_codes,
    ruling_changes,
)
from oracles.reference import expect_by_exact
from reports.counterexample.drawing import quoted
from reports.findings.wrong import expected_of
from reports.grading.allowed_answers import describe_allowed
from reports.grading.divergences import datum_of, simplicity
from reports.problems import ShownDatum
from specs.branches import Ruling
from specs.formats import Format
from specs.outcomes import Nan

ListInputs = Callable[[CasePair], NDArray[Any]]
"""Returns the inputs on which a case is compared that a staircase cannot compare, as of texts."""
AN_ANSWER = "an answer"
"""What is allowed where the value is open, but an error breaks a rule."""
MOST_TEXTS = 3
"""The most texts that are named of those whose ruling changes."""


@dataclass(frozen=True)
class ListedInputs:
    """Those of ``compared`` listed inputs whose ruling changes."""

    source: Format
    inputs: NDArray[Any]
    compared: int

    @property
    def count(self) -> int:
        """The number of inputs."""
        return int(self.inputs.size)

    @cached_property
    def simplest(self) -> ShownDatum:
        """The simplest input, as for a counterexample."""
        return datum_of(min(self.inputs.tolist(), key=lambda each: simplicity(self.source, each)))

    def words(self) -> str:
        """Describe the inputs: as a few texts, or as intervals of values."""
        if self.source.kind != "text":
            return region(self.source, [(each, each) for each in self.inputs.tolist()])
        first = sorted(self.inputs.tolist(), key=lambda each: simplicity(self.source, each))
        more = f" and {self.count - MOST_TEXTS:,} more texts" if self.count > MOST_TEXTS else ""
        return ", ".join(map(quoted, first[:MOST_TEXTS])) + more

    def patterns(self, most: int) -> NDArray[Any]:
        """Return the inputs; of more than ``most``, about as many that are spread evenly."""
        return self.inputs[:: max(1, -(-self.inputs.size // most))]


@dataclass(frozen=True)
class EditionChange:
    """Inputs of a case that a rule of each edition takes, and of which they allow other answers.

    ``was`` and ``now`` describe what is allowed for the simplest of them, as ``describe_allowed``
    does, and ``was_best`` and ``now_best`` what is recommended.
    """

    cases: CasePair
    change: RuleChange
    inputs: InputSet | ListedInputs
    was: tuple[str, ...]
    now: tuple[str, ...]
    was_best: tuple[str, ...]
    now_best: tuple[str, ...]


def case_changes(
    cases: CasePair, old: Ruling, new: Ruling, list_inputs: ListInputs
) -> Iterator[EditionChange]:
    """Yield the changes of a case, whose rulings are given: one for each two rules and direction.

    Worked examples are compared on the inputs that both work out.
    """
    if old.meaning != new.meaning:
        for change, inputs in _changed(cases, old, new, list_inputs).items():
            yield _described(cases, change, inputs, old, new)
    elif old.is_open and (due := _change_of_due(old, new)) is not None:
        every = _every_input(old.source)
        was, now = ((AN_ANSWER,) if each.answer_due else ("anything",) for each in (old, new))
        yield EditionChange(cases, due, every, was, now, was, now)


def _described(
    cases: CasePair,
    change: RuleChange,
    inputs: InputSet | ListedInputs,
    old: Ruling,
    new: Ruling,
) -> EditionChange:
    simplest = inputs.simplest
    told = [
        describe_allowed(each, expect_by_exact.allow(each, simplest), simplest, level)
        for level in ("required", "recommended")
        for each in (old, new)
    ]
    return EditionChange(cases, change, inputs, *told)


def _changed(
    cases: CasePair, old: Ruling, new: Ruling, list_inputs: ListInputs
) -> dict[RuleChange, Any]:
    if old.worked and new.worked:
        both = [given for given, _ in old.worked if given in dict(new.worked)]
        return dict(_listed_changes(old, new, np.array(both, old.source.storage)))
    if len(old.branches) == len(new.branches) == 1 and old.source.kind != "text":
        before, after = old.branches[0], new.branches[0]
        if not (names_codes(before) and names_codes(after)):
            direction = direction_of_branches(before, after)
            if direction is None:
                return {}
            whole = RuleChange(key_of(before), key_of(after), direction)
            return {whole: _every_input(old.source)}
    if old.source.is_numeric and old.target.is_numeric:
        return dict(ruling_changes(old, new))
    return dict(_listed_changes(old, new, list_inputs(cases)))


def _every_input(source: Format) -> InputSet:
    return InputSet(source, (run_grid(0, source.mask),))


def _listed_changes(
    old: Ruling, new: Ruling, inputs: NDArray[Any]
) -> Iterator[tuple[RuleChange, ListedInputs]]:
    before, after = expected_of(old, inputs), expected_of(new, inputs)
    keys: dict[RuleChange, list[int]] = {}
    known: dict[Any, RuleChange | None] = {}
    for at in range(inputs.size):
        seen = tuple(
            (int(each.branch_indices[at]), int(each.codes[at]), int(each.others[at]))
            for each in (before, after)
        )
        if seen not in known:
            known[seen] = _change_at(old, new, *seen)
        key = known[seen]
        if key is not None:
            keys.setdefault(key, []).append(at)
    for key, places in keys.items():
        yield key, ListedInputs(old.source, inputs[np.array(places)], inputs.size)


Seen = tuple[int, int, int]
"""The index of the branch that takes an input, a code that it allows, and a second one."""


def _change_at(old: Ruling, new: Ruling, before: Seen, after: Seen) -> RuleChange | None:
    """Return the change of one input; None if both rulings allow the same."""
    one, other = old.branches[before[0]], new.branches[after[0]]
    if names_codes(one) and names_codes(other) and old.target.kind != "text":
        pairs = [_codes(each, *seen) for each, seen in ((old, before), (new, after))]
        allowed, best = zip(*pairs, strict=True)
        direction = direction_of_codes(one, other, allowed, best)
    else:
        direction = direction_of_branches(one, other)
    return RuleChange(key_of(one), key_of(other), direction) if direction is not None else None


def _codes(rules: Ruling, index: int, code: int, other: int) -> tuple[CodeRanges, CodeRanges]:
    """Return the ranges of codes that a branch allows, and of those that it recommends."""
    branch, mask = rules.branches[index], rules.target.mask
    if isinstance(branch.outcome, Nan):
        allowed = constant_answers(rules.target, branch.outcome)
    else:
        allowed = RisingRanges(code, 0, 0, other, 0, 0)
    best = (
        allowed
        if branch.recommended is None
        else constant_answers(rules.target, branch.recommended)
    )
    return allowed.at(0, mask), best.at(0, mask)


def _change_of_due(old: Ruling, new: Ruling) -> RuleChange | None:
    """Return the change if one ruling alone forbids an error, or both do at unlike levels.

    Both rulings leave the value of every input open. Return None without such a change.
    """
    before, after = old.answer_due, new.answer_due
    levels = [each.level if each else "unspecified" for each in (before, after)]
    direction = direction_of_levels(*levels)
    if direction is None:
        return None
    one, other = (
        RuleAtLevel(due.rule, due.clause, due.level) if due else key_of(rules.branches[0])
        for due, rules in ((before, old), (after, new))
    )
    return RuleChange(one, other, direction)
