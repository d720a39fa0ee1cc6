"""Asks a cast again in tensors of every rank: it must keep the shape and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

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
) -> Iterator[Fault]:
    """The first shape that is not kept, or in which an element that was right turns wrong."""
    sound = np.flatnonzero(grades == ALLOWED)
    if case.example is not None or sound.size == 0:
        return
    picks = picks_by_shape(case, sound, shapes)
    answers = ask_each(tensors_of(inputs, picks))
    for shape, picked in picks.items():
        rule = tensor_rule(case.document, case.version, shape)
        kind, text = "answer", ""
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
            yield Fault(kind, rule.rule, rule.clause, rule.level, f"shape {shape}: {text}")
            return


def picks_by_shape(
    case: Case, members: NDArray[np.intp], shapes: tuple[Shape, ...]
) -> dict[Shape, NDArray[np.intp]]:
    """Which members fill each shape that the document wants kept, the first and last among them."""
    return {
        shape: members[np.linspace(0, members.size - 1, prod(shape)).astype(np.intp)]
        for shape in shapes
        if tensor_rule(case.document, case.version, shape).keeps_shape
    }


def tensors_of(inputs: Bits, picks: Mapping[Shape, NDArray[np.intp]]) -> list[Bits]:
    """The tensors of these inputs."""
    return [inputs[picked].reshape(shape) for shape, picked in picks.items()]
