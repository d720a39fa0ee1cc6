"""Fewer inputs for comparisons with the definition, which takes them one by one."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def thinned(inputs: NDArray[Any], most: int) -> NDArray[Any]:
    """Return about ``most`` of some rising inputs, evenly spread.

    The step is no multiple of 3, because each binade has as many special patterns.
    """
    step = max(1, inputs.size // most)
    return inputs[:: step + (step % 3 == 0)]
