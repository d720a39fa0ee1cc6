"""Counts in the sampler's own draws how many meet a condition, for ``reports/drawn_tensors.py``.

``python -m lab.chances`` prints the table of shares as it stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from random import Random

from conformance.judging.probe import Probe
from conformance.judging.space import HEADS, drawn_probe

SAMPLE = 1 << 15
INPUTS = 40
VECTOR = 8

Condition = Callable[[Probe], bool]


def _rank(probe: Probe) -> int:
    return len(probe.shape)


def _size(probe: Probe) -> int:
    return prod(probe.shape)


def _innermost_step(probe: Probe) -> int:
    if not probe.shape:
        return 1
    return probe.effective_steps[(probe.order or range(_rank(probe)))[-1]]


def _blocks(probe: Probe) -> bool:
    return bool(probe.shape) and all(each and each % VECTOR == 0 for each in probe.shape)


CONDITIONS: Mapping[str, Condition] = {
    "the last dimension is that of an attention head, rank 3 or more": lambda each: (
        _rank(each) > 2 and each.shape[-1] in HEADS
    ),
    "a matrix of whole blocks of 8, by columns": lambda each: (
        _rank(each) == 2 and _blocks(each) and each.order == (1, 0)
    ),
    "rank 4, channels last, a multiple of 4 of them": lambda each: (
        each.order == (0, 2, 3, 1) and each.shape[1] % 4 == 0 < each.shape[1]
    ),
    "the innermost step is 2, more than 64 elements": lambda each: (
        _innermost_step(each) == 2 and _size(each) > 64
    ),
    "an inner dimension is flipped, rank 4": lambda each: (
        _rank(each) == 4 and _innermost_step(each) < 0
    ),
    "an odd beginning, and a rest behind the last vector": lambda each: (
        each.offset % 2 == 1 and _size(each) % VECTOR > 0
    ),
    "the outermost dimension is expanded": lambda each: (
        _rank(each) > 1 and each.effective_steps[0] == 0
    ),
    "more than 65,536 elements, and a rest": lambda each: (
        _size(each) > 1 << 16 and _size(each) % VECTOR > 0
    ),
    "a square matrix by columns": lambda each: (
        _rank(each) == 2 and each.shape[0] == each.shape[1] > 1 and each.order == (1, 0)
    ),
    "rank 8": lambda each: _rank(each) == 8,
    "no elements": lambda each: 0 in each.shape,
}
"""Conditions that a drawn tensor may meet, by the words for them."""


def shares() -> dict[str, float]:
    """Return the share of ``SAMPLE`` draws, from 0 to 1, that meets each condition."""
    chance = Random("chances")
    draws = [drawn_probe(chance, INPUTS) for _ in range(SAMPLE)]
    return {words: sum(map(holds, draws)) / SAMPLE for words, holds in CONDITIONS.items()}


if __name__ == "__main__":
    for words, share in shares().items():
        print(f'    "{words}": {share:.6f},')
