"""Asks a cast again in tensors of every rank: it must keep the shape and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conformance.judging.answers import (
    Answer,
    Answered,
    Crashed,
    Declined,
    Malformed,
    Raised,
    Unanswered,
)
from conformance.judging.shape_choice import Shape
from oracles.protocol import Bits
from oracles.reference.expectations import Expected
from reports.diff.allowed_answers import grade_answers
from reports.diff.grades import ALLOWED, Grades
from reports.diff.judgement import Fault
from specs.cases import Case
from specs.ruling import Ruling
from specs.tensor_rules import tensor_rule


@dataclass(frozen=True)
class FaultyTensor:
    """A fault, and a tensor that shows it."""

    fault: Fault
    bits: Bits


AskEach = Callable[[Sequence[Bits]], Iterator[Answer]]
"""Asks one tensor after another, as far as the answers are consumed."""


def shape_faults(
    case: Case,
    rules: Ruling,
    inputs: Bits,
    expected: Expected,
    answer: Bits,
    grades: Grades,
    ask_each: AskEach,
    shapes: tuple[Shape, ...],
) -> Iterator[FaultyTensor]:
    """The first shape that is not kept, or in which an element that was right turns wrong."""
    sound = np.flatnonzero(grades == ALLOWED)
    if case.example is not None or sound.size == 0:
        return
    rules_of = {shape: tensor_rule(case.document, case.version, shape) for shape in shapes}
    picks = {
        shape: sound[np.linspace(0, sound.size - 1, int(np.prod(shape))).astype(int)]
        for shape, rule in rules_of.items()
        if rule.keeps_shape
    }
    answers = ask_each([inputs[picked].reshape(shape) for shape, picked in picks.items()])
    for shape, picked in picks.items():
        rule, kind, text = rules_of[shape], "answer", ""
        match next(answers):
            case Answered(value):
                again = value.reshape(-1)
                if not np.array_equal(again, answer[picked]):
                    regraded = grade_answers(rules, inputs[picked], expected.at(picked), again)
                    if (regraded != ALLOWED).any():
                        text = "an element answers otherwise than in one row"
            case Declined(text):
                kind = "unsupported"
            case Malformed(text):
                pass
            case Raised(text=text):
                kind = "error"
            case Crashed() as crashed:
                raise Unanswered(crashed)
        if text:
            fault = Fault(kind, rule.rule, rule.clause, rule.level, f"shape {shape}: {text}")
            yield FaultyTensor(fault, inputs[picked].reshape(shape))
            return
