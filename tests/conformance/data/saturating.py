"""A backend that obeys house rules, and one that does so in all but one region."""

from __future__ import annotations

import numpy as np

from conformance.families.reference import Reference
from oracles.protocol import Bits
from reports.behaviors.regions import evaluate
from specs.behaviors import behaviors
from specs.cases import Case
from specs.formats import format_named

RIGHT = Reference()
MINUS_INFINITY = 0xFF800000


class Saturating:
    """Truncates and clamps, NaN to zero."""

    name = "saturating"
    version = "1"
    claims = ()

    def cast(self, case: Case, bits: Bits) -> Bits:
        source, target = format_named(case.source), format_named(case.target)
        if (source.kind, target.kind) != ("float", "integer"):
            return RIGHT.cast(case, bits)
        codes, defined = evaluate(behaviors()["saturate"], source, target, bits.ravel())
        answers: Bits = np.where(defined, codes, 0).astype(target.storage)
        return answers.reshape(bits.shape)


class AllButMinusInfinity(Saturating):
    """The same, but minus infinity becomes zero as well."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        answers = super().cast(case, bits)
        is_wrong = (bits == MINUS_INFINITY) & (case.source == "float32")
        answers = np.where(is_wrong, 0, answers)
        return answers.astype(format_named(case.target).storage)
