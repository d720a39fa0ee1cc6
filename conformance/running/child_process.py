"""Processes of our own beside this one, and the links to them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from oracles.isolation.resource_limits import die_with_parent


def spawned(work: Callable[..., None], *given: Any) -> tuple[SpawnProcess, Connection]:
    """A process that does some work by a link, and our end of that."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, *given), daemon=True)
    # Ctrl-C is for the parent alone; so it must not reach a process that only begins either.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    there.close()
    return process, here


def live_with_parent() -> None:
    """In such a process: leave Ctrl-C to the parent, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
