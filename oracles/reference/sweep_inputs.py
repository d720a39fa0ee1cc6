"""The sequences of inputs that a sweep casts.

The inputs of a sequence are numbered, so that a task can cast any range of them.
"""

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
from specs.branches import Ruling
from specs.formats import Format

SequenceKind = Literal["dense", "steps", "sample"]
SAMPLE = 1 << 30
"""How many inputs a random sample has."""
END_PERIODS = 1 << 12
"""How many periods are taken at either end of a stretch that has too many to take all."""


def sequence_kinds(source: Format) -> tuple[SequenceKind, ...]:
    """Return the kinds of sequences that together sweep a source."""
    return ("dense",) if source.bits <= 32 else ("steps", "sample")


@dataclass(frozen=True)
class Dense:
    """Every pattern of a source that has ``size`` patterns."""

    size: int

    def fill(self, buffer: Bits, at: int) -> None:
        """Fill a buffer with the inputs from number ``at`` on."""
        np.add(np.arange(buffer.size, dtype=buffer.dtype), buffer.dtype.type(at), out=buffer)


@dataclass(frozen=True)
class Sample:
    """One random pattern of each of ``size`` equal ranges of patterns; ``size`` is a power of 2."""

    source: Format
    seed: tuple[int, int]
    size: int = SAMPLE

    def fill(self, buffer: Bits, at: int) -> None:
        """Fill a buffer with the inputs from number ``at`` on."""
        width = self.source.bits - (self.size - 1).bit_length()
        # Philox makes four words per counter, so that input n is the same in whatever chunk it is.
        counter, skipped = divmod(at, 4)
        random = np.random.Philox(key=self.seed, counter=counter).random_raw(buffer.size + skipped)
        starts = np.arange(at, at + buffer.size, dtype=np.uint64) << np.uint64(width)
        buffer[:] = starts | random[skipped:] >> np.uint64(64 - width)


@dataclass(frozen=True)
class Block:
    """The patterns at the same ``offsets`` in each of ``periods`` periods, from ``start`` on.

    A period has ``2**shift`` patterns.
    """

    start: int
    shift: int
    periods: int
    offsets: NDArray[np.uint64]

    @property
    def size(self) -> int:
        """How many inputs the block has."""
        return self.periods * self.offsets.size


class StepPatterns:
    """The first two patterns and the last of every step in the staircases of some rulings.

    All rulings must have the same pair. Of a stretch with very many periods, only the steps of the
    periods at both ends are taken.
    """

    def __init__(self, rulings: Iterable[Ruling]) -> None:
        self._blocks = list(_blocks(rulings))
        self._starts = np.cumsum([0] + [block.size for block in self._blocks])
        self.size = int(self._starts[-1])

    def fill(self, buffer: Bits, at: int) -> None:
        """Fill a buffer from input ``at`` (below ``size``) on; repeat the last one past the end."""
        number = int(np.searchsorted(self._starts, at, "right")) - 1
        done = 0
        while done < buffer.size and number < len(self._blocks):
            block = self._blocks[number]
            begin = at + done - int(self._starts[number])
            count = min(block.size - begin, buffer.size - done)
            first, skipped = divmod(begin, block.offsets.size)
            last = (begin + count - 1) // block.offsets.size
            periods = np.arange(first, last + 1, dtype=np.uint64) << np.uint64(block.shift)
            patterns = (np.uint64(block.start) + periods)[:, np.newaxis] + block.offsets
            buffer[done : done + count] = patterns.ravel()[skipped : skipped + count]
            done, number = done + count, number + 1
        buffer[done:] = buffer[done - 1]


def _blocks(rulings: Iterable[Ruling]) -> Iterator[Block]:
    stairs = [staircase(ruling) for ruling in rulings]
    target = stairs[0].ruling.target
    # A binade has at most half as many steps as the target has values of one sign; a stretch with
    # more of them wraps around.
    most = (target.max_code + 1) // 2 if target.bits <= 32 else 0
    for number, stretch in enumerate(stairs[0].stretches):
        first, last, shift = (int(stretch[name]) for name in ("first", "last", "shift"))
        steps = [each.steps_of(number) for each in stairs]
        offsets = sorted(set().union(*(each["offset"].tolist() for each in steps)))
        if len(offsets) == 1 and not any(each["rise"].any() for each in steps):
            shift = (last - first).bit_length()
        if len(offsets) > 1 and all(
            _last_step_continues(each, stairs[0].ruling.target.mask) for each in steps
        ):
            # No step begins where a period does, so let periods begin where the first step does.
            lead = offsets[1]
            yield Block(first, shift, 1, _points([0, lead]))
            first, offsets = first + lead, [offset - lead for offset in offsets[1:]]
        yield from _blocks_of_stretch(first, last, shift, offsets, most)


def _last_step_continues(steps: NDArray[np.void], mask: int) -> bool:
    """Return whether a period's last step and the first step of the next period are one."""
    start, end = (dict(zip(Step._fields, steps[at].tolist(), strict=True)) for at in (0, -1))
    risen = {bound: start[bound] + start[rise] & mask for bound, rise in BOUNDS}
    return start | risen | {"offset": end["offset"]} == end


def _blocks_of_stretch(
    first: int, last: int, shift: int, offsets: list[int], most: int
) -> Iterator[Block]:
    """Yield a stretch's whole periods (all, or those at both ends), and the last one if cut short.

    All are taken if there are at most ``most``, or so few that both ends meet.
    """
    whole, remainder = divmod(last - first + 1, 1 << shift)
    points = _points([*offsets, 1 << shift])
    if whole <= max(most, 2 * END_PERIODS):
        ranges = [(0, whole)]
    else:
        ranges = [(0, END_PERIODS), (whole - END_PERIODS, END_PERIODS)]
    for begin, periods in ranges:
        if periods:
            yield Block(first + (begin << shift), shift, periods, points)
    if remainder:
        reached = [offset for offset in offsets if offset < remainder]
        yield Block(first + (whole << shift), shift, 1, _points([*reached, remainder]))


def _points(steps: list[int]) -> NDArray[np.uint64]:
    """Return the first two offsets and the last of each step, sorted.

    Each step ends where the next begins; the last number in ``steps`` is only an end.
    """
    points = [{begin, min(begin + 1, end - 1), end - 1} for begin, end in pairwise(steps)]
    return np.array(sorted(set().union(*points)), np.uint64)


def input_sequence(
    kind: SequenceKind, source: Format, target: Format, rulings: list[Ruling], seed: int
) -> InputSequence:
    """Return the sequence of a kind for the casts of a pair.

    ``steps`` takes the steps of all ``rulings``; ``sample`` depends on ``seed`` and the pair.
    """
    match kind:
        case "dense":
            return Dense(1 << source.bits)
        case "steps":
            return StepPatterns(rulings)
        case "sample":
            return Sample(source, (seed, crc32(f"{source.name}/{target.name}".encode())))


InputSequence = Dense | Sample | StepPatterns
