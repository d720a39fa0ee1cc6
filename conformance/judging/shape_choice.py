"""The shapes in which a pair is asked: all of them, or one where each costs a compilation."""

from __future__ import annotations

from functools import cache
from itertools import product

from specs.formats import formats

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = (
    (), (1,), (0,), (5,), (2, 3), (3, 0), (2, 1, 2), (0, 2, 2), (1, 2, 1, 2), (1, 1, 2, 1, 2),
)  # fmt: skip
SHORT = range(1, 71)
LONG = (1023, 1024, 1025)
LENGTHS: tuple[int, ...] = (*SHORT, *LONG)


def shapes_of(pair: str, few_shapes: bool) -> tuple[Shape, ...]:
    """The shapes in which a pair of dtypes is asked."""
    return (shape_of_pair(pair),) if few_shapes else SHAPES


def shape_of_pair(pair: str) -> Shape:
    """The one shape of a pair; over all pairs, every length and every shape comes up."""
    number, is_row = divmod(_numbers()[pair], 2)
    return (LENGTHS[number % len(LENGTHS)],) if is_row else SHAPES[number % len(SHAPES)]


@cache
def _numbers() -> dict[str, int]:
    """All pairs of dtypes, numbered."""
    return {
        f"{source}/{target}": n for n, (source, target) in enumerate(product(formats(), repeat=2))
    }
