"""The answers to the tensors that probes describe.

All requests are made at once. The answers are looked at one after another: the first that is
missing raises an error, so that those before it count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from conformance.families.cast.baseline import Baseline
from conformance.families.cast.neighbors import held_by
from conformance.judging.asking import Ask, ask
from conformance.judging.probe import Probe, ProbePlan
from conformance.judging.values import Departed, ValueAnswer, value_answer, value_request
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
from oracles.backend.requests import CastAtOnce, CastBatch, Request
from oracles.protocol import Bits
from reports.problem_words import words
from reports.problems import Problem
from specs.case_calls import receiver_of
from specs.cases import Case

Answers = Iterator[tuple[Probe, Bits]]


class ProbeFailedError(Exception):
    """A tensor is not answered though its elements are; Hypothesis shrinks to the smallest."""

    def __init__(self, row: Baseline, problem: Problem) -> None:
        super().__init__(words(problem))
        self.row = row
        self.problem = problem


def answers_to(row: Baseline, plan: ProbePlan) -> Ask[Answers]:
    """Ask probes; yield each with its answer, except those that the backend declines.

    The iterator raises ProbeFailedError for an error or a malformed answer, and ``Unanswered``
    for a crash.
    """
    replies = yield _requests(row, plan)
    return (
        pair
        for part, answers in _answered_parts(row, plan, replies)
        for pair in part.split(answers)
    )


def changed_answers(
    asked: Sequence[tuple[Baseline, ProbePlan]],
) -> Ask[Iterator[tuple[Baseline, Probe, Bits]]]:
    """Ask all probes; yield those in which an element has another answer than in its row.

    The iterator raises as that of ``answers_to`` does.
    """
    requests = [_requests(row, plan) for row, plan in asked]
    replies = yield [each for part in requests for each in part]
    return _changed(asked, [*map(len, requests)], replies)


def answers_in_turn(row: Baseline, turns: Sequence[tuple[Request, ProbePlan]]) -> Ask[Answers]:
    """Ask plans, each immediately after a request whose reply does not matter; see ``answers_to``.

    Whether that request is answered rightly is judged in its own pair.
    """
    requests = [[before, *_requests(row, plan)] for before, plan in turns]
    replies = iter((yield [each for turn in requests for each in turn]))
    return _in_turn(row, turns, [[next(replies) for _ in turn][1:] for turn in requests])


def _in_turn(
    row: Baseline,
    turns: Sequence[tuple[Request, ProbePlan]],
    replies: Sequence[Sequence[Reply]],
) -> Answers:
    for (_, plan), own in zip(turns, replies, strict=True):
        for part, answers in _answered_parts(row, plan, own):
            yield from part.split(answers)


def _changed(
    asked: Sequence[tuple[Baseline, ProbePlan]], sizes: Sequence[int], replies: Sequence[Reply]
) -> Iterator[tuple[Baseline, Probe, Bits]]:
    at = 0
    for (row, plan), size in zip(asked, sizes, strict=True):
        own = replies[at : (at := at + size)]
        for part, answers in _answered_parts(row, plan, own):
            if (answers != row.answers[part.picks]).any():
                for probe, answer in part.split(answers):
                    yield row, probe, answer


def _requests(row: Baseline, plan: ProbePlan) -> list[Request]:
    if not plan.probes:
        return []
    if receiver_of(row.case.document) is None:
        return [CastBatch(row.case, plan.batch(row.inputs))]
    tensors = (probe.tensor(row.inputs) for probe in plan.probes)
    return [value_request(row.case, tensor, is_kept=True) for tensor in tensors]


def _answered_parts(
    row: Baseline, plan: ProbePlan, replies: Sequence[Reply]
) -> Iterator[tuple[ProbePlan, Bits]]:
    """The probes that are answered, in parts, with all answers of a part in one row."""
    if receiver_of(row.case.document) is not None:
        for probe, reply in zip(plan.probes, replies, strict=True):
            tensor = probe.tensor(row.inputs)
            yield from _survived(row, probe, _call_answer(row, tensor, reply))
        return
    for reply in replies:
        whole: BatchReply = value_of(reply)
        if whole.elements is not None:
            yield plan, whole.elements
            return
        for probe, answer in zip(plan.probes, whole.each(), strict=False):
            yield from _survived(row, probe, answer)


def _call_answer(row: Baseline, tensor: Bits, reply: Reply) -> ValueAnswer:
    """The values that a call gives, unless it breaks a promise besides them."""
    answer = value_answer(row.case, tensor, reply)
    if row.rules.is_open_dtype or not (
        isinstance(answer, Answered) and isinstance(reply, Answered)
    ):
        return answer
    from conformance.families.call.promises import broken_promises

    broken = next(broken_promises(row.case, tensor, reply.value), None)
    return answer if broken is None else Departed(broken)


def answers_at_once(row: Baseline, plan: ProbePlan) -> Ask[Answers]:
    """Ask probes from two threads, if the backend can be asked so; see ``answers_to``."""
    if not plan.probes or receiver_of(row.case.document) is not None:
        return iter(())
    tensors = [probe.tensor(row.inputs) for probe in plan.probes]
    reply = yield from ask(CastAtOnce(row.case, tensors))
    return _at_once(row, plan, tensors, reply)


def answers_beside(row: Baseline, plan: ProbePlan, beside: Case) -> Ask[Answers]:
    """Ask probes from one thread, while another casts the same patterns as another case says.

    Whether the other case is answered rightly is judged in its own pair.
    """
    if not plan.probes or receiver_of(row.case.document) is not None:
        return iter(())
    tensors = [probe.tensor(row.inputs) for probe in plan.probes]
    both = [each for tensor in tensors for each in (tensor, held_by(beside, tensor))]
    reply = yield from ask(CastAtOnce(row.case, both, beside))
    own = replace(reply, value=reply.value[::2]) if isinstance(reply, Answered) else reply
    return iter(()) if isinstance(own, Raised) else _at_once(row, plan, tensors, own)


def _at_once(row: Baseline, plan: ProbePlan, tensors: Sequence[Bits], reply: Reply) -> Answers:
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


def _survived(row: Baseline, probe: Probe, answer: ValueAnswer) -> Iterator[tuple[ProbePlan, Bits]]:
    match answer:
        case Answered(bits):
            yield ProbePlan.of([probe], row.inputs.size), bits.reshape(-1)
        case Declined():
            return
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case Departed(promise):
            raise ProbeFailedError(row, replace(promise, where=str(probe)))
        case missing:
            raise ProbeFailedError(row, problem_of(missing, str(probe)))
