"""Describes the tensors in which a cast is asked again: one, a plan of many, a pair's shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oracles.memory_layouts import Layout, TensorBatch, with_layout
from oracles.protocol import Bits
from specs.cases import Shape
from specs.formats import formats

SPARSE = 10
"""One element in this many of a tensor of ``mostly one`` may be another than the first input."""
PICKS_KEPT = 1024


Contents = Literal[
    "in order", "shuffled", "one", "two", "mostly one", "one but the last", "half one"
]


@dataclass(frozen=True)
class Probe:
    """Describes a tensor: which of a pair's inputs stands at each place, and the layout in memory.

    The inputs begin at index ``first``, and the first input follows the last, unless ``contents``
    says otherwise. Contents "one" are the input at ``first``, "two" that and the next at random; in
    other contents "one" is the input at index 0. ``steps`` are the distances between neighbors
    along each dimension (none given: 1), counted in what the dimensions inside take; a step of 0
    repeats the first. ``order`` names the dimensions from the outermost in memory to the innermost
    (none given: as they are numbered). Behind each run of the innermost dimension lie ``gap``
    unused elements. The memory begins ``offset`` elements after a boundary.
    """

    shape: tuple[int, ...]
    first: int = 0
    contents: Contents = "in order"
    shuffling: int = 0
    """The seed of shuffled inputs, and of those that are two."""
    steps: tuple[int, ...] = ()
    offset: int = 0
    order: tuple[int, ...] = ()
    gap: int = 0
    is_at_once: bool = False
    """Whether another thread asks other tensors meanwhile."""
    after: str = ""
    """The request that comes right before, or meanwhile from the other thread, such as a cast."""
    is_rewritten: bool = False
    """Whether it lies in memory that has just held another tensor of this shape and layout."""

    @lru_cache(PICKS_KEPT)  # noqa: B019 (a probe is a handful of numbers, the same for all pairs)
    def picks(self, count: int) -> NDArray[np.intp]:
        """Return, for each place of the tensor, the index of its input among ``count`` inputs."""
        row = self._row(prod(self.shape), count).astype(np.intp)
        return self.repeated(row.reshape(self.shape))

    def _row(self, size: int, count: int) -> NDArray[np.intp]:
        """Return the indices of the inputs of a tensor of ``size`` elements, in a row."""
        places = np.arange(size)
        row = (self.first + places) % count
        match self.contents:
            case "shuffled":
                # Each input comes once before any comes again.
                chance = np.random.default_rng(self.shuffling)
                deals = np.tile(np.arange(count), (-(-size // count), 1))
                return chance.permuted(deals, axis=1).reshape(-1)[:size]
            case "one":
                return np.full(size, self.first)
            case "two":
                chance = np.random.default_rng(self.shuffling)
                return (self.first + chance.integers(0, 2, size)) % count
            case "mostly one":
                is_other = places % SPARSE == SPARSE - 1
                return np.where(is_other, (self.first + places // SPARSE) % count, 0)
            case "one but the last":
                return np.where(places == size - 1, self.first, 0)
            case "half one":
                return np.where(places < size // 2, row, 0)
        return row

    def tensor(self, inputs: Bits) -> Bits:
        """Return the tensor of a pair's ``inputs``, in fresh memory and in the probe's layout."""
        return self.laid(np.asarray(inputs[self.picks(inputs.size)], inputs.dtype))

    def repeated(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of this shape with the first one repeated along each step of 0."""
        for dimension, step in enumerate(self.steps):
            if step == 0 and self.shape[dimension]:
                values = np.broadcast_to(values.take([0], dimension), self.shape)
        return values

    def laid(self, values: Bits) -> Bits:
        """Return values in the probe's layout: a copy, or the values themselves if it has none.

        They must be equal along each step of 0.
        """
        return with_layout(values, self.layout) if self.layout is not None else values

    @cached_property
    def layout(self) -> Layout | None:
        """The layout in memory; None for that of a fresh tensor."""
        is_apart = self.gap or any(step != 1 for step in self.effective_steps)
        if not (self.offset or self.is_turned or is_apart):
            return None
        strides, inside = [0] * len(self.shape), 1
        for place, dimension in enumerate(reversed(self.order or range(len(self.shape)))):
            strides[dimension] = self.effective_steps[dimension] * inside
            if self.effective_steps[dimension]:
                inside *= self.shape[dimension] * abs(self.effective_steps[dimension])
            inside += 0 if place else self.gap
        return Layout(tuple(strides), self.offset)

    @property
    def spread(self) -> int:
        """How many elements there are in memory from the first place to the last, both included."""
        if self.layout is None or not prod(self.shape):
            return prod(self.shape)
        ends = zip(self.shape, self.layout.strides, strict=True)
        return 1 + sum((length - 1) * abs(step) for length, step in ends)

    @cached_property
    def effective_steps(self) -> tuple[int, ...]:
        """The steps of the layout; a dimension of at most one element has the step 1."""
        steps = self.steps or (1,) * len(self.shape)
        return tuple(
            step if length > 1 else 1 for step, length in zip(steps, self.shape, strict=True)
        )

    @property
    def is_turned(self) -> bool:
        """Whether the order of the dimensions in memory is not row-major."""
        return self.order != tuple(sorted(self.order))

    @property
    def simplicity(self) -> tuple[object, ...]:
        """The key by which probes are sorted: one caller first, then memory that is not rewritten.

        Then come those ``after`` nothing, those without a layout, and those of few elements.
        """
        steps = sum(abs(step - 1) for step in self.effective_steps) + self.gap
        rank = abs(len(self.shape) - 1)
        is_laid = self.layout is not None
        size = prod(self.shape)
        filled = self.contents != "in order", self.contents, self.shuffling
        laid = is_laid, size, steps, self.is_turned, self.offset, rank, self.shape
        return self.is_at_once, self.is_rewritten, self.after, *laid, *filled

    def __str__(self) -> str:
        shape = f"length {self.shape[0]}" if len(self.shape) == 1 else f"shape {self.shape}"
        words = [shape, *self.layout_words, *FILLED.get(self.contents, ())]
        if self.is_rewritten:
            words.append("in the memory of the tensor before")
        if self.is_at_once and self.after:
            words.append(f"during {self.after} by another thread")
        elif self.is_at_once:
            words.append("while another thread asks")
        elif self.after:
            words.append(f"right after {self.after}")
        return ", ".join(words)

    @property
    def layout_words(self) -> Iterator[str]:
        """Words for how the tensor lies in memory, where that is unusual."""
        if any(step != 1 for step in self.effective_steps):
            yield f"steps {self.effective_steps}"
        if self.is_turned:
            yield f"dimensions in memory {self.order}"
        if self.gap and len(self.shape) > 1:
            yield f"{self.gap} elements between rows"
        if self.offset:
            yield f"{self.offset} elements past a boundary"


