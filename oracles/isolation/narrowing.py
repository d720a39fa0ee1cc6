"""Finds the inputs on which a process dies, at the price of a process for each finding."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from oracles.isolation.errors import Crashed
from oracles.protocol import Bits

MOST_DEATHS = 40
MOST_SECONDS = 300.0

Try = Callable[[Bits], Crashed | None]
"""Asks a part of the inputs: how the process ended, or nothing where it lives."""


def narrowed(inputs: Bits, attempt: Try, confirm: Try) -> Crashed | None:
    """The death on as few inputs as can be found; nothing where no part of them is deadly.

    An ``attempt`` may ask a process that was asked before, and need not wait to the end; what it
    finds is proved by ``confirm``, in a fresh process. The process has just died on all of them.
    """
    inputs = inputs.reshape(-1)
    if inputs.size < 2:
        return None
    part, death = inputs[:1], attempt(inputs[:1])
    if death is None:
        part, death = _halved(inputs, attempt)
    elif not death.silent:
        return death.on(part)  # whoever dies whatever it is asked; that process was fresh
    confirmed = confirm(part)
    if confirmed is not None:
        return confirmed.on(part)
    # Parts that were asked with less patience may have been merely slow.
    return None if death is None or death.silent else death


def _halved(part: Bits, attempt: Try) -> tuple[Bits, Crashed | None]:
    """The smallest part that should be deadly, and the death on the smallest that was, if larger.

    Where the first half of a part is harmless, the second is taken to be deadly unasked.
    """
    death = None
    deaths, last = 0, monotonic() + MOST_SECONDS
    while part.size > 1 and deaths < MOST_DEATHS and monotonic() < last:
        half = part.size // 2
        found = attempt(part[:half])
        part = part[half:] if found is None else part[:half]
        if found is not None:
            death = found.on(part)
            deaths += 1
    return part, None if death is None or death.inputs is part else death
