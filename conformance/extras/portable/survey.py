"""Finds ranges of values on which all backends give one answer that documents allow.

The survey sends no requests itself. It is a generator that yields rows of inputs and gets the
answers of each backend to them. Answers agree if their bits are equal; any NaN equals any NaN. A
document agrees where it allows the answers of all backends.

First a selection of inputs is asked. Then, between neighbors of which one agrees and the other does
not, the middle is asked, until every end of a range is next to its outside. Where answers agree by
chance now and then, a selection can suggest ranges that do not exist. So each wide range is asked
more inputs drawn from it, until none of them differs. With ``whole``, every input is asked
thereafter, in the order of values, and only the ranges are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.portable.value_ranges import (
    FINITE,
    RankRange,
    Ranks,
    ValueRange,
    cells_of,
    patterns_of,
    places_in,
    ranks_of,
)
from oracles.protocol import Bits, Mask
from reports.grading.allowed_answers import is_nan
from reports.grading.divergences import index_of_simplest, simplicity
from specs.formats import Format

CHUNK = 1 << 20
"""Inputs in a row when every input is asked."""
MOST_RANGES = 1 << 16
"""The most agreeing ranges of a cell that are kept, which are its widest; all are counted."""
PROBES = 1 << 10
"""Further inputs that are drawn at random from each wide range in one round."""
PROBES_OF_POWER = 16
"""Further inputs of a wide range whose distance from an end lies between two powers of two."""
MOST_PROBED = 1 << 9
"""The most ranges of a cell that are asked further inputs in one round, the widest."""
MOST_ROUNDS = 64
"""The most rounds of further inputs."""
NARROWEST = 1 << 10
"""A range that is this many times narrower than the widest of its cell is not wide."""

Allows = Callable[[Bits, Bits], Mask]
"""Takes inputs and the answers to them, and returns which answers a document allows."""
AnswerRows = Sequence[Bits]
"""The answers of each backend to the same inputs."""


@dataclass(frozen=True)
class Parties:
    """A pair of dtypes, and by document name a function that checks answers by the document."""

    source: Format
    target: Format
    documents: Mapping[str, Allows] = field(default_factory=dict)

    def agree(self, inputs: Bits, answers: AnswerRows) -> Mask:
        """Return a mask of the inputs on which all backends give one answer that documents allow.

        ``answers`` has one row for each backend. Any NaN equals any NaN, and all documents must
        allow the answer.
        """
        first, *others = answers
        same = np.ones(inputs.shape, bool)
        nan = is_nan(self.target, first) if self.target.nan_codes else None
        distinct = [first]
        for other in others:
            equal = other == first
            if equal.all():
                continue
            distinct.append(other)
            same &= equal if nan is None else equal | (nan & is_nan(self.target, other))
        for allows in self.documents.values():
            for each in distinct:
                same &= allows(inputs, each)
        return same


@dataclass(frozen=True)
class SurveyedInputs:
    """Inputs that were asked, in rising order of their ranks, and the answers of each backend.

    ``agrees`` is true where all backends agree and all documents allow their answer.
    """

    ranks: Ranks
    inputs: Bits
    answers: AnswerRows
    agrees: Mask

    def at(self, places: NDArray[np.intp]) -> SurveyedInputs:
        """Return the subset of these inputs at the given indices, with their answers."""
        answers = [each[places] for each in self.answers]
        return SurveyedInputs(self.ranks[places], self.inputs[places], answers, self.agrees[places])

    def joined(self, other: SurveyedInputs) -> SurveyedInputs:
        """Return these inputs and the further ones of ``other``, in rising order of ranks."""
        order = np.argsort(np.concatenate([self.ranks, other.ranks]), kind="stable")

        def both(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([one, two])[order]

        answers = [both(*each) for each in zip(self.answers, other.answers, strict=True)]
        return SurveyedInputs(
            both(self.ranks, other.ranks),
            both(self.inputs, other.inputs),
            answers,
            both(self.agrees, other.agrees),
        )


@dataclass(frozen=True)
class CellAgreement:
    """The agreement in one cell: how many inputs were asked and agree, and the agreeing ranges.

    ``ranges`` are in rising order, at most ``MOST_RANGES`` of them; ``count`` counts all.
    """

    cell: RankRange
    asked: int
    agreeing: int
    ranges: tuple[ValueRange, ...]
    count: int

    @property
    def is_safe(self) -> bool:
        """Whether at least one input of the cell was asked, and all that were asked agree."""
        return 0 < self.asked == self.agreeing


@dataclass(frozen=True)
class FirstDisagreement:
    """The simplest input in a required range on which not all agree, with each backend's answer."""

    code: int
    answers: tuple[int, ...]


