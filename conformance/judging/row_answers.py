"""What a backend answers in one row, and which of other answers differ from that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from conformance.judging.answer_form import AnswerError, described, one_line
from conformance.judging.calls import DepartedError
from conformance.judging.meeting import Meeting
from conformance.judging.quick_inputs import inputs_of
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import Bits, Unsupported
from oracles.reference.expectations import Expected
from reports.diff.allowed_answers import levels_broken
from reports.diff.judgement import Fault, Judgement, Verdict
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.loader import document_named
from specs.operations import is_bitcast
from specs.outcomes import Anything, Nan
from specs.ruling import Branch, Ruling, ruling

NOTHING_TO_ASK = "no document has a cast of this pair that it does not want refused"


class NoRowError(Exception):
    """A backend does not answer a case in one row; the message says why."""


@dataclass(frozen=True)
class Row:
    """A case, inputs of it, and what these answered when they stood in one row."""

    case: Case
    rules: Ruling
    inputs: Bits
    expected: Expected
    answers: Bits

    def at(self, places: NDArray[np.intp]) -> Row:
        """Some of the inputs."""
        return Row(
            self.case,
            self.rules,
            self.inputs[places],
            self.expected.at(places),
            self.answers[places],
        )

    @cached_property
    def is_open(self) -> NDArray[np.bool_]:
        """Where the document names no pattern: it says nothing, or only that it is a NaN."""
        places = [
            place
            for place, branch in enumerate(self.rules.branches)
            if isinstance(branch.outcome, Anything | Nan)
        ]
        return np.isin(self.expected.places, places)

    def branch(self, place: int) -> Branch:
        """What the document says of an input."""
        return self.rules.branches[int(self.expected.places[place])]

    def changed(
        self, picked: NDArray[np.intp], answers: Bits
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where other answers to picked inputs differ, and whether a document forbids it there.

        An open input may answer otherwise, but also then only what is allowed.
        """
        moved = np.flatnonzero(answers != self.answers[picked])
        if not moved.size:
            return moved, np.zeros(0, bool)
        there = picked[moved]
        wrong = levels_broken(
            self.rules, self.inputs[there], self.expected.at(there), answers[moved]
        )
        return moved, ~self.is_open[there] | (wrong > 0)


def candidates(meeting: Meeting, cases: Sequence[Case], *, calls: bool) -> list[Case]:
    """The cases of a pair that can be asked: claimed ones first, of each document the newest."""
    order = {name: place for place, name in enumerate(dict.fromkeys(c.document for c in cases))}

    def rank(case: Case) -> tuple[bool, bool, int, int]:
        versions = list(document_named(case.document).entry.versions)
        claimed = meeting.claimed(case)
        return (
            not claimed,
            ruling(case).is_open,
            order[case.document],
            -versions.index(case.version),
        )

    asked = [
        case
        for case in cases
        if not is_bitcast(case)
        and case.example is None
        and (receiver_of(case.document) is not None) == calls
        and not ruling(case).is_rejection
    ]
    return sorted(asked, key=rank)


def row_of(meeting: Meeting, case: Case) -> Row:
    """What all inputs of a case answer in one row; where they raise, those that may not."""
    for dtype in (case.source, case.target):
        if dtype in meeting.broken:
            raise NoRowError(f"the adapter, not the framework: {dtype}: {meeting.broken[dtype]}")
    rules, settings = ruling(case), meeting.settings
    inputs = inputs_of(case, rules, settings.seed, settings.max_examples)
    expected = meeting.expectations.of(rules, inputs)
    is_specified = ~np.isin(expected.places, rules.open_places)
    try:
        return Row(case, rules, inputs, expected, meeting.ask(case, rules, inputs))
    except (AnswerError, DepartedError, Unsupported) as refusal:
        raise NoRowError(one_line(refusal)) from None
    except Crashed as death:
        raise NoRowError(f"its process ends: {one_line(death)}") from None
    except Exception as error:
        if is_specified.all() or not is_specified.any():
            raise NoRowError(described(error)) from None
    inputs, expected = inputs[is_specified], expected.at(is_specified)
    try:
        return Row(case, rules, inputs, expected, meeting.ask(case, rules, inputs))
    except Crashed as death:
        raise NoRowError(f"its process ends: {one_line(death)}") from None
    except Exception as error:
        raise NoRowError(described(error)) from None


def first_row(meeting: Meeting, cases: Sequence[Case]) -> Row:
    """The row of the first case that the backend answers."""
    reasons: list[str] = []
    for case in cases:
        try:
            return row_of(meeting, case)
        except NoRowError as error:
            reasons.append(str(error))
    raise NoRowError(reasons[0] if reasons else NOTHING_TO_ASK)


def rows(meeting: Meeting, cases: Sequence[Case]) -> Iterator[Row]:
    """The rows of all cases that the backend answers."""
    for case in cases:
        try:
            yield row_of(meeting, case)
        except NoRowError:
            continue


def judgement_of(
    meeting: Meeting, case: Case, verdict: Verdict, message: str, row: Row | None, *faults: Fault
) -> Judgement:
    """A judgement on a pair, under the case that it was asked by; no row, no answers."""
    return Judgement(
        case.id,
        meeting.backend.name,
        verdict,
        message,
        inputs=row.inputs.size if row else 0,
        open_inputs=int(np.count_nonzero(row.is_open)) if row else 0,
        faults=faults,
    )
