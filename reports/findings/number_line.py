"""The line of a source's bit patterns, from all zeros to all ones, and what lies where on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specs.formats import Format

STEPS = 10
"""A line is drawn in 2**10 steps."""


def place(form: Format, code: Any) -> Any:
    """The step of the line at which a pattern, or each of an array of patterns, begins."""
    spare = form.bits - STEPS
    return code >> spare if spare > 0 else code << -spare


def segments(form: Format, first: NDArray[Any], last: NDArray[Any]) -> tuple[int, ...]:
    """Where runs in rising order lie: start and end of each segment in turn, neighbours joined."""
    starts, ends = place(form, first), place(form, last) + (place(form, 1) or 1)
    fresh = np.append(True, (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]))
    found: list[int] = []
    for start, end in zip(starts[fresh].tolist(), ends[fresh].tolist(), strict=True):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += [start, end]
    return tuple(found)


def line(form: Format) -> dict[str, Any]:
    """What a page needs to draw the line of a dtype: how long it is, its marks and its NaNs."""
    nans = [
        (place(form, codes[0]), place(form, codes[-1]) + (place(form, 1) or 1))
        for codes in form.nan_codes
    ]
    return {"bits": form.bits, "marks": _marks(form), "nans": nans}


def _marks(form: Format) -> list[tuple[int, str]]:
    """Patterns worth naming: where they lie on the line, and their names."""
    if form.kind == "boolean":
        return [(place(form, 0), "false"), (place(form, 1), "true")]
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
    return sorted((place(form, code), name) for code, name in codes.items())
