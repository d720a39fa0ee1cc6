"""Asks about inputs so that a death ends in a verdict: again, and then in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from oracles.isolation.remote_errors import Crashed, Lost, Quits
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


PART_OF_PATIENCE = 8
"""While the input that hangs is looked for, this part of the time is waited for each answer."""
LEAST_PATIENCE = 1.0
Ask = Callable[[Bits, float], Any]
"""Asks about inputs, and waits so many seconds."""


@dataclass(frozen=True)
class Survival:
    """``close`` ends the process that is asked; a call may take so many seconds."""

    close: Callable[[], None]
    seconds: float

    def of(self, ask: Ask, bits: Bits) -> Any:
        """An answer; or a death that comes again, with the fewest inputs on which it does."""
        try:
            return ask(bits, self.seconds)
        except Lost:
            raise
        except Crashed as met:
            death, seconds = met, self.seconds
            if death.silent:
                seconds = min(seconds, max(LEAST_PATIENCE, seconds / PART_OF_PATIENCE))
        attempt, confirm = partial(self._death, ask, seconds), partial(self._fresh_death, ask)
        try:
            found = narrowed(bits, attempt, confirm)
        except Lost as lost:
            raise Crashed(f"{death}; {lost}", bits, death.silent) from None
        if found is not None:
            raise found
        try:
            return ask(bits, self.seconds)
        except Crashed as death:
            raise death.on(bits) from None

    def _fresh_death(self, ask: Ask, bits: Bits) -> Crashed | None:
        self.close()
        return self._death(ask, self.seconds, bits)

    def _death(self, ask: Ask, seconds: float, bits: Bits) -> Crashed | None:
        """How the process ends when it is asked, if it does; any other answer is none."""
        try:
            ask(bits, seconds)
        except Lost:
            raise
        except Crashed as death:
            return death
        except (Exception, Quits):
            return None
        return None
