"""Finds the inputs on which an oracle raises, and names those on which its process dies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.form import printable
from oracles.isolation.errors import Crashed
from oracles.protocol import Bits
from reports.divergences import datum_of, simplicity
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
    return _named(source, part)


def told(source: Format, death: Crashed) -> str:
    """How a process has ended, and on which inputs if that is known."""
    if death.inputs is None or not death.inputs.size:
        return printable(str(death))
    shape = death.inputs.shape
    where = f" in shape {shape}" if len(shape) != 1 else ""
    return printable(f"{_named(source, death.inputs.reshape(-1))}{where}: {death}")


def _named(source: Format, part: Bits) -> str:
    first, last = (pattern(source, datum_of(part[place])) for place in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"


def _raises(inputs: Bits, ask: Ask) -> bool:
    try:
        ask(np.ascontiguousarray(inputs))
    except Exception:
        return True
    return False
