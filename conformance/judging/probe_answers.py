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
    value_of,
)
from conformance.judging.backend_judge import BackendJudge
from conformance.judging.calls import answer_of
from conformance.judging.probes import Probe
from conformance.judging.row_answers import Row
from oracles.protocol import Bits, WithCastAtOnce, WithCastEach
from specs.case_calls import receiver_of


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
    oracle = judge.backend.oracle
    together = [probe for probe in chosen if probe.is_at_once]
    left = [probe for probe in chosen if not probe.is_at_once]
    yield from _answers_at_once(judge, row, together)
    if not isinstance(oracle, WithCastEach) or receiver_of(row.case.document) is not None:
        for probe in left:
            yield from _answer_to(judge, row, probe)
        return
    while left:
        tensors = [probe.tensor(row.inputs) for probe in left]
        known = value_of(attempt(partial(oracle.cast_each, row.case, tensors)))
        for probe, tensor, answer in zip(left, tensors, known, strict=False):
            check = partial(checked, row.rules.target, tensor, answer)
            yield from _survived(probe, attempt(check))
        left = left[len(known) :]
        if left:
            # The first that was not answered together: alone it tells why.
            yield from _answer_to(judge, row, left.pop(0))


def _answers_at_once(
    judge: BackendJudge, row: Row, chosen: Sequence[Probe]
) -> Iterator[tuple[Probe, Bits]]:
    """The answers to probes that two threads ask, of a backend that can be asked so."""
    oracle = judge.backend.oracle
    if not chosen or not isinstance(oracle, WithCastAtOnce) or receiver_of(row.case.document):
        return
    tensors = [probe.tensor(row.inputs) for probe in chosen]
    match attempt(partial(oracle.cast_at_once, row.case, tensors)):
        case Answered(answers):
            for probe, tensor, answer in zip(chosen, tensors, answers, strict=True):
                check = partial(checked, row.rules.target, tensor, answer)
                yield from _survived(probe, attempt(check))
        case missing:
            yield from _survived(chosen[0], missing)


def _answer_to(judge: BackendJudge, row: Row, probe: Probe) -> Iterator[tuple[Probe, Bits]]:
    tensor = probe.tensor(row.inputs)

    def checked_answer() -> Bits:
        answer = answer_of(judge.backend.oracle, row.case, tensor)
        # A copy: a backend may use one buffer for all its answers.
        return checked(row.rules.target, tensor, answer).copy()

    yield from _survived(probe, attempt(checked_answer))


def _survived(probe: Probe, answer: Answer) -> Iterator[tuple[Probe, Bits]]:
    match answer:
        case Answered(bits):
            yield probe, bits
        case Declined():
            return
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case missing:
            raise ProbeFailedError(probe, missing)
