"""Layouts in which a backend may spread scales over a tensor by mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from conformance.kinds.quantization_inputs import Given
from oracles.protocol import Bits
from reports.grading.graded_quantization import Elements
from specs.cases import Case
from specs.quantization_cases import AXIS, BLOCK_SIZE, FORM


def layouts(case: Case, given: Given) -> dict[str, Elements]:
    """The elements in a row with their scales and zero points, by the names of layouts.

    The right layout has the name "".
    """
    found = {"": _elements(given, given.scales, given.zeros)}
    for name, spread in _others(case, given):
        scales = spread(given.tensors["scale"])
        zeros = spread(given.tensors["zero"]) if "zero" in given.tensors else None
        found[name] = _elements(given, scales, zeros)
    return found


def _elements(given: Given, scales: Bits, zeros: Bits | None) -> Elements:
    zero = None if zeros is None else zeros.reshape(-1)
    return Elements(given.tensors["x"].reshape(-1), scales.reshape(-1), zero)


def _others(case: Case, given: Given) -> Iterator[tuple[str, Callable[[Bits], Bits]]]:
    shape, count = given.tensors["x"].shape, given.tensors["scale"].size
    if case.mode[FORM] == "axis":
        yield "takes-one-scale", lambda values: np.broadcast_to(values.reshape(-1)[0], shape)
        first = (count, *[1] * (len(shape) - 1))
        yield "takes-another-axis", lambda values: np.broadcast_to(values.reshape(first), shape)
    if case.mode[FORM] == "block":
        columns = given.tensors["scale"].shape[AXIS]
        length = shape[AXIS]
        size = -(-length // columns)
        place = np.arange(length)
        if size != BLOCK_SIZE:
            yield "takes-blocks-of-another-size", lambda values: values[:, place // size]
        yield "repeats-scales-in-turn", lambda values: values[:, place % columns]
