"""apytypes, floats of any widths in C++, which start from float64.

A format is asked with its own bias and one more bit of exponent, so that overflow shows.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import Any

import numpy as np

from lab.truths.questions import Answers, Patterns, Question
from lab.truths.values import bounded, holds_float64, values_of
from specs.formats import format_named
from specs.model.vocabulary import Rounding

MODES: dict[Rounding, str] = {
    "nearest-even": "TIES_EVEN",
    "nearest-away": "TIES_AWAY",
    "toward-zero": "TO_ZERO",
    "floor": "TO_NEG",
    "ceil": "TO_POS",
    "odd": "JAM_UNBIASED",
}


class Apytypes:
    """Round by apytypes; it has no format without a zero, and no int64 or uint64."""

    name = "apytypes"
    package = "apytypes"
    most_inputs: int | None = None

    def version(self) -> str:
        return version("apytypes")

    def can_answer(self, question: Question) -> bool:
        target = question.target
        return (
            question.overflow != "wrap"
            and target.kind == "float"
            and target.entry.zero != "none"
            and target.bits < 64
            and holds_float64(question.source)
        )

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        apytypes: Any = importlib.import_module("apytypes")
        entry, double = question.target.entry, format_named("float64").entry
        values = values_of(question.source, patterns).astype(np.float64)
        quantization = getattr(apytypes.QuantizationMode, MODES[question.rounding])
        cast = apytypes.APyFloatArray.from_bits(
            values.view(np.uint64), double.exponent, double.mantissa, double.bias
        ).cast(entry.exponent + 1, entry.mantissa, entry.bias, quantization)
        return bounded(question, cast.to_numpy(), np.isinf(values))
