"""The line of a dtype's bit patterns, from all zeros to all ones, on which pages draw runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

STEP_BITS = 10
"""A line has 2**10 steps, whatever the width of the dtype."""


def step_of(form: Format, code: Any) -> Any:
    """Return the step at which a pattern, or each of an array of patterns, begins."""
    spare = form.bits - STEP_BITS
    return code >> spare if spare > 0 else code << -spare


def segments(form: Format, first: NDArray[Any], last: NDArray[Any]) -> tuple[int, ...]:
    """Return the steps that runs in rising order cover, as starts and ends in turn.

    Runs that touch or overlap on the line share a segment.
    """
    starts, ends = step_of(form, first), step_of(form, last) + _steps_per_pattern(form)
    is_new = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))
    found: list[int] = []
    for start, end in zip(starts[is_new].tolist(), ends[is_new].tolist(), strict=True):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += [start, end]
    return tuple(found)


def number_line(form: Format) -> dict[str, Any]:
    """Return what a page needs to draw the line of a dtype: its width, marks and NaNs."""
    nans = [
        (step_of(form, codes[0]), step_of(form, codes[-1]) + _steps_per_pattern(form))
        for codes in form.nan_codes
    ]
    return {"bits": form.bits, "marks": _marks(form), "nans": nans}


def _steps_per_pattern(form: Format) -> int:
    """The steps that one pattern covers: more than one where a dtype has few patterns."""
    return int(step_of(form, 1)) or 1


def _marks(form: Format) -> list[tuple[int, str]]:
    """The steps and names of notable patterns: zero, one, infinity, the largest and smallest."""
    if form.kind == "boolean":
        return [(step_of(form, 0), "false"), (step_of(form, 1), "true")]
    if not form.is_numeric:
        return []
    codes = {0: "smallest" if form.entry.zero == "none" else "0"}
    if form.kind == "float":
        codes[form.one_code] = "1"
    codes[form.infinity_code if form.entry.infinity else form.max_code] = (
        "∞" if form.entry.infinity else "max"
    )
    if form.kind == "float" and form.is_signed:
        codes |= {code | form.sign_bit: f"−{name}" for code, name in codes.items()}
        if form.entry.nan == "negative-zero":
            codes[form.sign_bit] = "NaN"
    elif form.is_signed:
        codes |= {form.sign_bit: "lowest", form.mask: "−1"}
    return sorted((step_of(form, code), name) for code, name in codes.items())
