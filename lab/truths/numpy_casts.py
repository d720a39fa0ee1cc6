"""numpy's own casts, and ml_dtypes' casts between the dtypes that it adds to numpy."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.truths.questions import Answers, Mask, Patterns, Question
from lab.truths.values import ML_DTYPES, as_integers, dtype_of, is_nan, values_of
from specs.formats import Format
from specs.model.vocabulary import Rounding

WHOLE: dict[Rounding, Any] = {
    "nearest-even": np.rint, "toward-zero": np.trunc, "floor": np.floor, "ceil": np.ceil
}  # fmt: skip
"""numpy's functions that round a float64 to a whole float64."""


class Numpy:
    """Cast by numpy; floats become whole by its functions, and are clamped or wrapped here."""

    name = "numpy"
    package = "numpy"
    most_inputs: int | None = None

    def version(self) -> str:
        return version("numpy")

    def can_answer(self, question: Question) -> bool:
        source, target = question.source, question.target
        if source.name in ML_DTYPES or target.name in ML_DTYPES or source == target:
            return False
        if target.kind == "float":
            return question.rounding == "nearest-even" and question.overflow != "wrap"
        if target.kind == "boolean":
            return True
        return source.is_integral or question.rounding in WHOLE

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        source, target = question.source, question.target
        if target.kind == "integer" and source.kind == "float":
            return as_integers(question, WHOLE[question.rounding](values_of(source, patterns)))
        answers = _cast(question, patterns)
        if target.kind == "integer" and question.overflow == "saturate":
            return Answers(answers.codes, _is_kept(question, patterns, answers.codes))
        return answers


class MlDtypes:
    """Cast by ml_dtypes, which rounds to the nearest even, and never saturates.

    One significant bit has no even pattern: what it does to float8e8m0 is the nearest away from
    zero. What becomes of numbers that no int4 or int2 holds it does not say.
    """

    name = "ml_dtypes"
    package = "ml_dtypes"
    most_inputs: int | None = None

    def version(self) -> str:
        return version("ml_dtypes")

    def can_answer(self, question: Question) -> bool:
        source, target = question.source, question.target
        if source == target or not {source.name, target.name} & ML_DTYPES.keys():
            return False
        if not _has_cast(source, target):
            return False
        if target.kind == "float":
            nearest = "nearest-away" if target.entry.zero == "none" else "nearest-even"
            return question.rounding == nearest and question.overflow != "wrap"
        return source.is_integral or target.kind == "boolean" or question.rounding == "toward-zero"

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        source, target = question.source, question.target
        answers = _cast(question, patterns)
        if target.kind == "integer":
            codes = answers.codes & np.array(target.mask, target.storage)
            if source.is_integral:
                return Answers(codes, _is_kept(question, patterns, codes))
            return Answers(codes, _is_inside(target, np.trunc(values_of(source, patterns))))
        return answers


@cache
def _has_cast(source: Format, target: Format) -> bool:
    try:
        np.zeros(1, dtype_of(source)).astype(dtype_of(target))
    except TypeError:
        return False
    return True


def _is_kept(question: Question, patterns: Patterns, codes: Patterns) -> Mask:
    """Whether the target represents each integer exactly."""
    return np.asarray(values_of(question.target, codes) == values_of(question.source, patterns))


def _is_inside(target: Format, whole: NDArray[np.float64]) -> Mask:
    top = 2.0 ** (target.bits - target.is_signed)
    return np.asarray((whole >= (-top if target.is_signed else 0.0)) & (whole < top))


def _cast(question: Question, patterns: Patterns) -> Answers:
    """Cast by numpy's ``astype``; if values should saturate, its infinities count as unknown."""
    source, target = question.source, question.target
    with np.errstate(all="ignore"):
        cast = patterns.view(dtype_of(source)).astype(dtype_of(target))
    codes = cast.view(target.storage)
    known = np.ones(codes.shape, bool)
    if question.overflow == "saturate" and target.nan_codes:
        known = np.isfinite(values_of(target, codes))
        if source.kind == "float":
            known |= is_nan(source, patterns)
    return Answers(codes, known)
