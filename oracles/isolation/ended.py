"""How a process has ended, in words that are the same when it happens again."""

from __future__ import annotations

import signal


def end_in_words(code: int | None) -> str:
    """How a process has ended, by its exit code."""
    if code is None or code >= 0:
        return f"ended by itself with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def silence_in_words(seconds: float) -> str:
    """What to say of a process that was waited for in vain."""
    return f"was silent for {seconds:g} s"


def nonsense_in_words(error: Exception) -> str:
    """What to say of a process that answers by no answer."""
    return f"wrote something else than answers: {error}"
