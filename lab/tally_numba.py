"""``tallies.tally_answers`` compiled by numba: one loop over all inputs for all behaviors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import Evaluation
from oracles.reference.compiled_kernels import loop_body
from oracles.reference.kernel_terms import Term, Trace, select_terms
from reports.behaviors.regions import mark_of, real_format, real_patterns
from reports.behaviors.tally import BehaviorSearch, Tally, build_tally
from specs.formats import Format

LOOP = """
def fill(inputs, answers, marks, misses):
    for at in range(inputs.size):
        n0 = uint64(inputs[at])
        got = uint64(answers[at])
        got_nan = {got_nan}
{body}
        marks[at] = {mark}
{behaviors}
"""
MISS = "        misses[{row}, at] = not ({defined} and ({code} == got or {both_nan}))"

Fill = Callable[[NDArray[Any], NDArray[Any], NDArray[np.uint8], NDArray[np.bool_]], None]
"""Takes inputs and answers, and fills an array of marks and one of misses, a row per behavior."""


def tally_answers(search: BehaviorSearch, inputs: NDArray[Any], answers: NDArray[Any]) -> Tally:
    """Return the tally of open inputs, in any order, and one backend's answers to them."""
    marks = np.empty(inputs.size, np.uint8)
    misses = np.empty((len(search.candidates), inputs.size), bool)
    _compile(search)(real_patterns(search.source, inputs), answers, marks, misses)
    order = np.argsort(marks, kind="stable")
    by_name = {
        behavior.name: row[order] if row.any() else row
        for behavior, row in zip(search.candidates, misses, strict=True)
    }
    return build_tally(search, inputs[order], answers[order], marks[order], by_name)


@lru_cache(maxsize=32)
def _compile(search: BehaviorSearch) -> Fill:
    names: dict[str, Any] = {"uint64": numba.uint64}
    title = f"<{search.source.name} to {search.target.name}>"
    exec(compile(_loop_source(search), title, "exec"), names)
    fill: Fill = numba.njit(nogil=True, boundscheck=False)(names["fill"])
    return fill


def _loop_source(search: BehaviorSearch) -> str:
    """Return the loop as Python source; behaviors share the expressions they have in common."""
    source, target = real_format(search.source), search.target
    trace = Trace(source.bits)
    pattern = trace.input()
    evaluation = Evaluation(source, target, pattern, select_terms)
    answers = [_as_terms(trace, *evaluation.answer(each)) for each in search.candidates]
    mark = mark_of(source, target, search.rounding, pattern, select_terms)
    body, names = loop_body(trace, (mark, *(term for pair in answers for term in pair)))
    misses = [
        MISS.format(row=row, code=code, defined=defined, both_nan=_both_nan(target, code))
        for row, (code, defined) in enumerate(zip(names[1::2], names[2::2], strict=True))
    ]
    return LOOP.format(
        body=body, mark=names[0], behaviors="\n".join(misses), got_nan=_is_nan(target, "got")
    )


def _as_terms(trace: Trace, code: Any, defined: Any) -> tuple[Term, Term]:
    """Return a behavior's answer as terms; what does not depend on the input is a constant."""
    return (
        code if isinstance(code, Term) else trace.constant(code),
        defined if isinstance(defined, Term) else trace.constant(defined, truth=True),
    )


def _is_nan(target: Format, name: str) -> str:
    """Return the Python expression for whether the pattern in the variable ``name`` is a NaN."""
    ranges = (f"uint64({nans.start}) <= {name} < uint64({nans.stop})" for nans in target.nan_codes)
    return " or ".join(ranges) or "False"


def _both_nan(target: Format, name: str) -> str:
    return f"(got_nan and ({_is_nan(target, name)}))"
