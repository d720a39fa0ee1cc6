"""Asks a cast again in tensors of every rank: shape and answers must be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.judging.answer_form import AnswerError, described, one_line
from conformance.judging.shape_choice import Shape
from oracles.protocol import Bits, Unsupported
from oracles.reference.expectations import Expected
from reports.diff.allowed_answers import levels_broken
from reports.diff.judgement import Fault
from specs.cases import Case
from specs.ruling import Ruling
from specs.tensor_rules import tensor_rule

AskEach = Callable[[Sequence[Bits]], Iterator[Bits]]
"""Asks one after another, as far as the answers are taken."""


def shape_faults(
    case: Case,
    rules: Ruling,
    inputs: Bits,
    expected: Expected,
    answer: Bits,
    broken: NDArray[np.uint8],
    ask_each: AskEach,
    shapes: tuple[Shape, ...],
) -> Iterator[Fault]:
    """The first shape that is not kept, or in which an element that was right turns wrong."""
    sound = np.flatnonzero(broken == 0)
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
        rule, kind, said = rules_of[shape], "answer", ""
        try:
            again = next(answers).reshape(-1)
            if not np.array_equal(again, answer[picked]):
                wrong = levels_broken(rules, inputs[picked], expected.at(picked), again)
                said = "an element answers otherwise than in one row" if wrong.any() else ""
        except Unsupported as reason:
            kind, said = "unsupported", one_line(reason)
        except AnswerError as error:
            said = str(error)
        except Exception as error:
            kind, said = "error", described(error)
        if said:
            yield Fault(kind, rule.rule, rule.clause, rule.level, f"shape {shape}: {said}")
            return
