"""How much a wrong rounding costs: the mean error of a carrier in units of the last place.

A rounding to nearest errs to both sides alike. One that truncates makes magnitudes too small, on
average by half a unit, and no comparison within a tolerance sees it. The mean is exact: the error
of each input is a double without rounding, and ``fsum`` rounds their sum once.
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.carriers.request import Carry
from conformance.families.cast.baseline import GradedAnswers
from conformance.judging.asking import Ask, ask
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from oracles.reference.kernel_text import finite_doubles
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named

SPREAD = 1 << 16
"""Inputs of a wide source, at even distances among all patterns."""
MOST_OFF = 2
"""Units of the last place by which an answer may be wrong and still be a rounding."""
EXACT_BITS = 53
"""The bits of a double's significand: every value of the source must fit."""


class MeanError(NamedTuple):
    """By how many units of the last place magnitudes are too large, on average of some inputs."""

    units: float = 0.0
    inputs: int = 0


def mean_error(case: Case, graded: GradedAnswers) -> Ask[MeanError]:
    """Return the mean error of a case; of no inputs if wrong answers are no wrong roundings.

    Sources of more than 16 bits are asked a spread of their patterns.
    """
    source, target = format_named(case.source), format_named(case.target)
    if not (source.is_numeric and target.kind == "float") or _digits(source) > EXACT_BITS:
        return MeanError()
    off = errors(source, target, graded.inputs[graded.fails], graded.answers[graded.fails])
    if not off.any() or (np.abs(off) >= MOST_OFF).any():
        return MeanError()
    inputs, answers = graded.inputs, graded.answers
    if source.bits > EXHAUSTIVE_BITS:
        step = source.mask // SPREAD | 1  # odd, so that the low bits vary
        inputs = (np.arange(SPREAD, dtype=np.uint64) * np.uint64(step)).astype(source.storage)
        match (yield from ask(Carry(case, inputs))):
            case Answered(answers):
                pass
            case _:
                return MeanError()
    off = errors(source, target, inputs, answers)
    return MeanError(fsum(off) / off.size, off.size)


def _digits(form: Format) -> int:
    return form.bits if form.is_integral else form.entry.mantissa + 1


def errors(source: Format, target: Format, inputs: Bits, answers: Bits) -> NDArray[np.float64]:
    """Return by how many units of the last place each answer's magnitude exceeds its input's.

    Inputs and answers that are no numbers are left out, and what is beyond the target's range.
    """
    given, got = np.abs(finite_doubles(source, inputs)), np.abs(finite_doubles(target, answers))
    largest = finite_doubles(target, np.array([target.max_code], target.storage))[0]
    counts = np.isfinite(given) & np.isfinite(got) & (given <= largest)
    given, got = given[counts], got[counts]
    _, exponents = np.frexp(given)
    lowest = target.lowest_exponent - target.entry.mantissa
    units = np.where(given > 0, exponents - 1 - target.entry.mantissa, lowest)
    found: NDArray[np.float64] = np.ldexp(got - given, -np.maximum(units, lowest))
    return found
