"""Asks the tensors that probes describe, and finds answers that change with an element's place.

A document forbids some changes, and leaves others open. All requests are made at once. The answers
are looked at one after another: the first that is missing raises an error, so that those before it
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from conformance.families.cast.baseline import Baseline
from conformance.families.cast.probes import held_by
from conformance.judging.asking import Ask, Subject, ask, ask_all, in_step
from conformance.judging.probe import Probe, ProbePlan
from conformance.judging.values import Departed, ValueAnswer, batch_requests, value_answer
from conformance.judging.verdicts import problem_of
from oracles.backend.replies import (
    Answered,
    BatchReply,
    Crashed,
    Declined,
    Raised,
    Reply,
    Unanswered,
    attempt,
    checked,
    value_of,
)
from oracles.backend.requests import CastAtOnce, Request
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.grading.divergences import datum_of, simplicity
from reports.problem_words import words
from reports.problems import ChangesWithLayout, Problem, ShownDatum
from specs.case_calls import receiver_of
from specs.cases import Case

SHOWN_ANSWERS = 4
MOST_CHANGES = 64
"""The most changed answers of each rule that are reported, of the simplest inputs."""


@dataclass(frozen=True)
class AnswerChange:
    """One element of a tensor whose answer differs from that to the same input in one row."""

    row: Baseline
    probe: Probe
    position: int
    input: int
    answer: ShownDatum

    @property
    def order(self) -> tuple[object, ...]:
        """The key that sorts changes: simple tensors first, then early positions."""
        return (*self.probe.simplicity, self.position)

    @property
    def given(self) -> ShownDatum:
        """The pattern or text of the input; ``input`` is its index in the row."""
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
        """The tensor and the position in it, in words."""
        return f"{self.probe}, position {self.position}"


@dataclass
class AnswerChanges:
    """The changes found for a pair: those that a document forbids, and those of open answers."""

    forbidden: list[AnswerChange] = field(default_factory=list)
    open: list[AnswerChange] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    """The tensors that the backend declined, each with its reason."""

    def note(self, row: Baseline, probe: Probe, answer: Bits) -> list[AnswerChange]:
        """Record answers to a probe that differ from the row's; return the forbidden changes.

        Of equal answers to one input, only the first is recorded.
        """
        picked, flat = probe.picks(row.inputs.size).reshape(-1), answer.reshape(-1)
        moved, is_forbidden = row.changed(picked, flat)
        forbidden: list[AnswerChange] = []
        first = _first_of_equals(picked[moved], flat[moved])
        for position, is_wrong in zip(moved[first].tolist(), is_forbidden[first], strict=True):
            key = (int(picked[position]), datum_of(flat[position]))
            (forbidden if is_wrong else self.open).append(AnswerChange(row, probe, position, *key))
        self.forbidden += forbidden
        return forbidden


def _first_of_equals(*columns: Bits) -> NDArray[np.intp]:
    """Return the place of the first of each set of equal rows, in rising order."""
    order = np.lexsort(columns)
    is_new = np.zeros(order.size, bool)
    is_new[:1] = True
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    return np.sort(order[is_new])


def smallest(subject: Subject, changes: list[AnswerChange]) -> AnswerChange:
    """Return the change in the simplest tensor, there at the first position, of the simplest input.

    One that a claimed document forbids comes first, then one of a required answer.
    """

    def order(one: AnswerChange) -> tuple[object, ...]:
        is_claimed = subject.claims(one.row.case)
        given = simplicity(one.row.rules.source, one.given)
        return not is_claimed, not one.is_required, one.order, given

    return min(changes, key=order)


def by_rule(changes: Iterable[AnswerChange]) -> dict[tuple[str, str, str], list[AnswerChange]]:
    """Group changes by the rule that takes the input, with its clause and level."""
    found: dict[tuple[str, str, str], list[AnswerChange]] = {}
    for each in changes:
        found.setdefault(each.rule, []).append(each)
    return found


def simplest_changes(changes: Iterable[AnswerChange]) -> list[AnswerChange]:
    """Return up to ``MOST_CHANGES`` changes of the simplest inputs, one per input and answer."""
    found: dict[tuple[ShownDatum, ShownDatum], AnswerChange] = {}
    for each in changes:
        found.setdefault((each.given, each.answer), each)

    def order(one: AnswerChange) -> tuple[object, ...]:
        return simplicity(one.row.rules.source, one.given), str(one.answer)

    return nsmallest(MOST_CHANGES, found.values(), key=order)


def change_problem(change: AnswerChange, switch: str) -> ChangesWithLayout:
    """Make the problem of a forbidden change; ``switch`` says where the answer first changes."""
    row = change.row
    return ChangesWithLayout(
        *change.rule,
        given=datum_with_value(row.rules.source, change.given),
        in_row=datum_text(row.rules.target, datum_of(row.answers[change.input])),
        elsewhere=datum_text(row.rules.target, change.answer),
        where=change.where,
        switch=switch,
    )


def describe_open_changes(changes: list[AnswerChange], count: int, switch: str) -> str:
    """Say how many of ``count`` inputs have several open answers, and where the simplest changes.

    ``switch`` is the description by ``first_switch``; it may be empty.
    """
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


def simplest_open(changes: list[AnswerChange]) -> AnswerChange:
    """Return the change of the simplest input, in the simplest tensor."""
    source = changes[0].row.rules.source
    return min(changes, key=lambda one: (simplicity(source, one.given), one.order))


def first_switch(change: AnswerChange, answers: Iterable[tuple[Probe, Bits]]) -> str:
    """Describe where ``answers``, to growing rows of one input, first differ; empty if nowhere.

    ``change`` gives only the target's format. Raises what the iterator ``answers`` raises.
    """
    target, alone = change.row.rules.target, None
    for probe, answer in answers:
        alone = answer[:1] if alone is None else alone
        moved = np.flatnonzero(answer != alone[0])
        if moved.size:
            was, now = (datum_text(target, datum_of(one)) for one in (alone[0], answer[moved[0]]))
            return f"{was} alone, {now} first at {probe}, position {moved[0]}"
    return ""


ProbeAnswers = Iterator[tuple[Probe, Bits]]


class ProbeFailedError(Exception):
    """Raised if a tensor gets no usable answer although its elements got one in a row."""

    def __init__(self, row: Baseline, problem: Problem) -> None:
        super().__init__(words(problem))
        self.row = row
        self.problem = problem


def answers_to(row: Baseline, plan: ProbePlan) -> Ask[ProbeAnswers]:
    """Request probes; return an iterator of each with its answer, without declined ones.

    The iterator raises ProbeFailedError for an error, a broken promise or a malformed answer, and
    ``Unanswered`` for a crash or if a batch as a whole has no answer.
    """
    replies = yield batch_requests(row.case, plan.batch(row.inputs))
    return (
        pair
        for part, answers in _answered_parts(row, plan, replies)
        for pair in part.split(answers)
    )


def changed_answers(
    asked: Sequence[tuple[Baseline, ProbePlan]], declined: list[str]
) -> Ask[Iterator[tuple[Baseline, Probe, Bits]]]:
    """Request all probes; return an iterator of those whose answers may differ from their row's.

    Of probes that are answered together, it yields all if one differs. It adds to ``declined`` each
    one that is declined, with the reason, and raises as the iterator of ``answers_to`` does.
    """
    requests = [batch_requests(row.case, plan.batch(row.inputs)) for row, plan in asked]
    replies = yield from in_step(dict(enumerate(map(ask_all, requests))))
    return (
        (row, probe, answer)
        for number, (row, plan) in enumerate(asked)
        for part, answers in _answered_parts(row, plan, replies[number], declined)
        if (answers != row.answers[part.picks]).any()
        for probe, answer in part.split(answers)
    )


def answers_in_turn(row: Baseline, turns: Sequence[tuple[Request, ProbePlan]]) -> Ask[ProbeAnswers]:
    """Request plans, each right after a request whose reply does not matter; see ``answers_to``.

    Whether that request is answered rightly is judged in its own pair.
    """
    requests = [
        [before, *batch_requests(row.case, plan.batch(row.inputs))] for before, plan in turns
    ]
    replies = yield from in_step(dict(enumerate(map(ask_all, requests))))
    return (
        pair
        for number, (_, plan) in enumerate(turns)
        for part, answers in _answered_parts(row, plan, replies[number][1:])
        for pair in part.split(answers)
    )


def _answered_parts(
    row: Baseline, plan: ProbePlan, replies: Sequence[Reply], declined: list[str] | None = None
) -> Iterator[tuple[ProbePlan, Bits]]:
    """Yield the answered probes in parts, with all answers of a part in one row.

    ``declined`` gets the others. Raises as the iterator of ``answers_to`` does.
    """
    if receiver_of(row.case.document) is not None:
        for probe, reply in zip(plan.probes, replies, strict=True):
            tensor = probe.tensor(row.inputs)
            yield from _survived(row, probe, _call_answer(row, tensor, reply), declined)
        return
    for reply in replies:
        whole: BatchReply = value_of(reply)
        if whole.elements is not None:
            yield plan, whole.elements
            return
        for probe, answer in zip(plan.probes, whole.each(), strict=False):
            yield from _survived(row, probe, answer, declined)


def _call_answer(row: Baseline, tensor: Bits, reply: Reply) -> ValueAnswer:
    """Return a call's values, a promise besides them that it breaks, or the failure to answer.

    Other promises are not checked if the document leaves the dtype open.
    """
    answer = value_answer(row.case, tensor, reply)
    if row.rules.is_open_dtype or not (
        isinstance(answer, Answered) and isinstance(reply, Answered)
    ):
        return answer
    from conformance.families.call.promises import broken_promises

    broken = next(broken_promises(row.case, tensor, reply.value), None)
    return answer if broken is None else Departed(broken)


def answers_at_once(row: Baseline, plan: ProbePlan) -> Ask[ProbeAnswers]:
    """Request probes from two threads, and return their answers as ``answers_to`` does.

    There are none for calls, or if the backend takes requests of one thread only.
    """
    if not plan.probes or receiver_of(row.case.document) is not None:
        return iter(())
    tensors = [probe.tensor(row.inputs) for probe in plan.probes]
    reply = yield from ask(CastAtOnce(row.case, tensors))
    return _at_once(row, plan, tensors, reply)


def answers_beside(row: Baseline, plan: ProbePlan, beside: Case) -> Ask[ProbeAnswers]:
    """Request probes from one thread while another casts the same patterns as ``beside`` says.

    The answers to the probes are returned as by ``answers_to``; there are none for calls, or if the
    backend declines or raises an error. Whether the other case is answered rightly is judged in its
    own pair.
    """
    if not plan.probes or receiver_of(row.case.document) is not None:
        return iter(())
    tensors = [probe.tensor(row.inputs) for probe in plan.probes]
    both = [each for tensor in tensors for each in (tensor, held_by(beside, tensor))]
    reply = yield from ask(CastAtOnce(row.case, both, beside))
    own = replace(reply, value=reply.value[::2]) if isinstance(reply, Answered) else reply
    return iter(()) if isinstance(own, Raised) else _at_once(row, plan, tensors, own)


def _at_once(row: Baseline, plan: ProbePlan, tensors: Sequence[Bits], reply: Reply) -> ProbeAnswers:
    target = row.rules.target
    answers: Sequence[ValueAnswer] = [reply]
    if isinstance(reply, Answered):
        answers = [
            attempt(partial(checked, target, *pair))
            for pair in zip(tensors, reply.value, strict=True)
        ]
    for probe, answer in zip(plan.probes, answers, strict=False):
        for part, bits in _survived(row, probe, answer):
            yield from part.split(bits)


def _survived(
    row: Baseline, probe: Probe, answer: ValueAnswer, declined: list[str] | None = None
) -> Iterator[tuple[ProbePlan, Bits]]:
    match answer:
        case Answered(bits):
            yield ProbePlan.of([probe], row.inputs.size), bits.reshape(-1)
        case Declined(text):
            if declined is not None:
                declined.append(f"{probe}: {text}")
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case Departed(promise):
            raise ProbeFailedError(row, replace(promise, where=str(probe)))
        case missing:
            raise ProbeFailedError(row, problem_of(missing, str(probe)))
