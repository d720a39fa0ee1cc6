"""Many tensors of one dtype in one request: their elements one after another, and their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.memory_layouts import Layout, layout_of, with_layout


@dataclass(frozen=True)
class TensorBatch:
    """Holds the elements of many tensors in one row, and ``layouts`` that are not a fresh array's.

    If it ``is_rewritten``, a process holds each tensor in the memory of the one before, as far as
    that has the same shape and layout: as a program that fills one buffer again and again.
    """

    elements: NDArray[Any]
    shapes: Sequence[tuple[int, ...]]
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    is_rewritten: bool = False

    @classmethod
    def of(cls, tensors: Sequence[NDArray[Any]]) -> TensorBatch:
        """Join tensors of one dtype; raises ValueError if there are none."""
        layouts = {index: layout_of(tensor) for index, tensor in enumerate(tensors)}
        return cls(
            np.concatenate([tensor.reshape(-1) for tensor in tensors]),
            [tensor.shape for tensor in tensors],
            {index: layout for index, layout in layouts.items() if layout is not None},
        )

    def after(self, count: int) -> TensorBatch:
        """Return the batch of all tensors but the first ``count``."""
        first = sum(map(prod, self.shapes[:count]))
        layouts = {at - count: each for at, each in self.layouts.items() if at >= count}
        return TensorBatch(self.elements[first:], self.shapes[count:], layouts, self.is_rewritten)

    def tensors(self) -> Iterator[NDArray[Any]]:
        """Yield each tensor in fresh memory, in its layout."""
        first = 0
        for index, shape in enumerate(self.shapes):
            tensor = self.elements[first : (first := first + prod(shape))].reshape(shape)
            layout = self.layouts.get(index)
            yield tensor.copy() if layout is None else with_layout(tensor, layout)

    def rewritten(self) -> Iterator[NDArray[Any]]:
        """Yield each tensor in the memory of the one before, which it overwrites, if it fits."""
        last: tuple[object, NDArray[Any]] | None = None
        for index, tensor in enumerate(self.tensors()):
            lies = tensor.shape, self.layouts.get(index)
            if last is None or last[0] != lies:
                last = lies, tensor
            last[1][...] = tensor
            yield last[1]


@dataclass(frozen=True)
class BatchAnswers:
    """Holds the answers to the first ``count`` tensors of a batch, one after another.

    ``error`` is what the next tensor raised, if it did. It is that tensor's reply, because a second
    attempt might succeed.
    """

    elements: NDArray[Any]
    count: int
    error: BaseException | None = None

    def split(self, batch: TensorBatch) -> Iterator[NDArray[Any]]:
        """Yield the answer to each tensor that was answered."""
        first = 0
        for shape in batch.shapes[: self.count]:
            yield self.elements[first : (first := first + prod(shape))].reshape(shape)
