"""A reader of vector files that shares no code with the product, and what values they mean."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    lo: int
    hi: int
    first: int
    last: int
    mask: int
    step: int
    other: int | None

    def allows(self, given: int, answer: int) -> bool:
        rest = (answer - (given - self.lo) * self.step) & self.mask
        return self.first <= rest <= self.last or answer == self.other


class Read(NamedTuple):
    source: str
    source_bits: int
    target: str
    target_bits: int
    covers: str
    lines: list[Line]

    def line_of(self, given: int) -> Line:
        (found,) = [each for each in self.lines if each.lo <= given <= each.hi]
        return found


def read(path: Path) -> Read:
    first, *rest = path.read_text().splitlines()
    word, number, source, source_bits, target, target_bits, covers, count = first.split()
    assert (word, number) == ("vectors", "1")
    every = (1 << int(target_bits)) - 1
    lines = [*_lines(rest, every)]
    assert len(lines) == int(count)
    assert all(each.lo <= each.hi for each in lines)
    for before, after in pairwise(lines):
        assert after.lo == before.hi + 1 if covers == "all" else after.lo > before.hi
    if covers == "all":
        assert (lines[0].lo, lines[-1].hi) == (0, (1 << int(source_bits)) - 1)
    return Read(source, int(source_bits), target, int(target_bits), covers, lines)


def _lines(rest: list[str], every: int) -> Iterator[Line]:
    for line in rest:
        if not line.startswith("#"):
            lo, hi, code, *more = (int(word, 16) for word in line.split())
            last, mask, step, other = [*more, *[code, every, 0, None][len(more) :]]
            yield Line(lo, hi, code, last or 0, mask or 0, step or 0, other)


def half(value: float) -> int:
    """The float16 pattern that Python's own struct gives."""
    return int.from_bytes(struct.pack("<e", value), "little")


def single(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def double(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")
