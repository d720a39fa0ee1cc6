"""The tensors in which a cast is asked again: lengths, positions, and ways to lie in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from conformance.judging.shape_choice import LENGTHS, shape_of_pair
from oracles.memory_layouts import Layout, with_layout
from oracles.protocol import Bits

LARGE = (1 << 16) + 3
"""More than frameworks leave to one thread, and no multiple of what they cut it into."""
TURNED = 67
"""The length at which every input stands at every position: a prime, and longer than a vector."""
SCALARS = 8
PICKS_KEPT = 512


@dataclass(frozen=True)
class Probe:
    """A tensor of inputs that follow one another from the one at ``first``, each ``stride`` on.

    ``steps`` are the distances between neighbours along each dimension (none given: 1), counted in
    what the dimensions inside take; a step of 0 repeats the first. ``columns`` has the first
    dimension inside. The memory begins ``offset`` elements after a boundary.
    """

    shape: tuple[int, ...]
    first: int = 0
    stride: int = 1
    steps: tuple[int, ...] = ()
    offset: int = 0
    columns: bool = False

    @lru_cache(PICKS_KEPT)  # noqa: B019 (a probe is a handful of numbers, the same for all pairs)
    def picks(self, count: int) -> NDArray[np.intp]:
        """Which of so many inputs stands at each place."""
        flat = (self.first + self.stride * np.arange(prod(self.shape))) % count
        picked = flat.reshape(self.shape)
        for dimension, step in enumerate(self.steps):
            if step == 0:
                picked = np.broadcast_to(picked.take([0], dimension), self.shape)
        return picked

    def tensor(self, inputs: Bits) -> Bits:
        """The tensor, in fresh memory."""
        values = np.asarray(inputs[self.picks(inputs.size)], inputs.dtype)
        return with_layout(values, self.layout) if self.layout is not None else values

    @cached_property
    def layout(self) -> Layout | None:
        """How the tensor lies; nothing where it lies as any other."""
        turned = self.columns and len(self.shape) > 1
        if not (self.offset or turned or any(step != 1 for step in self.effective_steps)):
            return None
        strides, inside = [0] * len(self.shape), 1
        order = range(len(self.shape))
        for dimension in order if self.columns else reversed(order):
            strides[dimension] = self.effective_steps[dimension] * inside
            if self.effective_steps[dimension]:
                inside *= self.shape[dimension] * abs(self.effective_steps[dimension])
        return Layout(tuple(strides), self.offset)

    @cached_property
    def effective_steps(self) -> tuple[int, ...]:
        """The steps of the layout; a dimension of one element has the step 1."""
        steps = self.steps or (1,) * len(self.shape)
        return tuple(
            step if length > 1 else 1 for step, length in zip(steps, self.shape, strict=True)
        )

    @property
    def simplicity(self) -> tuple[object, ...]:
        """The key that sorts probes: a plain layout, few elements, small steps, a row."""
        steps = sum(abs(step - 1) for step in self.effective_steps)
        rank = abs(len(self.shape) - 1)
        return self.layout is not None, prod(self.shape), steps, self.offset, rank, self.shape

    def __str__(self) -> str:
        words = [f"length {self.shape[0]}" if len(self.shape) == 1 else f"shape {self.shape}"]
        if any(step != 1 for step in self.effective_steps):
            words.append(f"steps {self.effective_steps}")
        if self.columns and len(self.shape) > 1:
            words.append("columns first")
        if self.offset:
            words.append(f"{self.offset} elements past a boundary")
        return ", ".join(words)


def probes(count: int, pair: str, few_shapes: bool) -> Iterator[Probe]:
    """All probes of a pair that has so many inputs to ask; a few where each shape is costly."""
    if few_shapes:
        yield from _few(count, pair)
        return
    for length in LENGTHS:
        yield Probe((length,), first=length * 7 % count)
    yield Probe((LARGE,))
    for first in range(count):
        yield Probe((TURNED,), first)
    for first in _spread(count, SCALARS):
        yield Probe((), first)
    for offset in (1, 3, 7):
        yield Probe((TURNED,), offset=offset)
    for steps in ((2,), (3,), (-1,), (-2,), (0,)):
        yield Probe((TURNED,), steps=steps)
    yield Probe((5, 13), columns=True)
    yield Probe((5, 13), steps=(2, 1))
    yield Probe((3, 4, 9), steps=(-1, 1, 2), offset=5)


def _few(count: int, pair: str) -> Iterator[Probe]:
    """The one shape of a pair, with different inputs and in different layouts."""
    shape = shape_of_pair(pair)
    for first in (0, count // 2):
        yield Probe(shape, first)
    if 0 not in shape:
        yield Probe(shape, offset=1)
        yield Probe(shape, steps=(-2,) * len(shape))


def alone(place: int, lengths: range) -> list[Probe]:
    """One input in rows of nothing else."""
    return [Probe((length,), place, stride=0) for length in lengths]


def _spread(count: int, most: int) -> list[int]:
    """Up to so many places among so many, first and last included."""
    return sorted(set(np.linspace(0, count - 1, most).astype(int).tolist()))
