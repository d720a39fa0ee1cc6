"""gfloat, whose formats are data as ours are, on arrays of float64."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from lab.truths.questions import Answers, Patterns, Question
from lab.truths.values import holds_float64, values_of
from specs.formats import Format
from specs.model.vocabulary import Rounding

MODES: dict[Rounding, str] = {
    "nearest-even": "TiesToEven",
    "nearest-away": "TiesToAway",
    "toward-zero": "TowardZero",
    "floor": "TowardNegative",
    "ceil": "TowardPositive",
}
NAMED = {
    "float64": "binary64",
    "float32": "binary32",
    "float16": "binary16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "ocp_e4m3",
    "float8e5m2": "ocp_e5m2",
    "float8e8m0": "ocp_e8m0",
    "float6e2m3": "ocp_e2m3",
    "float6e3m2": "ocp_e3m2",
    "float4e2m1": "ocp_e2m1",
}
"""gfloat's own definitions; the other formats are defined for it by their fields."""


class Gfloat:
    """Round by gfloat, whose formats have one NaN: what becomes a NaN by itself is not asked."""

    name = "gfloat"
    package = "gfloat"
    most_inputs: int | None = None

    def version(self) -> str:
        return version("gfloat")

    def can_answer(self, question: Question) -> bool:
        target = question.target
        return (
            question.rounding in MODES
            and question.overflow != "wrap"
            and target.kind == "float"
            and holds_float64(question.source)
        )

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        gfloat: Any = importlib.import_module("gfloat")
        target = question.target
        values = values_of(question.source, patterns).astype(np.float64)
        info, saturates = information(target), question.overflow == "saturate"
        known = ~np.isnan(values)
        if not saturates and not target.entry.infinity:
            known &= np.isfinite(values) if target.nan_codes else np.abs(values) <= info.max
        if target.entry.zero == "none":
            known &= values > 0
        rounding = getattr(gfloat.RoundMode, MODES[question.rounding])
        asked = np.where(known, values, 1.0)
        rounded = gfloat.round_ndarray(info, asked, rounding, saturates)
        if target.entry.zero == "none":
            # It rounds as if the exponent had no lower end, then has no pattern for the result.
            known &= ~(rounded < info.min)
            rounded = np.where(known, rounded, 1.0)
        return Answers(gfloat.encode_ndarray(info, rounded).astype(target.storage), known)


@cache
def information(fmt: Format) -> Any:
    """The description of a format as gfloat has it."""
    gfloat: Any = importlib.import_module("gfloat")
    if fmt.name in NAMED:
        return getattr(importlib.import_module("gfloat.formats"), f"format_info_{NAMED[fmt.name]}")
    entry = fmt.entry
    nans = {"ieee": (1 << entry.mantissa) - 1, "all-ones": 1, "negative-zero": 0, "none": 0}
    return gfloat.FormatInfo(
        name=fmt.name,
        k=fmt.bits,
        precision=fmt.precision,
        bias=entry.bias,
        has_nz=entry.zero == "signed",
        domain=gfloat.Domain.Extended if entry.infinity else gfloat.Domain.Finite,
        num_high_nans=nans[entry.nan],
        has_subnormals=True,
        is_signed=True,
        is_twos_complement=False,
    )
