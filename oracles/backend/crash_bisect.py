"""Finds the inputs that crash a backend's process, by repeating the request for parts of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from oracles.backend.remote_errors import CannotRestart, ProcessDied, RemoteBaseException
from oracles.protocol import Bits

MAX_CRASHES = 40
MAX_SECONDS = 300.0
BISECT_TIMEOUT_SHARE = 8
"""In the search for a timeout's cause, each probe gets the usual time divided by this."""
MIN_BISECT_TIMEOUT = 1.0

AskInputs = Callable[[Bits, float], Any]
"""Sends a request for inputs with a timeout in seconds; returns the answer or raises."""
Repeat = Callable[[Bits], ProcessDied | None]
"""Repeats a request with some of its inputs; returns how the process died, or None if it lived."""


@dataclass(frozen=True)
class CrashBisector:
    """Sends requests, and attributes a crash to the fewest inputs found that cause it.

    ``close`` ends the backend's process, so that the next request gets a new one. ``seconds`` is
    the timeout of one request.
    """

    close: Callable[[], None]
    seconds: float

    def ask(self, ask: AskInputs, bits: Bits) -> Any:
        """Return what ``ask`` answers; raise ProcessDied if it crashes the process repeatedly.

        ProcessDied has the fewest inputs found, or all if the search could start no new process. If
        not even the first request had a process, CannotRestart has none. A crash that does not
        repeat is ignored: then the second answer, or its exception, counts.
        """
        try:
            return ask(bits, self.seconds)
        except CannotRestart:
            raise
        except ProcessDied as first:
            crash, seconds = first, self.seconds
            if crash.silent:
                seconds = min(seconds, max(MIN_BISECT_TIMEOUT, seconds / BISECT_TIMEOUT_SHARE))
        probe, confirm = partial(self._probe, ask, seconds), partial(self._probe_anew, ask)
        try:
            smallest = smallest_crash(bits, probe, confirm)
        except CannotRestart as lost:
            raise ProcessDied(f"{crash}; {lost}", bits, crash.silent) from None
        if smallest is not None:
            raise smallest
        try:
            return ask(bits, self.seconds)
        except ProcessDied as again:
            raise again.on(bits) from None

    def _probe_anew(self, ask: AskInputs, bits: Bits) -> ProcessDied | None:
        self.close()
        return self._probe(ask, self.seconds, bits)

    def _probe(self, ask: AskInputs, seconds: float, bits: Bits) -> ProcessDied | None:
        """Return the crash that a request causes; None if it causes none, even if it raises.

        Raises CannotRestart if no new process can be started.
        """
        try:
            ask(bits, seconds)
        except CannotRestart:
            raise
        except ProcessDied as crash:
            return crash
        except (Exception, RemoteBaseException):
            return None
        return None


def smallest_crash(inputs: Bits, probe: Repeat, confirm: Repeat) -> ProcessDied | None:
    """Return the crash with as few of the inputs as can be found; None if no part crashes.

    The process has just crashed on all inputs. ``probe`` may use a process that has answered
    before, and a shorter timeout; ``confirm`` repeats the smallest part in a new process. If that
    lives, the last crash seen counts if it was on a larger part and no timeout; else the result is
    None, as it is for a single input, of which there is no smaller part.
    """
    inputs = inputs.reshape(-1)
    if inputs.size < 2:
        return None
    part, crash = inputs[:1], probe(inputs[:1])
    if crash is None:
        part, crash = _bisect(inputs, probe)
    elif not crash.silent:
        return crash.on(part)  # it crashes on any input; this process was new, so it is confirmed
    confirmed = confirm(part)
    if confirmed is not None:
        return confirmed.on(part)
    # With the shorter timeout of a probe, a part may have been merely slow.
    return None if crash is None or crash.silent else crash


def _bisect(part: Bits, probe: Repeat) -> tuple[Bits, ProcessDied | None]:
    """Halve the inputs again and again, and keep the half that crashes.

    If the first half is harmless, the second is kept without a probe. Stops at one input, after
    ``MAX_CRASHES`` or after ``MAX_SECONDS``. Returns the smallest part and, if the last crash seen
    was on a larger part, that crash; else None.
    """
    crash = None
    crashes, deadline = 0, monotonic() + MAX_SECONDS
    while part.size > 1 and crashes < MAX_CRASHES and monotonic() < deadline:
        half = part.size // 2
        found = probe(part[:half])
        part = part[half:] if found is None else part[:half]
        if found is not None:
            crash = found.on(part)
            crashes += 1
    return part, None if crash is None or crash.inputs is part else crash
