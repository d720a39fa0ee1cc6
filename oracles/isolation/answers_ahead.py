"""The answers to requests that were sent ahead, each kept for the call that asks for the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oracles.memory_layouts import layout_of
from oracles.protocol import AheadRequest, Bits
from oracles.tensor_batch import TensorBatch
from specs.calls import Call
from specs.cases import Case

Tensors = Bits | TensorBatch | Mapping[str, Bits]
Key = tuple[str, Case, Call | None]
"""The method, the case, and the call if it is one."""


class AnswersAhead:
    """Holds answers, and exceptions in the place of answers, by request."""

    def __init__(self) -> None:
        self._held: defaultdict[Key, list[tuple[Tensors, Any]]] = defaultdict(list)

    def replace(self, requests: Sequence[AheadRequest], answers: Sequence[Sequence[Any]]) -> None:
        """Hold these answers only, one for each case; None has to be asked for again."""
        self._held.clear()
        for request, found in zip(requests, answers, strict=True):
            for case, answer in zip(request.cases, found, strict=True):
                if answer is not None:
                    held = self._held[request.method, case, request.call]
                    held.append((request.tensors, answer))

    def take(self, method: str, case: Case, tensors: Tensors, call: Call | None = None) -> Any:
        """Return the answer to a request, or raise its exception; None if there is neither.

        An answer is returned once: the same request, made again, is sent again.
        """
        held = self._held.get((method, case, call), [])
        for index, (asked, answer) in enumerate(held):
            if _is_same(asked, tensors):
                del held[index]
                if isinstance(answer, BaseException):
                    raise answer
                return answer
        return None


def _is_same(asked: Tensors, tensors: Tensors) -> bool:
    """Return whether two requests have the same tensors, lying the same in memory."""
    if isinstance(asked, Mapping):
        return (
            isinstance(tensors, Mapping)
            and asked.keys() == tensors.keys()
            and all(_is_same(each, tensors[name]) for name, each in asked.items())
        )
    if isinstance(asked, TensorBatch):
        return (
            isinstance(tensors, TensorBatch)
            and asked.shapes == tensors.shapes
            and asked.layouts == tensors.layouts
            and np.array_equal(asked.elements, tensors.elements)
        )
    return (
        isinstance(tensors, np.ndarray)
        and (asked.dtype, asked.shape) == (tensors.dtype, tensors.shape)
        and (asked is tensors or _lie_and_read_the_same(asked, tensors))
    )


def _lie_and_read_the_same(one: Bits, other: Bits) -> bool:
    return layout_of(one) == layout_of(other) and np.array_equal(one, other)