@dataclass(frozen=True)
class Agreement:
    """The result of a survey: the agreement in each cell by name, and the inputs of the sample.

    ``is_whole`` tells whether every input was asked; those beyond the ``sample`` are not kept. For
    each required range, ``breaches`` has the simplest disagreement in it, or None if there is none,
    and ``checked`` the number of inputs asked in it.
    """

    source: Format
    target: Format
    is_whole: bool
    cells: Mapping[str, CellAgreement]
    sample: SurveyedInputs
    breaches: tuple[FirstDisagreement | None, ...] = ()
    checked: tuple[int, ...] = ()

    @property
    def asked(self) -> int:
        """The number of inputs that were asked, in all cells."""
        return sum(each.asked for each in self.cells.values())

    @property
    def agreeing(self) -> int:
        """The number of asked inputs that agree, in all cells."""
        return sum(each.agreeing for each in self.cells.values())


Survey = Generator[Bits, AnswerRows, Agreement]


def survey(
    parties: Parties,
    inputs: Bits,
    whole: bool = False,
    required: Sequence[range] = (),
    refines: bool = True,
) -> Survey:
    """Yield rows of inputs, get each backend's answers to them, and return where all agree.

    The survey asks ``inputs`` first, with the ends of cells and of required ranges, then further
    ones that refine the ends of agreeing ranges. If ``whole``, it finally asks every input. Without
    ``refines`` it asks only ``inputs``, which must be distinct, in one row by rising rank; this is
    for stored answers. ``required`` has ranges of ranks, none empty, in each of which the simplest
    disagreement is recorded.
    """
    source = parties.source
    ranks = ranks_of(source, inputs)
    if refines:
        ends = [[each.first, each.last] for each in cells_of(source).values()]
        ends += [[each[0], each[-1]] for each in required]
        ranks = np.unique(np.concatenate([ranks, np.array(ends, np.uint64).ravel()]))
    sample = yield from _asked(parties, np.sort(ranks))
    is_whole = sample.ranks.size == 1 << source.bits
    if refines and not is_whole:
        sample = yield from _refined(parties, sample)
    found = _Found(parties, required)
    if whole and not is_whole:
        for cell in cells_of(source).values():
            for start in range(cell.first, cell.last + 1, CHUNK):
                stop = min(start + CHUNK, cell.last + 1)
                row = np.arange(start, stop, dtype=np.uint64)
                found.add(cell, (yield from _asked(parties, row)))
        is_whole = True
    else:
        for cell in cells_of(source).values():
            found.add(cell, sample.at(places_in(source, cell, sample.ranks)))
    results = tuple(found.breaches), tuple(found.checked)
    return Agreement(source, parties.target, is_whole, found.cells(), sample, *results)


def _refined(
    parties: Parties, sample: SurveyedInputs
) -> Generator[Bits, AnswerRows, SurveyedInputs]:
    """Return a sample with more inputs: ends of ranges become exact, and ranges by chance unlikely.

    Inputs are drawn from wide ranges until all of one round agree, for at most ``MOST_ROUNDS``.
    """
    chance = np.random.default_rng(0)
    for _ in range(MOST_ROUNDS):
        while (middle := _between_unlike(parties.source, sample)).size:
            sample = sample.joined((yield from _asked(parties, middle)))
        drawn = np.setdiff1d(_drawn(parties.source, sample, chance), sample.ranks)
        more = yield from _asked(parties, drawn)
        sample = sample.joined(more)
        if not (~more.agrees).any():
            break
    return sample


