"""Whether one named behaviour explains all the wrong answers of a divergence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.answers import Answered
from reports.behaviour import explained
from reports.behaviour_forms import are_numbers
from reports.behaviour_tally import look, question
from reports.judgement import Divergence
from reports.runs import Runs
from specs.cases import Case
from specs.ruling import ruling


def behaviour_of(case: Case, answered: Answered | None, divergence: Divergence) -> str | None:
    """The form that gives every wrong answer, if one does and the answers are kept."""
    rules = ruling(case)
    if answered is None or not are_numbers(rules.source, rules.target):
        return None
    inputs, answers = answered.inputs.values, answered.answers.values
    if inputs.dtype.kind != "u" or divergence.runs.total > divergence.runs.first.size:
        return None
    wrong = _within(divergence.runs, inputs)
    asked = question(rules.source, rules.target, rules.rounding)
    lines = explained(look(asked, inputs[wrong], answers[wrong]))
    return lines[0].form if len(lines) == 1 else None


def _within(runs: Runs, inputs: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    """Which inputs lie in one of the runs."""
    nearest = np.searchsorted(runs.first.astype(np.uint64), inputs.astype(np.uint64), "right") - 1
    inside: NDArray[np.bool_] = inputs <= runs.last.astype(np.uint64)[nearest]
    return (nearest >= 0) & inside
