"""The same tally compiled by numba: one walk over inputs and answers for all forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.compiled_kernels import written
from oracles.reference.kernel_terms import Term, Trace, select_terms
from reports.behaviors.closed_forms import real_format, real_patterns
from reports.behaviors.regions import mark_text
from reports.behaviors.steps import Evaluation
from reports.behaviors.tally import Question, Tally, tally

LOOP = """
def walk(inputs, answers, marks, wrong):
    for at in range(inputs.size):
        n0 = uint64(inputs[at])
        got = uint64(answers[at])
        got_nan = {got_nan}
{body}
        marks[at] = {mark}
{forms}
"""
FORM = "        wrong[{row}, at] = not ({told} and ({code} == got or {both_nan}))"

Walk = Callable[[NDArray[Any], NDArray[Any], NDArray[np.uint8], NDArray[np.bool_]], None]


def look(asked: Question, inputs: NDArray[Any], answers: NDArray[Any]) -> Tally:
    """The tally of some open inputs and their answers, in whatever order."""
    marks = np.empty(inputs.size, np.uint8)
    wrong = np.empty((len(asked.forms), inputs.size), bool)
    walk(asked)(real_patterns(asked.source, inputs), answers, marks, wrong)
    order = np.argsort(marks, kind="stable")
    named = {
        form.name: row[order] if row.any() else row
        for form, row in zip(asked.forms, wrong, strict=True)
    }
    return tally(asked, inputs[order], answers[order], marks[order], named)


@lru_cache(maxsize=32)
def walk(asked: Question) -> Walk:
    """Compile a question."""
    names: dict[str, Any] = {"uint64": numba.uint64}
    exec(compile(program(asked), f"<{asked.source.name} to {asked.target.name}>", "exec"), names)
    made: Walk = numba.njit(nogil=True, boundscheck=False)(names["walk"])
    return made


def program(asked: Question) -> str:
    """The walk as text: what several forms have in common is reckoned once."""
    source, target = real_format(asked.source), asked.target
    trace = Trace(source.bits)
    pattern = trace.input()
    told = Evaluation(source, target, pattern, select_terms)
    answers = [_terms(trace, *told.answer(form)) for form in asked.forms]
    mark = mark_text(source, target, asked.rounding, pattern, select_terms)
    body, names = written(trace, (mark, *(term for pair in answers for term in pair)))
    forms = [
        FORM.format(row=row, code=code, told=is_told, both_nan=_and_nan(target, code))
        for row, (code, is_told) in enumerate(zip(names[1::2], names[2::2], strict=True))
    ]
    return LOOP.format(
        body=body, mark=names[0], forms="\n".join(forms), got_nan=_nan(target, "got")
    )


def _terms(trace: Trace, code: Any, told: Any) -> tuple[Term, Term]:
    return (
        code if isinstance(code, Term) else trace.constant(code),
        told if isinstance(told, Term) else trace.constant(told, truth=True),
    )


def _nan(target: Any, name: str) -> str:
    """Whether a pattern is a NaN, as text."""
    ranges = (f"uint64({nans.start}) <= {name} < uint64({nans.stop})" for nans in target.nan_codes)
    return " or ".join(ranges) or "False"


def _and_nan(target: Any, name: str) -> str:
    return f"(got_nan and ({_nan(target, name)}))"
