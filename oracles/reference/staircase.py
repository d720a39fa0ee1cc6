"""Staircases: what a ruling allows for every source pattern there is, in a few thousand steps.

A step says which answers are allowed from one offset of a stretch's period to the next, and by how
much they rise from period to period. The definition alone decides what a step allows. That a
stretch repeats itself is arithmetic; the kernels check it on every input.

Where a rule recommends a part of what it allows, a step holds that part: an answer outside it is
looked at once more, to find out whether it breaks the rule or only the recommendation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.reference import exact
from oracles.reference.allowed import Allowed
from oracles.reference.stretches import Stretch, stretches
from specs.outcomes import Anything, Exactly, Nan
from specs.ruling import Ruling


class Step(NamedTuple):
    """The answers allowed from an offset on: two ranges, which rise from period to period."""

    offset: int
    place: int
    low: int
    high: int
    rise: int
    other_low: int
    other_high: int
    other_rise: int


BOUNDS = (
    ("low", "rise"),
    ("high", "rise"),
    ("other_low", "other_rise"),
    ("other_high", "other_rise"),
)
"""What rises from period to period, and by which field."""
STEP = np.dtype(
    [(name, np.uint8 if name == "place" else np.uint64) for name in Step._fields], align=True
)
STRETCH = np.dtype(
    [
        ("first", np.uint64),
        ("last", np.uint64),
        ("shift", np.uint64),
        ("begin", np.int64),
        ("end", np.int64),
    ]
)


@dataclass(frozen=True)
class Staircase:
    """A ruling's steps: ``stretches`` in the order of their patterns, each a slice of ``steps``."""

    ruling: Ruling
    stretches: NDArray[np.void]
    steps: NDArray[np.void]

    def steps_of(self, number: int) -> NDArray[np.void]:
        """The steps of one stretch."""
        stretch = self.stretches[number]
        steps: NDArray[np.void] = self.steps[stretch["begin"] : stretch["end"]]
        return steps

    def column(self, name: str) -> NDArray[Any]:
        """One field of all steps, side by side in memory."""
        return np.ascontiguousarray(self.steps[name])


@lru_cache(maxsize=256)
def staircase(ruling: Ruling) -> Staircase:
    """The staircase of a ruling with numeric source and target, by the definition alone."""
    rows: list[tuple[int, ...]] = []
    steps: list[Step] = []
    for part in stretches(ruling.source, ruling.target):
        begin = len(steps)
        steps += _steps(ruling, part)
        rows.append((part.first, part.last, part.shift, begin, len(steps)))
    return Staircase(ruling, np.array(rows, STRETCH), np.array(steps, STEP))


def _steps(ruling: Ruling, part: Stretch) -> Iterator[Step]:
    """The steps of a stretch's first period; what goes on as before is no step."""
    known: Step | None = None
    for offset in part.offsets:
        here = exact.allow(ruling, part.first + offset)
        later = part.first + offset + (1 << part.shift)
        again = exact.allow(ruling, later) if later <= part.last else None
        step = _step(ruling, offset, here, again)
        if known is None or not _goes_on(known, step, again is not None):
            yield step
            known = step


def _step(ruling: Ruling, offset: int, here: Allowed, again: Allowed | None) -> Step:
    match here.branch.strictest:
        case Anything():
            return Step(offset, here.place, 0, ruling.target.mask, 0, 0, ruling.target.mask, 0)
        case Nan(sign=sign):
            one, *_, other = [*ruling.target.nans(sign)] * 2
            return Step(offset, here.place, one[0], one[-1], 0, other[0], other[-1], 0)
        case Exactly(code=code):
            return Step(offset, here.place, code, code, 0, code, code, 0)
    code, other_code = here.codes[0], here.codes[-1]
    rise, other_rise = 0, 0
    if again is not None:
        assert again.place == here.place, f"{ruling}: no period at {offset}"
        rise = (again.codes[0] - code) & ruling.target.mask
        other_rise = (again.codes[-1] - other_code) & ruling.target.mask
    return Step(offset, here.place, code, code, rise, other_code, other_code, other_rise)


def _goes_on(known: Step, step: Step, rises: bool) -> bool:
    """Whether a step is the one before; in a last, cut period the rise says nothing."""
    if rises:
        return known[1:] == step[1:]
    return known._replace(rise=0, other_rise=0)[1:] == step[1:]
