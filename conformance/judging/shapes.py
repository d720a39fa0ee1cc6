"""Asks a cast again in tensors of every rank: it must keep the shape and the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
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
from oracles.adapters.script_text import UNEVEN
from oracles.protocol import Bits
from oracles.reference.expectations import Expected
from oracles.tensor_batch import TensorBatch
from reports.diff.allowed_answers import grade_answers
from reports.diff.grades import ALLOWED, Grades
from reports.diff.judgement import Fault
from specs.cases import Case
from specs.ruling import Ruling
from specs.tensor_rules import tensor_rule

PLANS_KEPT = 256
AskEach = Callable[[TensorBatch], Iterator[Answer]]
"""Asks one tensor after another, as far as the answers are consumed."""


@dataclass(frozen=True)
class FaultyTensor:
    """A fault, and a tensor that shows it."""

    fault: Fault
    bits: Bits


@dataclass(frozen=True)
class ShapePlan:
    """Which of some inputs fill each shape that a document wants kept."""

    picks: dict[Shape, NDArray[np.intp]]
    all_picks: NDArray[np.intp]
    """Those of all shapes, one after another."""

    def batch(self, inputs: Bits) -> TensorBatch:
        """The tensors of these inputs."""
        return TensorBatch(inputs[self.all_picks], [*self.picks])


@lru_cache(PLANS_KEPT)
def shape_plan(document: str, version: str, shapes: tuple[Shape, ...], count: int) -> ShapePlan:
    """The plan for so many inputs: the first and the last are in each shape that has room."""
    picks = {
        shape: np.linspace(0, count - 1, prod(shape)).astype(np.intp)
        for shape in shapes
        if tensor_rule(document, version, shape).keeps_shape
    }
    return ShapePlan(picks, np.concatenate([*picks.values(), np.zeros(0, np.intp)], dtype=np.intp))


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
    plan = shape_plan(case.document, case.version, shapes, sound.size)
    are_all_sound = sound.size == inputs.size
    answers = ask_each(plan.batch(inputs if are_all_sound else inputs[sound]))
    for shape, members in plan.picks.items():
        picked = members if are_all_sound else sound[members]
        kind, text, changed = "answer", "", None
        match next(answers):
            case Answered(value):
                again = value.reshape(-1)
                if (again != answer[picked]).any():
                    regraded = grade_answers(rules, inputs[picked], expected.at(picked), again)
                    if (wrong := regraded != ALLOWED).any():
                        text = "an element answers otherwise than in one row"
                        changed = inputs[picked[wrong][:1]]
            case Declined(text):
                kind = "unsupported"
            case Malformed(text):
                pass
            case Raised(text=text):
                kind = "error"
            case Crashed() as crashed:
                raise Unanswered(crashed)
        if text:
            rule = tensor_rule(case.document, case.version, shape)
            fault = Fault(kind, rule.rule, rule.clause, rule.level, f"shape {shape}: {text}")
            if changed is None:
                yield FaultyTensor(fault, inputs[picked].reshape(shape))
            else:
                yield FaultyTensor(fault, np.resize(changed, UNEVEN))
            return
