"""The tensors in which one call of each receiver is made again: fewer than of a cast.

Each call is a request of its own, and the other forms are asked in random tensors.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.judging.probe import Probe

LENGTHS = (1, 2, 3, 7, 8, 15, 16, 17, 32, 33, 64, 65, 127, 128, 129, 1025, 4099, 33_003)
SHAPES = ((), (1, 1), (2, 3), (2, 2, 2, 2, 3), (9, 129), (129, 17), (0,), (0, 3))
TWICE, MATRIX, TILED = 67, (5, 13), (32, 64)
"""A row and a matrix that are asked with several contents, one right after the other, and a matrix
of whole tiles."""


def call_probes(count: int) -> Iterator[Probe]:
    """Yield lengths, ranks, contents and layouts for a call of a pair with ``count`` inputs."""
    for place, length in enumerate(LENGTHS):
        yield Probe((length,), place * 7 % count)
    for place, shape in enumerate(SHAPES):
        yield Probe(shape, (count // 4 + place) % count)
    # Tensors of equal shape and layout but other elements reveal a cache that ignores them.
    for first in (0, count // 2):
        yield Probe((TWICE,), first)
    yield Probe((TWICE,), masked=True)
    yield Probe((TWICE,), offset=1)
    for step in (2, -1, 0):
        yield Probe((TWICE,), steps=(step,))
    yield Probe(MATRIX)
    yield Probe(MATRIX, count // 2)
    yield from (Probe(shape, order=(1, 0)) for shape in (MATRIX, TILED))
    for steps in ((2, 1), (0, 1), (1, 0), (-1, -1)):
        yield Probe(MATRIX, steps=steps)
    yield Probe((3, 5, 7), order=(2, 1, 0))
    yield Probe((2, 3, 4, 5), order=(0, 2, 3, 1))