FILLED: Mapping[Contents, tuple[str, ...]] = {
    "shuffled": ("shuffled",),
    "two": ("of two inputs",),
    "mostly one": ("nine of ten elements the first input",),
    "one but the last": ("all but the last of one input",),
    "half one": ("the second half of one input",),
}
"""Words for what a tensor holds, where that is unusual."""


@dataclass(frozen=True)
class ProbePlan:
    """Probes, and in ``picks`` the indices of the inputs in them, one probe after another."""

    probes: tuple[Probe, ...]
    picks: NDArray[np.intp]

    @classmethod
    def of(cls, chosen: Sequence[Probe], count: int) -> ProbePlan:
        """Plan probes for a pair with ``count`` inputs."""
        parts = [probe.picks(count).reshape(-1) for probe in chosen]
        return cls(tuple(chosen), np.concatenate([*parts, np.zeros(0, np.intp)]).astype(np.intp))

    @cached_property
    def ends(self) -> NDArray[np.intp]:
        """For each probe, the place in ``picks`` after its last element."""
        return np.cumsum([prod(probe.shape) for probe in self.probes], dtype=np.intp)

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """The layouts of probes that differ from that of a fresh tensor, by the probe's index."""
        layouts = {place: probe.layout for place, probe in enumerate(self.probes)}
        return {place: layout for place, layout in layouts.items() if layout is not None}

    @cached_property
    def shapes(self) -> list[Shape]:
        """The shape of each probe."""
        return [probe.shape for probe in self.probes]

    def batch(self, inputs: Bits) -> TensorBatch:
        """Return the tensors of all probes, filled from a pair's ``inputs``."""
        is_rewritten = any(probe.is_rewritten for probe in self.probes)
        return TensorBatch(inputs[self.picks], self.shapes, self.layouts, is_rewritten)

    def part(self, first: int, last: int) -> ProbePlan:
        """Return the plan of the probes with indices ``first`` to before ``last``."""
        if (first, last) == (0, len(self.probes)):
            return self
        start = int(self.ends[first - 1]) if first else 0
        stop = int(self.ends[last - 1]) if last else 0
        return ProbePlan(self.probes[first:last], self.picks[start:stop])

    def split(self, answers: Bits) -> Iterator[tuple[Probe, Bits]]:
        """Yield the probes, at least one, each with its part of flat ``answers`` in its shape."""
        parts = np.split(answers, self.ends[:-1])
        for probe, part in zip(self.probes, parts, strict=True):
            yield probe, part.reshape(probe.shape)


SHAPES: tuple[Shape, ...] = (
    (), (1,), (0,), (5,), (2, 3), (3, 0), (2, 1, 2), (0, 2, 2), (1, 2, 1, 2), (1, 1, 2, 1, 2),
)  # fmt: skip
SHORT = range(1, 71)
LONG = (1023, 1024, 1025)
LENGTHS: tuple[int, ...] = (*SHORT, *LONG)


def shape_of_pair(pair: str) -> Shape:
    """Return the one shape of a pair, a row of ``LENGTHS`` or one of ``SHAPES``; each comes up.

    ``pair`` names it as ``source/target``.
    """
    number, is_row = divmod(_numbers()[pair], 2)
    return (LENGTHS[number % len(LENGTHS)],) if is_row else SHAPES[number % len(SHAPES)]


@cache
def _numbers() -> dict[str, int]:
    return {
        f"{source}/{target}": n for n, (source, target) in enumerate(product(formats(), repeat=2))
    }
