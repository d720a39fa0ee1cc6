"""Asks about inputs so that a death ends in a verdict: again, and then in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from oracles.isolation.errors import Crashed, Lost, Quits
from oracles.isolation.narrowing import narrowed
from oracles.protocol import Bits

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
