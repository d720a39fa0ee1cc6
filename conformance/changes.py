"""Answers that change with the place of an element: kept by input, and told in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from conformance.probes import Probe
from conformance.rows import Row
from oracles.protocol import Bits
from reports.divergences import datum_of, simplicity
from reports.drawing import brief, pattern
from reports.judgement import Datum, Fault

SHOWN_ANSWERS = 4
Answers = Iterable[tuple[Probe, Bits]]


@dataclass(frozen=True)
class Change:
    """One element that answers otherwise than it does in one row."""

    row: Row
    probe: Probe
    position: int
    input: int
    answer: Datum

    @property
    def place(self) -> tuple[object, ...]:
        """What makes a change small."""
        return (*self.probe.place, self.position)

    @property
    def given(self) -> Datum:
        """The input itself."""
        return datum_of(self.row.inputs[self.input])

    @property
    def where(self) -> str:
        """In which tensor, and where in it."""
        return f"{self.probe}, position {self.position}"


@dataclass
class Changes:
    """All that was found about a pair: what a document forbids, and sets of open answers."""

    forbidden: list[Change] = field(default_factory=list)
    open: list[Change] = field(default_factory=list)

    def note(self, row: Row, probe: Probe, answer: Bits) -> list[Change]:
        """Keep what has changed, of an input's equal answers the first; tell what is forbidden."""
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


def smallest(changes: list[Change]) -> Change:
    """The change in the smallest tensor, of these the one of the simplest input."""
    return min(changes, key=lambda one: (one.place, simplicity(one.row.rules.source, one.given)))


def fault_of(change: Change, switches: str) -> Fault:
    """What is wrong where an answer that a document names changes."""
    row, branch = change.row, change.row.branch(change.input)
    was = pattern(row.rules.target, datum_of(row.answers[change.input]))
    now = pattern(row.rules.target, change.answer)
    message = (
        f"{brief(row.rules.source, change.given)} answers {was} in one row, {now} at {change.where}"
    )
    message += f"; {switches}" if switches else ""
    return Fault("answer", branch.rule, branch.clause, branch.level, message)


def told(changes: list[Change], count: int, switches: Callable[[Change], str]) -> str:
    """The sets of answers to open inputs: how many, and where the simplest of them switches."""
    source = changes[0].row.rules.source
    simplest = min(changes, key=lambda one: (simplicity(source, one.given), one.place))
    target = simplest.row.rules.target
    answers = [datum_of(simplest.row.answers[simplest.input])]
    answers += [one.answer for one in changes if one.given == simplest.given]
    shown = [pattern(target, answer) for answer in dict.fromkeys(answers)]
    shown[SHOWN_ANSWERS:] = ["…"] if len(shown) > SHOWN_ANSWERS else []
    now = pattern(target, simplest.answer)
    where = switches(simplest) or f"{shown[0]} in one row, {now} at {simplest.where}"
    inputs = len({one.given for one in changes})
    return (
        f"a set of answers to {inputs} of {count} inputs, where the document is open:"
        f" {brief(source, simplest.given)} gives {{{', '.join(shown)}}}, {where}"
    )


def switch(change: Change, rows: Answers) -> str:
    """Where an input in rows of nothing else first answers otherwise than alone; nothing if not."""
    target, alone = change.row.rules.target, None
    for probe, answer in rows:
        alone = answer[:1] if alone is None else alone
        moved = np.flatnonzero(answer != alone[0])
        if moved.size:
            was, now = (pattern(target, datum_of(one)) for one in (alone[0], answer[moved[0]]))
            return f"{was} alone, {now} first at {probe}, position {moved[0]}"
    return ""
