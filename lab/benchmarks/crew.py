"""Processes that begin at the same time, and a clock from their beginning to the last one's end."""

from __future__ import annotations

import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

SECONDS_TO_MEET = 600.0
UNIT_OF_PEAK = 1 if sys.platform == "darwin" else 1024
"""``ru_maxrss`` counts bytes on macOS, and kibibytes elsewhere."""

Task = Callable[..., Any]


@dataclass(frozen=True)
class Timed:
    """How long all processes took, what each one found, and the most memory that any has held.

    ``processor`` is their processor time, which other work on the machine disturbs less.
    """

    seconds: float
    processor: float
    found: tuple[Any, ...]
    peak: int


def together(turns: Sequence[Timed]) -> Timed:
    """Combine several turns: the sums of their times, all results, and the highest peak."""
    return Timed(
        sum(turn.seconds for turn in turns),
        sum(turn.processor for turn in turns),
        tuple(found for turn in turns for found in turn.found),
        max(turn.peak for turn in turns),
    )


class Crew:
    """Warm processes, each of which has built its own object to work on."""

    def __init__(self, jobs: int, make: Callable[[], Any]) -> None:
        context = get_context("spawn")
        # The process that measures waits at the barrier too.
        self._barrier = context.Barrier(jobs + 1)
        self._links: list[Connection] = []
        self._processes = []
        for _ in range(jobs):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, self._barrier, make), daemon=True)
            process.start()
            there.close()
            self._links.append(here)
            self._processes.append(process)

    def __enter__(self) -> Crew:
        for link in self._links:
            _received(link)
        return self

    def __exit__(self, *exception: object) -> None:
        for process, link in zip(self._processes, self._links, strict=True):
            process.kill()
            process.join()
            link.close()

    def first(self, task: Task, *arguments: Any) -> Any:
        """Do a task in the first process alone, and return its result."""
        return self.timed(task, [arguments]).found[0]

    def timed(self, task: Task, parts: Sequence[tuple[Any, ...]]) -> Timed:
        """Run a task on one part per process, and time it; processes without a part idle."""
        for place, link in enumerate(self._links):
            link.send((task, parts[place]) if place < len(parts) else (_rest, ()))
        self._barrier.wait(SECONDS_TO_MEET)
        begun = perf_counter()
        answers = [_received(link) for link in self._links]
        seconds = perf_counter() - begun
        found = tuple(answer for answer, _, _ in answers[: len(parts)])
        processor = sum(processor for _, processor, _ in answers)
        return Timed(seconds, processor, found, max(peak for _, _, peak in answers))


def _received(link: Connection) -> Any:
    try:
        answer, error = link.recv()
    except EOFError:
        raise SystemExit("a process of the benchmark has died") from None
    if error:
        raise SystemExit(f"a process of the benchmark has failed:\n{error}")
    return answer


def _work(link: Connection, barrier: Any, make: Callable[[], Any]) -> None:
    try:
        thing = make()
        link.send((None, ""))
        while True:
            task, arguments = link.recv()
            barrier.wait(SECONDS_TO_MEET)
            begun = process_time()
            found = task(thing, *arguments)
            link.send(((found, process_time() - begun, _peak()), ""))
    except EOFError:
        return
    except Exception:
        link.send((None, traceback.format_exc()))


def _rest(_: Any) -> None:
    return None


def _peak() -> int:
    """The peak memory of this process in bytes.

    A new process inherits its parent's figure, so the parent loads no framework.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT_OF_PEAK
