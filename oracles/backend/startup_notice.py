"""Tells the user that a backend's process takes long to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

SILENT_SECONDS = 10.0
"""Seconds after which a line tells the user that a backend is still starting."""


@contextmanager
def startup_notice(words: str, startup_seconds: float, advice: str = "") -> Iterator[None]:
    """Print a line if the block takes long: the backend may be loading slowly, or hang."""

    def tell() -> None:
        seconds = f"{SILENT_SECONDS:g} s; waiting for up to {startup_seconds:g} s"
        print(f"{words} {seconds}{advice}", file=sys.stderr, flush=True)

    notice = Timer(SILENT_SECONDS, tell)
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
