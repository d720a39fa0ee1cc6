"""Answers that change with an element's place: those that a document forbids, and open ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest

import numpy as np

from conformance.families.cast.baseline import Baseline
from conformance.judging.probe import Probe
from conformance.judging.subject import Subject
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.grading.divergences import datum_of, simplicity
from reports.problems import ChangesWithLayout, Datum

SHOWN_ANSWERS = 4
MOST_CHANGES = 64
"""Changed answers that are kept of each rule, of the simplest inputs."""


@dataclass(frozen=True)
class Change:
    """One element whose answer differs from its answer in one row."""

    row: Baseline
    probe: Probe
    position: int
    input: int
    answer: Datum

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts changes: small tensors first, then early positions."""
        return (*self.probe.simplicity, self.position)

    @property
    def given(self) -> Datum:
        """The input itself."""
        return datum_of(self.row.inputs[self.input])

    @property
    def rule(self) -> tuple[str, str, str]:
        """The rule that takes the input, with its clause and level."""
        branch = self.row.branch(self.input)
        return branch.rule, branch.clause, branch.level

    @property
    def is_required(self) -> bool:
        """Whether the document requires the answer, and does not only recommend it."""
        return self.row.branch(self.input).level == "required"

    @property
    def where(self) -> str:
        """The tensor, and the position in it."""
        return f"{self.probe}, position {self.position}"


@dataclass
class Changes:
    """The changes found for a pair: those that a document forbids, and those of open answers."""

    forbidden: list[Change] = field(default_factory=list)
    open: list[Change] = field(default_factory=list)

    def note(self, row: Baseline, probe: Probe, answer: Bits) -> list[Change]:
        """Record the changed answers, each once per input; return the forbidden ones."""
        picked, flat = probe.picks(row.inputs.size).reshape(-1), answer.reshape(-1)
        moved, is_forbidden = row.changed(picked, flat)
        forbidden: list[Change] = []
        seen: set[tuple[int, Datum]] = set()
        for position, is_wrong in zip(moved.tolist(), is_forbidden.tolist(), strict=True):
            key = (int(picked[position]), datum_of(flat[position]))
            if key not in seen:
                seen.add(key)
                (forbidden if is_wrong else self.open).append(Change(row, probe, position, *key))
        self.forbidden += forbidden
        return forbidden


def smallest(subject: Subject, changes: list[Change]) -> Change:
    """The change in the smallest tensor, of the simplest input.

    One that a claimed document forbids comes first, then one of a required answer.
    """

    def order(one: Change) -> tuple[object, ...]:
        is_claimed = subject.claims(one.row.case)
        given = simplicity(one.row.rules.source, one.given)
        return not is_claimed, not one.is_required, one.order, given

    return min(changes, key=order)


def by_rule(changes: Iterable[Change]) -> dict[tuple[str, str, str], list[Change]]:
    """The changes of answers to inputs that each rule takes."""
    found: dict[tuple[str, str, str], list[Change]] = {}
    for each in changes:
        found.setdefault(each.rule, []).append(each)
    return found


def simplest_changes(changes: Iterable[Change]) -> list[Change]:
    """Up to ``MOST_CHANGES`` changes, each of another input or to another answer."""
    found: dict[tuple[Datum, Datum], Change] = {}
    for each in changes:
        found.setdefault((each.given, each.answer), each)

    def order(one: Change) -> tuple[object, ...]:
        return simplicity(one.row.rules.source, one.given), str(one.answer)

    return nsmallest(MOST_CHANGES, found.values(), key=order)


def change_problem(change: Change, switch: str) -> ChangesWithLayout:
    """The problem of an answer that changes with its place, which the document forbids."""
    row = change.row
    return ChangesWithLayout(
        *change.rule,
        given=datum_with_value(row.rules.source, change.given),
        in_row=datum_text(row.rules.target, datum_of(row.answers[change.input])),
        elsewhere=datum_text(row.rules.target, change.answer),
        where=change.where,
        switch=switch,
    )


def describe_open_changes(changes: list[Change], count: int, switch: str) -> str:
    """How many open inputs have several answers, and where the simplest of them changes."""
    source = changes[0].row.rules.source
    simplest = simplest_open(changes)
    target = simplest.row.rules.target
    answers = [datum_of(simplest.row.answers[simplest.input])]
    answers += [one.answer for one in changes if one.given == simplest.given]
    shown = [datum_text(target, answer) for answer in dict.fromkeys(answers)]
    shown[SHOWN_ANSWERS:] = ["…"] if len(shown) > SHOWN_ANSWERS else []
    now = datum_text(target, simplest.answer)
    where = switch or f"{shown[0]} in one row, {now} at {simplest.where}"
    inputs = len({one.given for one in changes})
    return (
        f"a set of answers to {inputs} of {count} inputs, where the document is open:"
        f" {datum_with_value(source, simplest.given)} gives {{{', '.join(shown)}}}, {where}"
    )


def simplest_open(changes: list[Change]) -> Change:
    """The change of the simplest input, in the smallest tensor."""
    source = changes[0].row.rules.source
    return min(changes, key=lambda one: (simplicity(source, one.given), one.order))


def first_switch(change: Change, answers: Iterable[tuple[Probe, Bits]]) -> str:
    """Describe where an input, in growing rows of itself, first changes its answer; else empty."""
    target, alone = change.row.rules.target, None
    for probe, answer in answers:
        alone = answer[:1] if alone is None else alone
        moved = np.flatnonzero(answer != alone[0])
        if moved.size:
            was, now = (datum_text(target, datum_of(one)) for one in (alone[0], answer[moved[0]]))
            return f"{was} alone, {now} first at {probe}, position {moved[0]}"
    return ""
