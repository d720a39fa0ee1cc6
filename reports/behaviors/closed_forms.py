"""Which behaviors apply to a pair of dtypes, and what they answer to arrays of patterns.

A behavior is asked about the real part of a complex source.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.behavior_steps import Evaluation
from oracles.reference.machine_words import select_arrays
from specs.behaviors import Behavior, Constant, ConstantAnswer, NanAnswer, behaviors
from specs.formats import Format, format_named

MOST_KEPT = 1 << 12
"""Most patterns whose evaluation is cached for the next behavior; more would take much memory."""
HAS_CONSTANT: dict[Constant, Any] = {
    "zero": lambda target: target.entry.zero != "none",
    "minus-zero": lambda target: target.entry.zero == "signed",
    "infinity": lambda target: target.entry.infinity,
    "minus-infinity": lambda target: target.entry.infinity,
    "nan": lambda target: bool(target.nan_codes),
}
"""Whether a format has a constant; every format has the constants that are not listed here."""


def applies_to(behavior: Behavior, source: Format, target: Format) -> bool:
    """Whether a behavior says anything about a pair."""
    source = real_format(source)
    if source.kind not in behavior.from_ or target.kind not in behavior.to:
        return False
    return all(_is_possible(step, source, target) for step in behavior.steps)


def _is_possible(step: Any, source: Format, target: Format) -> bool:
    match step:
        case ConstantAnswer(answer=word) | NanAnswer(nan=word):
            return word not in HAS_CONSTANT or bool(HAS_CONSTANT[word](target))
        case "low-bits":
            return target.is_integral
        case "to-infinity":
            return target.kind == "float" and (target.entry.infinity or bool(target.nan_codes))
        case "to-nan":
            return bool(target.nan_codes)
        case "drop-sign":
            return source.is_signed
    return True


def has_behaviors(source: Format, target: Format) -> bool:
    """Whether a pair can have behaviors at all: complex targets and texts have none."""
    return real_format(source).is_numeric and target.is_numeric


def behaviors_between(source: Format, target: Format) -> tuple[Behavior, ...]:
    """The shipped behaviors that apply to a pair, the simplest first."""
    return tuple(each for each in behaviors().values() if applies_to(each, source, target))


def real_format(source: Format) -> Format:
    """The format of the numbers that behaviors see: for a complex source, that of its parts."""
    return format_named(source.entry.part) if source.kind == "complex" else source


def real_patterns(source: Format, inputs: NDArray[Any]) -> NDArray[np.uint64]:
    """The patterns that behaviors see: for complex numbers, those of the real parts."""
    if source.kind != "complex":
        return inputs.astype(np.uint64)
    part = real_format(source).storage
    # In memory, a complex number is its real part and then its imaginary part.
    return np.ascontiguousarray(inputs).view(part).reshape(-1, 2)[:, 0].astype(np.uint64)


def evaluate(
    behavior: Behavior, source: Format, target: Format, inputs: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A behavior's answers to an array of patterns, and for which inputs they are defined.

    A NaN among the answers stands for any NaN.
    """
    patterns = real_patterns(source, inputs)
    if patterns.size > MOST_KEPT:
        evaluation = Evaluation(real_format(source), target, patterns, select_arrays)
    else:
        evaluation = _evaluation(real_format(source), target, patterns.tobytes())
    codes, defined = evaluation.answer(behavior)
    return codes.astype(target.storage), defined


@lru_cache(2)
def _evaluation(source: Format, target: Format, patterns: bytes) -> Evaluation:
    """The evaluation of a few patterns; many behaviors are tried on the same ones."""
    return Evaluation(source, target, np.frombuffer(patterns, np.uint64), select_arrays)
