"""Does parts of a large piece of work in other processes, while this one goes on."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from oracles.backend.resource_limits import collect_garbage_rarely, keep_freed_memory

Produced = TypeVar("Produced")


@contextmanager
def done_meanwhile(
    parts: Sequence[Callable[[], Produced]],
) -> Iterator[Callable[[], list[Produced] | None]]:
    """Begin parts in at most one process per core; yield a function that waits for their results.

    The function returns None if a process was killed, so that the caller can do the work itself.

    Parts are pickled and must be small, and results lie in files: where a process is killed while
    more than a pipe holds is on its way to or from it, older versions of Python wait for the rest
    without end.
    """
    count = min(len(parts), os.cpu_count() or 1)
    with (
        TemporaryDirectory(prefix="castigate-") as folder,
        ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin) as executor,
    ):
        files = [Path(folder, str(number)) for number in range(len(parts))]
        begun = [executor.submit(_do, part, file) for part, file in zip(parts, files, strict=True)]

        def results() -> list[Produced] | None:
            try:
                for each in begun:
                    each.result()
            except BrokenProcessPool:
                return None
            return [pickle.loads(file.read_bytes()) for file in files]

        yield results


def _begin() -> None:
    """Make a process ignore Ctrl-C, and manage its memory as a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    collect_garbage_rarely()


def _do(part: Callable[[], Any], file: Path) -> None:
    file.write_bytes(pickle.dumps(part()))
