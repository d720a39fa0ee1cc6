"""Which inputs of a wide source a sweep visits, numbered in the order of their patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference.staircase import BOUNDS, Step, staircase
from specs.formats import Format
from specs.ruling import Ruling

Way = Literal["dense", "steps", "sample"]
SAMPLE = 1 << 30
END_PERIODS = 1 << 12
"""Periods visited at either end of a stretch that has more steps than a target of 32 bits."""


def ways(source: Format) -> tuple[Way, ...]:
    """How the inputs of a source are visited."""
    return ("dense",) if source.bits <= 32 else ("steps", "sample")


@dataclass(frozen=True)
class Dense:
    """Every pattern."""

    size: int

    def fill(self, buffer: Bits, at: int) -> None:
        """Put the inputs from number ``at`` on into a buffer."""
        np.add(np.arange(buffer.size, dtype=buffer.dtype), buffer.dtype.type(at), out=buffer)


@dataclass(frozen=True)
class Sample:
    """One random pattern out of each of ``size`` equal parts of the source."""

    source: Format
    seed: tuple[int, int]
    size: int = SAMPLE

    def fill(self, buffer: Bits, at: int) -> None:
        """Put the inputs from number ``at`` on into a buffer."""
        width = self.source.bits - (self.size - 1).bit_length()
        # A counter makes four words: a number has its own, wherever a chunk begins.
        counter, skipped = divmod(at, 4)
        chance = np.random.Philox(key=self.seed, counter=counter).random_raw(buffer.size + skipped)
        parts = np.arange(at, at + buffer.size, dtype=np.uint64) << np.uint64(width)
        buffer[:] = parts | chance[skipped:] >> np.uint64(64 - width)


@dataclass(frozen=True)
class Block:
    """Places inside a period, visited in so many periods from a pattern on."""

    start: int
    shift: int
    periods: int
    inside: NDArray[np.uint64]

    @property
    def size(self) -> int:
        return self.periods * self.inside.size


class Steps:
    """Where any of several staircases takes a step: the step's first two patterns and its last."""

    def __init__(self, rulings: Iterable[Ruling]) -> None:
        self._blocks = list(_blocks(rulings))
        self._starts = np.cumsum([0] + [block.size for block in self._blocks])
        self.size = int(self._starts[-1])

    def fill(self, buffer: Bits, at: int) -> None:
        """Put the inputs from number ``at`` on into a buffer; past the last it is repeated."""
        number = int(np.searchsorted(self._starts, at, "right")) - 1
        done = 0
        while done < buffer.size and number < len(self._blocks):
            block = self._blocks[number]
            begin = at + done - int(self._starts[number])
            count = min(block.size - begin, buffer.size - done)
            first, skipped = divmod(begin, block.inside.size)
            last = (begin + count - 1) // block.inside.size
            periods = np.arange(first, last + 1, dtype=np.uint64) << np.uint64(block.shift)
            places = (np.uint64(block.start) + periods)[:, np.newaxis] + block.inside
            buffer[done : done + count] = places.ravel()[skipped : skipped + count]
            done, number = done + count, number + 1
        buffer[done:] = buffer[done - 1]


def _blocks(rulings: Iterable[Ruling]) -> Iterator[Block]:
    stairs = [staircase(ruling) for ruling in rulings]
    target = stairs[0].ruling.target
    # No binade holds more steps than half the values of one sign; where there are more, codes wrap.
    most = (target.max_code + 1) // 2 if target.bits <= 32 else 0
    for number, stretch in enumerate(stairs[0].stretches):
        first, last, shift = (int(stretch[name]) for name in ("first", "last", "shift"))
        steps = [each.steps_of(number) for each in stairs]
        offsets = sorted(set().union(*(each["offset"].tolist() for each in steps)))
        if len(offsets) == 1 and not any(each["rise"].any() for each in steps):
            shift = (last - first).bit_length()
        if len(offsets) > 1 and all(
            _goes_round(each, stairs[0].ruling.target.mask) for each in steps
        ):
            # No step begins where a period does: visit from the first true beginning on.
            lead = offsets[1]
            yield Block(first, shift, 1, _points([0, lead]))
            first, offsets = first + lead, [offset - lead for offset in offsets[1:]]
        yield from _of_stretch(first, last, shift, offsets, most)


def _goes_round(steps: NDArray[np.void], mask: int) -> bool:
    """Whether a period's last step goes on as the first of the next."""
    start, end = (dict(zip(Step._fields, steps[at].tolist(), strict=True)) for at in (0, -1))
    risen = {bound: start[bound] + start[rise] & mask for bound, rise in BOUNDS}
    return start | risen | {"offset": end["offset"]} == end


def _of_stretch(
    first: int, last: int, shift: int, offsets: list[int], most: int
) -> Iterator[Block]:
    """Whole periods, all or those at both ends, and what is left of one at the end."""
    whole, rest = divmod(last - first + 1, 1 << shift)
    inside = _points([*offsets, 1 << shift])
    if whole <= max(most, 2 * END_PERIODS):
        pieces = [(0, whole)]
    else:
        pieces = [(0, END_PERIODS), (whole - END_PERIODS, END_PERIODS)]
    for begin, periods in pieces:
        if periods:
            yield Block(first + (begin << shift), shift, periods, inside)
    if rest:
        reached = [offset for offset in offsets if offset < rest]
        yield Block(first + (whole << shift), shift, 1, _points([*reached, rest]))


def _points(steps: list[int]) -> NDArray[np.uint64]:
    """The first two places and the last of each step; steps end where the next begin."""
    points = [{begin, min(begin + 1, end - 1), end - 1} for begin, end in pairwise(steps)]
    return np.array(sorted(set().union(*points)), np.uint64)


def visit(way: Way, source: Format, target: Format, rulings: list[Ruling], seed: int) -> Visit:
    """The inputs of a pair, visited in one way."""
    match way:
        case "dense":
            return Dense(1 << source.bits)
        case "steps":
            return Steps(rulings)
        case "sample":
            return Sample(source, (seed, crc32(f"{source.name}/{target.name}".encode())))


Visit = Dense | Sample | Steps
