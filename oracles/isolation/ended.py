"""How a process has ended, in words that are the same when it happens again."""

from __future__ import annotations

import re
import signal

LONGEST = 200
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[-:./]\d+)+|\d{4,}")
"""Addresses, times, and numbers as long as those of processes."""


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


def last_line(said: bytes) -> str:
    """The last line that says something, without what differs from one time to the next."""
    lines = said.decode("utf-8", "backslashreplace").splitlines()
    shown = ["".join(letter for letter in line if letter.isprintable()).strip() for line in lines]
    last = next((line for line in reversed(shown) if line), "")
    return VARYING.sub("…", last)[:LONGEST]
