"""Sets of source patterns that repeat: counted, described and searched without listing them.

A rounding that changes concerns a part of every period of a staircase, which may be 2^60 patterns
in as many runs. So a set consists of grids, which a count or the simplest pattern needs not expand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.findings.cells import FailingInputs
from reports.findings.intervals import region_words
from reports.grading.divergences import simplest_between, simplicity
from reports.grading.failure_runs import Runs
from specs.formats import Format

MOST_RUNS = 1 << 12
"""The most runs that are joined and described one by one; of more, their extent is."""

EVERY_INPUT = "every input"
"""The words for all patterns of a source."""
PatternRun = tuple[int, int]
"""The first and the last of consecutive patterns."""


class Grid(NamedTuple):
    """The patterns ``(high << shift) + low``, for each ``high`` and each ``low`` of two ranges.

    The ends of both ranges are included. Every ``low`` is less than ``1 << shift``.
    """

    highs: PatternRun
    shift: int
    lows: PatternRun

    @property
    def total(self) -> int:
        """The number of patterns."""
        return _length(self.highs) * _length(self.lows)

    @property
    def hull(self) -> PatternRun:
        """The first and the last of the patterns."""
        first, last = (
            (high << self.shift) + low for high, low in zip(self.highs, self.lows, strict=True)
        )
        return first, last

    def simplest(self, source: Format) -> int:
        """Return the simplest of the patterns, which have one sign.

        Its two parts share no bit, so that each is the simplest of its range.
        """
        high, low = (simplest_between(source, *each) for each in (self.highs, self.lows))
        return (high << self.shift) + low

    @property
    def run_count(self) -> int:
        """The number of runs of consecutive patterns."""
        return 1 if _length(self.lows) == 1 << self.shift else _length(self.highs)

    def runs(self) -> Iterator[PatternRun]:
        """Yield the runs of consecutive patterns in rising order."""
        first, last = self.lows
        if self.run_count == 1:
            yield self.hull
            return
        for high in range(self.highs[0], self.highs[1] + 1):
            yield (high << self.shift) + first, (high << self.shift) + last


def _length(run: PatternRun) -> int:
    return run[1] - run[0] + 1


def run_grid(first: int, last: int) -> Grid:
    """Return the grid of all patterns from ``first`` to ``last``."""
    return Grid((first, last), 0, (0, 0))


def periodic_grids(
    first: int, last: int, shift: int, offsets: PatternRun, every: PatternRun = (0, 0)
) -> Iterator[Grid]:
    """Yield the grids of the patterns at some offsets of the periods of a stretch.

    Periods have ``1 << shift`` patterns and begin at ``first``; the last one ends with ``last``.
    Only the periods count whose number is ``every[0]`` modulo ``1 << every[1]``.
    """
    begin, end = offsets
    residue, power = every
    if (begin, end) == (0, (1 << shift) - 1) and not power:
        yield run_grid(first, last)
        return
    whole, rest = divmod(last - first + 1, 1 << shift)
    size = 1 << shift
    numbers = range(residue, whole, 1 << power)
    if numbers:
        # Grids begin at multiples of their size. Offsets beyond the next one are in the next row.
        row, start = divmod(first, size)
        for carry in (0, 1):
            low = max(start + begin - carry * size, 0)
            high = min(start + end - carry * size, size - 1)
            if low <= high:
                one, other = (row + carry + number for number in (numbers[0], numbers[-1]))
                middle = (one & ((1 << power) - 1)) << shift
                yield Grid(
                    (one >> power, other >> power),
                    shift + power,
                    (middle + low, middle + high),
                )
    if begin < rest and whole % (1 << power) == residue:
        start = first + whole * size
        yield run_grid(start + begin, start + min(end, rest - 1))


@dataclass(frozen=True)
class InputSet:
    """Patterns of a source, as grids that share no pattern and have patterns of one sign each."""

    source: Format
    grids: tuple[Grid, ...]

    @cached_property
    def count(self) -> int:
        """The number of patterns."""
        return sum(each.total for each in self.grids)

    @cached_property
    def simplest(self) -> int:
        """The simplest pattern, as for a counterexample."""
        return min(
            (each.simplest(self.source) for each in self.grids),
            key=lambda code: simplicity(self.source, code),
        )

    @cached_property
    def runs(self) -> tuple[PatternRun, ...] | None:
        """The maximal runs of consecutive patterns in rising order; None if they may be many."""
        if sum(each.run_count for each in self.grids) > MOST_RUNS:
            return None
        return tuple(_joined(run for each in self.grids for run in each.runs()))

    def words(self) -> str:
        """Describe the patterns: as intervals of values, or where they lie if these are many."""
        if self.count == 1 << self.source.bits:
            return EVERY_INPUT
        if self.runs is not None:
            return region(self.source, self.runs)
        return f"a part of {region(self.source, self._extent())}"

    def _extent(self) -> list[PatternRun]:
        """Return runs that cover the patterns: one for all finite values of a sign but zero."""
        source = self.source
        runs: dict[tuple[int, int, int], list[PatternRun]] = {}
        for first, last in (each.hull for each in self.grids):
            magnitude = first if source.is_integral else first & ~source.sign_bit
            is_finite = source.is_integral or magnitude <= source.max_code
            place = int(first & ~source.sign_bit != 0), int(not is_finite)
            runs.setdefault((first & source.sign_bit, *place), []).append((first, last))
        ends = ((min(each)[0], max(last for _, last in each)) for each in runs.values())
        return [*_joined(ends)]

    def patterns(self, most: int) -> NDArray[Any]:
        """Return the patterns in rising order; of more than ``most``, about as many of them.

        These are the simplest one, and the ends and evenly spaced ones of grids.
        """
        if self.count <= most:
            found = {
                code
                for each in self.grids
                for first, last in each.runs()
                for code in range(first, last + 1)
            }
        else:
            grids = _spread(self.grids, most // 8)
            room = max(2, most // (4 * len(grids)))
            found = {self.simplest}
            for each in grids:
                highs, lows = _sample(each.highs, room), _sample(each.lows, 4)
                found |= {(high << each.shift) + low for high in highs for low in lows}
        return np.array(sorted(found), self.source.storage)


def _joined(runs: Iterable[PatternRun]) -> Iterator[PatternRun]:
    """Yield the union of runs as maximal runs in rising order."""
    ordered = sorted(runs)
    if not ordered:
        return
    first, last = ordered[0]
    for start, end in ordered[1:]:
        if start > last + 1:
            yield first, last
            first = start
        last = max(last, end)
    yield first, last


def region(source: Format, runs: Sequence[PatternRun]) -> str:
    """Describe runs of consecutive patterns of a numeric source, in rising order."""
    first, last = (np.array(ends, np.uint64) for ends in zip(*runs, strict=True))
    nothing = np.zeros(first.size, np.uint64)
    columns = Runs(
        first.size,
        first,
        last,
        nothing,
        nothing,
        nothing.astype(np.int64),
        nothing.astype(bool),
    )
    count = last - first + np.uint64(1)
    words = region_words(source, FailingInputs(int(first.size), columns, count), None)
    return words or EVERY_INPUT


def _sample(run: PatternRun, most: int) -> list[int]:
    """Return at most ``most`` numbers of a run, at least two if it has them: ends and between."""
    first, last = run
    if last - first < most:
        return [*range(first, last + 1)]
    return [first + (last - first) * at // (most - 1) for at in range(most)]


def _spread(grids: Sequence[Grid], most: int) -> Sequence[Grid]:
    step = max(1, -(-len(grids) // most))
    return grids[::step]
