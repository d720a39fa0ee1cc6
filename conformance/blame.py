"""Finds the inputs on which an oracle raises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.divergences import datum_of, simplicity
from oracles.protocol import Bits
from reports.drawing import pattern
from specs.formats import Format

Ask = Callable[[Bits], Bits]


def blame(source: Format, inputs: Bits, ask: Ask) -> str:
    """Say which input makes an oracle raise, and of texts how many do."""
    if source.kind == "text":
        guilty = [index for index in range(inputs.size) if _raises(inputs[index : index + 1], ask)]
        if not guilty:
            return "on no text alone, only on all of them together"
        worst = min(guilty, key=lambda index: simplicity(source, inputs[index]))
        return f"on {len(guilty)} of {inputs.size} texts, the smallest {inputs[worst]!r}"
    part = inputs
    while part.size > 1:
        half = part.size // 2
        if _raises(part[:half], ask):
            part = part[:half]
        elif _raises(part[half:], ask):
            part = part[half:]
        else:
            break
    first, last = (pattern(source, datum_of(part[place])) for place in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"


def _raises(inputs: Bits, ask: Ask) -> bool:
    try:
        ask(np.ascontiguousarray(inputs))
    except Exception:
        return True
    return False
