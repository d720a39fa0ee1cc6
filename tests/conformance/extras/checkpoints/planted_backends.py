"""A backend that is wrong for one bfloat16 and one float32."""

from __future__ import annotations

import numpy as np

from conformance.families.reference import Reference
from oracles.protocol import Bits
from reports.grading.allowed_answers import is_nan
from specs.cases import Case
from specs.formats import format_named

RIGHT = Reference()
WRONG = {"bfloat16": 0x3F99, "float32": 0x3F99999A, "float64": 0x3FF3333333333333}
"""1.2 in three formats, nearly."""


class OneWrong:
    """Answers one pattern with the next code, all others as the reference does."""

    name = "one-wrong"
    version = "1"
    claims = ()

    def cast(self, case: Case, bits: Bits) -> Bits:
        answers = RIGHT.cast(case, bits)
        is_wrong = bits == np.array(WRONG[case.source], bits.dtype)
        return np.where(is_wrong, answers + answers.dtype.type(1), answers)


class NanIsZero(OneWrong):
    """Answers zero to NaN."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        answers = RIGHT.cast(case, bits)
        found: Bits = np.where(is_nan(format_named(case.source), bits), 0, answers)
        return found.astype(answers.dtype)


class Dies(OneWrong):
    """Fails on every tensor of more than 64 elements."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        if bits.size > 64:
            raise RuntimeError("no memory")
        return super().cast(case, bits)
