"""The elements of a quantization once more, in tensors that kernels treat otherwise.

A row of a few hundred elements is quantized by one thread, and by the loop for contiguous memory.
Long rows are shared among threads, and a tensor with steps or with its channels last has loops of
its own. Each element must give what it gives in the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from conformance.kinds.probe import Probe
from conformance.kinds.quantization_inputs import Given
from oracles.protocol import Bits
from specs.cases import Case
from specs.quantization_cases import FORM

LONG = 16_411
"""Elements of the long row: more than one thread's share, and a few beyond a whole block."""
CHANNELS = 5
"""The second dimension of a batch of images whose channels lie innermost in memory."""


def further_requests(case: Case, given: Sequence[Given]) -> tuple[Given, ...]:
    """The elements of the last request in other tensors; scales along these have steps, too."""
    return _further(case.mode[FORM], given[-1])


@lru_cache(64)
def _further(form: str, given: Given) -> tuple[Given, ...]:
    """One object for all cases that share a request, so that what is expected is remembered."""
    x = given.tensors["x"]
    match form:
        case "tensor":
            images = (2, CHANNELS, 3, -(-x.size // (6 * CHANNELS)))
            probes = [
                Probe((LONG,)),
                Probe(x.shape, steps=(2,)),
                Probe(images, order=(0, 2, 3, 1)),
            ]
        case "axis":
            probes = [Probe(x.shape, order=(0, 2, 1)), Probe(x.shape, steps=(1, 1, 2))]
        case _:
            probes = [Probe(x.shape, order=(1, 0)), Probe(x.shape, steps=(1, 2))]
    return tuple(_in_tensor(given, each) for each in probes)


def _in_tensor(given: Given, probe: Probe) -> Given:
    """The elements of a request, repeated or cut to the size of a tensor, with their scales."""

    def spread(values: Bits | None) -> Bits | None:
        flat = None if values is None else values.reshape(-1)
        return None if flat is None else flat[probe.picks(flat.size)]

    tensors = {"x": probe.tensor(given.tensors["x"].reshape(-1))}
    for name in given.tensors.keys() - tensors.keys():
        values = given.tensors[name]
        if values.size > 1:
            values = Probe(values.shape, steps=(2,) * values.ndim).tensor(values.reshape(-1))
        elif values.ndim:
            # A scale that has the rank of its tensor.
            values = values.reshape((1,) * len(probe.shape))
        tensors[name] = values
    scales = spread(given.scales)
    assert scales is not None
    return replace(
        given, tensors=tensors, scales=scales, zeros=spread(given.zeros), where=str(probe)
    )
