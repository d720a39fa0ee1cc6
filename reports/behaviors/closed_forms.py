"""Which behaviours can be asked of a pair, and what they answer to arrays of patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.machine_words import select_arrays
from reports.behaviors.steps import Evaluation
from specs.behaviors import Answer, Behaviour, Constant, Nan, behaviours
from specs.formats import Format, format_named

HAS: dict[Constant, Any] = {
    "zero": lambda target: target.entry.zero != "none",
    "minus-zero": lambda target: target.entry.zero == "signed",
    "infinity": lambda target: target.entry.infinity,
    "minus-infinity": lambda target: target.entry.infinity,
    "nan": lambda target: bool(target.nan_codes),
}
"""Constants that not every format has."""


def speaks_of(behaviour: Behaviour, source: Format, target: Format) -> bool:
    """Whether a form says anything of a pair; of a complex source it is asked of the real part."""
    source = real_format(source)
    if source.kind not in behaviour.from_ or target.kind not in behaviour.to:
        return False
    return all(_can_be_taken(step, source, target) for step in behaviour.steps)


def _can_be_taken(step: Any, source: Format, target: Format) -> bool:
    match step:
        case Answer(answer=word) | Nan(nan=word):
            return word not in HAS or bool(HAS[word](target))
        case "low-bits":
            return target.is_integral
        case "to-infinity":
            return target.kind == "float" and (target.entry.infinity or bool(target.nan_codes))
        case "to-nan":
            return bool(target.nan_codes)
        case "drop-sign":
            return source.is_signed
    return True


def are_numbers(source: Format, target: Format) -> bool:
    """Whether forms can speak of a pair at all: complex targets and texts have none."""
    return real_format(source).is_numeric and target.is_numeric


def forms_between(source: Format, target: Format) -> tuple[Behaviour, ...]:
    """The shipped forms that speak of a pair, the simplest first."""
    return tuple(form for form in behaviours().values() if speaks_of(form, source, target))


def real_format(source: Format) -> Format:
    """The format of what a form is asked of."""
    return format_named(source.entry.part) if source.kind == "complex" else source


def real_patterns(source: Format, inputs: NDArray[Any]) -> NDArray[np.uint64]:
    """The patterns a form is asked of; of complex numbers, the real parts."""
    if source.kind != "complex":
        return inputs.astype(np.uint64)
    part = real_format(source).storage
    # A complex number is its real part, then its imaginary one.
    return np.ascontiguousarray(inputs).view(part).reshape(-1, 2)[:, 0].astype(np.uint64)


def evaluate(
    behaviour: Behaviour, source: Format, target: Format, inputs: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A form's answers to an array of patterns, and to which inputs it has one.

    A NaN among the answers stands for any.
    """
    patterns = real_patterns(source, inputs)
    code, told = Evaluation(real_format(source), target, patterns, select_arrays).answer(behaviour)
    return code.astype(target.storage), told