def _drawn(source: Format, sample: SurveyedInputs, chance: np.random.Generator) -> Ranks:
    """Return random ranks from each cell's widest agreeing ranges, in rising order."""
    drawn = [np.empty(0, np.uint64)]
    for cell in cells_of(source).values():
        ranges = _Ranges(cell)
        own = sample.at(places_in(source, cell, sample.ranks))
        ranges.add(own.ranks, own.agrees)
        for each in wide_ranges(ranges.finished())[:MOST_PROBED]:
            row = chance.integers(each.first, each.last, PROBES, np.uint64, endpoint=True)
            far = _distances(each.span, chance)
            ends = [np.uint64(each.first) + far, np.uint64(each.last) - far]
            drawn += [row, *ends]
    return np.unique(np.concatenate(drawn))


def _distances(span: int, chance: np.random.Generator) -> Ranks:
    """Return random distances below ``span``: up to ``PROBES_OF_POWER`` between powers of two."""
    powers = np.uint64(1) << np.arange((span - 1).bit_length(), dtype=np.uint64)
    lowest = np.repeat(powers, PROBES_OF_POWER)
    rows = lowest + chance.integers(0, lowest, dtype=np.uint64)
    return np.asarray(rows[rows < span], np.uint64)


def wide_ranges(cell: CellAgreement) -> list[ValueRange]:
    """Return a cell's wide ranges, the widest first; ``NARROWEST`` says which are not wide."""
    widest = sorted(cell.ranges, key=lambda each: -each.span)
    return [each for each in widest if each.span * NARROWEST >= widest[0].span]


def _asked(parties: Parties, ranks: Ranks) -> Generator[Bits, AnswerRows, SurveyedInputs]:
    inputs = patterns_of(parties.source, ranks)
    answers = yield inputs
    return SurveyedInputs(ranks, inputs, answers, parties.agree(inputs, answers))


