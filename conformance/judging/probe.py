"""One tensor in which a cast is asked again, a plan of many, and the shapes of a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from oracles.memory_layouts import Layout, TensorBatch, with_layout
from oracles.protocol import Bits
from specs.cases import Shape
from specs.formats import formats

SPARSE = 10
"""In a sparse row one element in this many is not the first input, which is zero for numbers."""
PICKS_KEPT = 1024


@dataclass(frozen=True)
class Probe:
    """Describes a tensor: which of a pair's inputs stands at each place, and the layout in memory.

    The inputs begin at index ``first`` and go on in steps of ``stride``, from the last back to
    index 0. ``steps`` are the distances between neighbors along each dimension (none given: 1),
    counted in what the dimensions inside take; a step of 0 repeats the first. ``order`` names the
    dimensions from the outermost in memory to the innermost (none given: as they are numbered). The
    memory begins ``offset`` elements after a boundary. With ``shuffling``, a seed, the inputs come
    in random order: each once before any comes again.
    """

    shape: tuple[int, ...]
    first: int = 0
    stride: int = 1
    steps: tuple[int, ...] = ()
    offset: int = 0
    order: tuple[int, ...] = ()
    shuffling: int = 0
    sparse: bool = False
    """Whether most elements are the first input."""
    masked: bool = False
    """Whether the elements are two inputs, as in a mask: that at ``first`` and the one after."""
    only_last: bool = False
    """Whether all elements but the last are the first input."""
    half_empty: bool = False
    """Whether the second half is the first input alone."""
    strides: tuple[int, ...] = ()
    """The distances in memory, if not by steps: where these overlap, elements are the same."""
    is_at_once: bool = False
    """Whether another thread asks other tensors meanwhile."""
    after: str = ""
    """The request that comes right before, or meanwhile from the other thread, such as a cast."""
    is_rewritten: bool = False
    """Whether it lies in memory that has just held another tensor of this shape and layout."""

    @lru_cache(PICKS_KEPT)  # noqa: B019 (a probe is a handful of numbers, the same for all pairs)
    def picks(self, count: int) -> NDArray[np.intp]:
        """Return, for each place of the tensor, the index of its input among ``count`` inputs."""
        size = prod(self.shape)
        if self.shuffling:
            chance = np.random.default_rng(self.shuffling)
            deals = [chance.permutation(count) for _ in range(-(-size // count))]
            flat = np.concatenate([*deals, np.zeros(0, np.intp)])[:size].astype(np.intp)
        elif self.strides:
            places = np.zeros(1, np.intp)
            for length, step in zip(self.shape, self.strides, strict=True):
                places = np.add.outer(places, step * np.arange(length)).reshape(-1)
            flat = (self.first + places) % count
        elif self.masked:
            flat = (self.first + np.random.default_rng(size).integers(0, 2, size)) % count
        else:
            flat = (self.first + self.stride * np.arange(size)) % count
        if self.sparse:
            places = np.arange(size)
            flat = np.where(places % SPARSE == SPARSE - 1, places // SPARSE % count, 0)
        if self.only_last:
            flat = np.where(np.arange(size) == size - 1, self.first, 0)
        if self.half_empty:
            flat[size // 2 :] = 0
        picked = flat.reshape(self.shape)
        for dimension, step in enumerate(self.steps):
            if step == 0:
                picked = np.broadcast_to(picked.take([0], dimension), self.shape)
        return picked

    def tensor(self, inputs: Bits) -> Bits:
        """Return the tensor of a pair's ``inputs``, in fresh memory and in the probe's layout."""
        values = np.asarray(inputs[self.picks(inputs.size)], inputs.dtype)
        return with_layout(values, self.layout) if self.layout is not None else values

    @cached_property
    def layout(self) -> Layout | None:
        """The layout in memory; None for that of a fresh tensor."""
        if self.strides:
            return Layout(self.strides, self.offset)
        if not (self.offset or self.is_turned or any(step != 1 for step in self.effective_steps)):
            return None
        strides, inside = [0] * len(self.shape), 1
        for dimension in reversed(self.order or range(len(self.shape))):
            strides[dimension] = self.effective_steps[dimension] * inside
            if self.effective_steps[dimension]:
                inside *= self.shape[dimension] * abs(self.effective_steps[dimension])
        return Layout(tuple(strides), self.offset)

    @cached_property
    def effective_steps(self) -> tuple[int, ...]:
        """The steps of the layout; a dimension of at most one element has the step 1."""
        steps = self.steps or (1,) * len(self.shape)
        return tuple(
            step if length > 1 else 1 for step, length in zip(steps, self.shape, strict=True)
        )

    @property
    def is_turned(self) -> bool:
        """Whether the dimensions lie in another order than they are numbered."""
        return self.order != tuple(sorted(self.order))

    @property
    def simplicity(self) -> tuple[object, ...]:
        """The key that sorts probes: one caller first, then plain layouts, then few elements."""
        steps = sum(abs(step - 1) for step in (*self.effective_steps, *self.strides))
        rank = abs(len(self.shape) - 1)
        is_laid = self.layout is not None
        size = prod(self.shape)
        laid = is_laid, size, steps, self.offset, rank, self.shape, self.shuffling, self.sparse
        return self.is_at_once, self.is_rewritten, self.after, *laid

    def __str__(self) -> str:
        words = [f"length {self.shape[0]}" if len(self.shape) == 1 else f"shape {self.shape}"]
        if any(step != 1 for step in self.effective_steps):
            words.append(f"steps {self.effective_steps}")
        if self.strides:
            words.append(f"distances in memory {self.strides}")
        if self.is_turned:
            words.append(f"dimensions in memory {self.order}")
        if self.offset:
            words.append(f"{self.offset} elements past a boundary")
        if self.sparse:
            words.append("nine of ten elements the first input")
        if self.masked:
            words.append("of two inputs")
        if self.only_last:
            words.append("all but the last of one input")
        if self.half_empty:
            words.append("the second half of one input")
        if self.is_rewritten:
            words.append("in the memory of the tensor before")
        match self.is_at_once, self.after:
            case True, "":
                words.append("while another thread asks")
            case True, other:
                words.append(f"during {other} by another thread")
            case False, other if other:
                words.append(f"right after {other}")
            case _:
                pass
        return ", ".join(words)


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
        """Yield each probe with its part of the flat ``answers``, in its shape."""
        parts = np.split(answers, self.ends[:-1])
        for probe, part in zip(self.probes, parts, strict=True):
            yield probe, part.reshape(probe.shape)


SHAPES: tuple[Shape, ...] = (
    (), (1,), (0,), (5,), (2, 3), (3, 0), (2, 1, 2), (0, 2, 2), (1, 2, 1, 2), (1, 1, 2, 1, 2),
)  # fmt: skip
SHORT = range(1, 71)
LONG = (1023, 1024, 1025)
LENGTHS: tuple[int, ...] = (*SHORT, *LONG)


def shapes_of(pair: str, few_shapes: bool) -> tuple[Shape, ...]:
    """Return the shapes in which to request a pair: ``SHAPES``, or if ``few_shapes`` its own one.

    ``pair`` names it as ``source/target``.
    """
    return (shape_of_pair(pair),) if few_shapes else SHAPES


def shape_of_pair(pair: str) -> Shape:
    """Return the one shape of a pair; over all pairs, every length and every shape comes up."""
    number, is_row = divmod(_numbers()[pair], 2)
    return (LENGTHS[number % len(LENGTHS)],) if is_row else SHAPES[number % len(SHAPES)]


@cache
def _numbers() -> dict[str, int]:
    """Number all pairs of dtypes, by their names such as ``float32/int8``."""
    return {
        f"{source}/{target}": n for n, (source, target) in enumerate(product(formats(), repeat=2))
    }
