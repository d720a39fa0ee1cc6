"""Asks a backend the tensors that probes describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from conformance.judging.answers import (
    Answer,
    Answered,
    Crashed,
    Declined,
    NoAnswer,
    Unanswered,
    attempt,
    checked,
    stored,
    value_of,
)
from conformance.judging.backend_judge import BackendJudge
from conformance.judging.calls import answer_of, held_by
from conformance.judging.probes import Probe, ProbePlan
from conformance.judging.row_answers import Row
from oracles.protocol import AheadRequest, Bits, WithAskAhead, WithCastAtOnce, WithCastBatch
from specs.case_calls import call_of, receiver_of


class ProbeFailedError(Exception):
    """A tensor is not answered though its elements are; Hypothesis shrinks to the smallest."""

    def __init__(self, probe: Probe, missing: NoAnswer) -> None:
        super().__init__(f"{probe}: {missing.text}")


def answers_to(
    judge: BackendJudge, row: Row, chosen: Sequence[Probe]
) -> Iterator[tuple[Probe, Bits]]:
    """Each probe with its answer, except those that the backend declines.

    Raises ``ProbeFailedError`` for an error or a malformed answer, ``Unanswered`` for a crash.
    """
    plan = ProbePlan.of(chosen, row.inputs.size)
    if receiver_of(row.case.document) is not None:
        _ask_ahead(judge, [(row, plan)])
    for part, answers in _answered_parts(judge, row, plan):
        yield from part.split(answers)


def changed_answers(
    judge: BackendJudge, asked: Sequence[tuple[Row, ProbePlan]]
) -> Iterator[tuple[Row, Probe, Bits]]:
    """The probes in which an element has another answer than in its row, with their answers.

    Raises as ``answers_to`` does.
    """
    _ask_ahead(judge, asked)
    for row, plan in asked:
        for part, answers in _answered_parts(judge, row, plan):
            if (answers != row.answers[part.picks]).any():
                for probe, answer in part.split(answers):
                    yield row, probe, answer


def _ask_ahead(judge: BackendJudge, asked: Sequence[tuple[Row, ProbePlan]]) -> None:
    """Send all tensors in one message, if the backend takes requests ahead."""
    oracle = judge.backend.oracle
    if isinstance(oracle, WithAskAhead):
        oracle.ask_ahead([each for row, plan in asked for each in _requests(row, plan)])


def _requests(row: Row, plan: ProbePlan) -> Iterator[AheadRequest]:
    case = row.case
    if receiver_of(case.document) is None:
        yield AheadRequest("cast_batch", [case], plan.batch(row.inputs))
        return
    for probe in plan.probes:
        yield AheadRequest("call", [case], held_by(case, probe.tensor(row.inputs)), call_of(case))


def _answered_parts(
    judge: BackendJudge, row: Row, plan: ProbePlan
) -> Iterator[tuple[ProbePlan, Bits]]:
    """The probes that are answered, in parts, with all answers of a part in one row."""
    oracle, target = judge.backend.oracle, row.rules.target
    if not isinstance(oracle, WithCastBatch) or receiver_of(row.case.document) is not None:
        for probe in plan.probes:
            yield from _answer_to(judge, row, probe)
        return
    first, last = 0, len(plan.probes)
    while first < last:
        left = plan.part(first, last)
        known = value_of(attempt(partial(oracle.cast_batch, row.case, left.batch(row.inputs))))
        if known.count:
            part = left.part(0, known.count)
            match attempt(partial(stored, target, known.elements)):
                case Answered(answers):
                    yield part, answers
                case _:
                    # One of them is malformed.
                    for probe, answer in part.split(known.elements):
                        check = partial(stored, target, answer)
                        yield from _survived(row, probe, attempt(check))
        first += known.count
        if first < last:
            # The first that was not answered together: alone it tells why.
            yield from _answer_to(judge, row, plan.probes[first])
            first += 1


def answers_at_once(
    judge: BackendJudge, row: Row, chosen: Sequence[Probe]
) -> Iterator[tuple[Probe, Bits]]:
    """The answers to probes that two threads ask, of a backend that can be asked so.

    Raises as ``answers_to`` does.
    """
    for part, answers in _parts_at_once(judge, row, chosen):
        yield from part.split(answers)


def _parts_at_once(
    judge: BackendJudge, row: Row, chosen: Sequence[Probe]
) -> Iterator[tuple[ProbePlan, Bits]]:
    oracle = judge.backend.oracle
    if not chosen or not isinstance(oracle, WithCastAtOnce) or receiver_of(row.case.document):
        return
    tensors = [probe.tensor(row.inputs) for probe in chosen]
    match attempt(partial(oracle.cast_at_once, row.case, tensors)):
        case Answered(answers):
            for probe, tensor, answer in zip(chosen, tensors, answers, strict=True):
                check = partial(checked, row.rules.target, tensor, answer)
                yield from _survived(row, probe, attempt(check))
        case missing:
            yield from _survived(row, chosen[0], missing)


def _answer_to(judge: BackendJudge, row: Row, probe: Probe) -> Iterator[tuple[ProbePlan, Bits]]:
    tensor = probe.tensor(row.inputs)

    def checked_answer() -> Bits:
        answer = answer_of(judge.backend.oracle, row.case, tensor)
        # A copy: a backend may use one buffer for all its answers.
        return checked(row.rules.target, tensor, answer).copy()

    yield from _survived(row, probe, attempt(checked_answer))


def _survived(row: Row, probe: Probe, answer: Answer) -> Iterator[tuple[ProbePlan, Bits]]:
    match answer:
        case Answered(bits):
            yield ProbePlan.of([probe], row.inputs.size), bits.reshape(-1)
        case Declined():
            return
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case missing:
            raise ProbeFailedError(probe, missing)