def _between_unlike(source: Format, sample: SurveyedInputs) -> Ranks:
    """Return the ranks midway between neighbors of the same cell of which exactly one agrees."""
    middles = []
    for cell in cells_of(source).values():
        places = places_in(source, cell, sample.ranks)
        ranks, agrees = sample.ranks[places], sample.agrees[places]
        gaps = np.diff(ranks)
        is_open = (agrees[1:] != agrees[:-1]) & (gaps > 1)
        if source.entry.nan == "negative-zero":
            # The rank between the smallest values is that of the NaN.
            is_open &= ~((gaps == 2) & (ranks[:-1] + np.uint64(1) == _nan_rank(source)))
        middles.append(ranks[:-1][is_open] + gaps[is_open] // np.uint64(2))
    return np.concatenate(middles)


def _nan_rank(source: Format) -> np.uint64:
    return np.uint64(ranks_of(source, np.array([source.sign_bit], np.uint64))[0])


class _Found:
    """Collects each cell's agreeing ranges, and the simplest disagreement by required range."""

    def __init__(self, parties: Parties, required: Sequence[range]) -> None:
        self._source = parties.source
        self._required = required
        self._ranges = {name: _Ranges(cell) for name, cell in cells_of(parties.source).items()}
        self.checked = [0 for _ in required]
        self.breaches: list[FirstDisagreement | None] = [None for _ in required]

    def add(self, cell: RankRange, sample: SurveyedInputs) -> None:
        """Add the next inputs of a cell, and record disagreements in required ranges.

        Those of NaNs are not recorded. The ranks must be above those added to this cell before.
        """
        if not sample.ranks.size:
            return
        self._ranges[cell.name].add(sample.ranks, sample.agrees)
        if cell.name.endswith("NaN"):
            return
        for at, each in enumerate(self._required):
            inside = (sample.ranks >= np.uint64(each[0])) & (sample.ranks <= np.uint64(each[-1]))
            self.checked[at] += int(np.count_nonzero(inside))
            wrong = inside & ~sample.agrees
            if wrong.any():
                place = index_of_simplest(self._source, sample.inputs, wrong)
                codes = tuple(int(answers[place]) for answers in sample.answers)
                self._breach(at, FirstDisagreement(int(sample.inputs[place]), codes))

    def _breach(self, at: int, found: FirstDisagreement) -> None:
        known = self.breaches[at]
        if known is not None:
            found = min(known, found, key=lambda each: simplicity(self._source, each.code))
        self.breaches[at] = found

    def cells(self) -> dict[str, CellAgreement]:
        """Return the agreement in each cell, by the cell's name."""
        return {name: each.finished() for name, each in self._ranges.items()}


class _Ranges:
    """Collects the agreeing ranges of one cell; keeps at most ``MOST_RANGES``, the widest.

    Each range is a column of four numbers: its first and last rank, then 1 plus the nearest rank
    that was asked below it, and 1 plus the nearest above it. The last two are 0 if there is none.
    """

    def __init__(self, cell: RankRange) -> None:
        self._cell = cell
        self._asked = self._agreeing = self._count = 0
        self._kept: list[NDArray[np.uint64]] = []
        self._open: list[int] | None = None
        """The range that the next inputs may extend.

        It has the first and last rank, and 1 plus the nearest asked rank below, or 0.
        """
        self._last: int | None = None
        """The last rank that was added."""

    def add(self, ranks: Ranks, agrees: Mask) -> None:
        """Add one or more inputs by rank, above all earlier ones, and whether each agrees."""
        self._asked += ranks.size
        self._agreeing += int(np.count_nonzero(agrees))
        turns = np.flatnonzero(agrees[1:] != agrees[:-1]) + 1
        begins = np.concatenate([[0], turns]).astype(np.intp)
        ends = np.concatenate([turns, [ranks.size]]).astype(np.intp) - 1
        here = agrees[begins]
        begins, ends = begins[here], ends[here]
        if self._open is not None and not (begins.size and begins[0] == 0):
            self._close(int(ranks[0]))
        if not begins.size:
            self._last = int(ranks[-1])
            return
        start, stop = ranks[begins], ranks[ends]
        below = np.where(begins > 0, ranks[begins - 1] + np.uint64(1), np.uint64(0))
        if begins[0] == 0 and self._open is not None:
            start[0], below[0] = self._open[0], self._open[2]
        elif begins[0] == 0 and self._last is not None:
            below[0] = self._last + 1
        reaches_end = bool(ends[-1] == ranks.size - 1)
        self._open = [int(start[-1]), int(stop[-1]), int(below[-1])] if reaches_end else None
        closed = slice(None, -1) if reaches_end else slice(None)
        above = ranks[ends[closed] + 1] + np.uint64(1)
        columns = np.stack([start[closed], stop[closed], below[closed], above])
        self._keep(columns)
        self._last = int(ranks[-1])

    def _close(self, above: int | None) -> None:
        assert self._open is not None
        first, last, below = self._open
        self._open = None
        columns = [[first], [last], [below], [0 if above is None else above + 1]]
        self._keep(np.array(columns, np.uint64))

    def _keep(self, columns: NDArray[np.uint64]) -> None:
        self._count += columns.shape[1]
        if columns.shape[1]:
            self._kept.append(columns)
        if sum(each.shape[1] for each in self._kept) > 2 * MOST_RANGES:
            self._kept = [self._widest()]

    def _widest(self) -> NDArray[np.uint64]:
        every = np.concatenate(self._kept, axis=1)
        if every.shape[1] > MOST_RANGES:
            widths = every[1] - every[0]
            chosen = np.argsort(widths, kind="stable")[-MOST_RANGES:]
            every = every[:, np.sort(chosen)]
        return every

    def finished(self) -> CellAgreement:
        """Return the agreement in the cell from all inputs that were added."""
        if self._open is not None:
            self._close(None)
        kept = self._widest().T.tolist() if self._kept else []
        ranges = tuple(
            ValueRange(first, last, below - 1 if below else None, above - 1 if above else None)
            for first, last, below, above in kept
        )
        return CellAgreement(self._cell, self._asked, self._agreeing, ranges, self._count)


def home_range(found: Agreement) -> ValueRange | None:
    """Return the agreeing range that contains zero and one; None if no range contains both.

    For a source without a zero, return the range that contains one.
    """
    source = found.source
    codes = [source.one_code, *([0] if source.has_zero else [])]
    ranks = [int(each) for each in ranks_of(source, np.array(codes, np.uint64))]
    ranges = found.cells[FINITE].ranges
    return next((each for each in ranges if all(map(each.holds, ranks))), None)
