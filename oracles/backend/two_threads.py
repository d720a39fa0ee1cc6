"""Calls an oracle from two threads at the same time, in turns or freely."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, BrokenBarrierError, Lock
from types import FrameType
from typing import Any

import numpy as np

from oracles.protocol import Bits, Oracle
from specs.cases import Case

LONGEST_WAIT = 1e-3
"""Seconds that a thread waits for its turn before it goes on without one."""


def cast_at_once(
    oracle: Oracle, cases: tuple[Case, Case], tensors: Mapping[str, Bits]
) -> dict[str, Bits]:
    """Cast tensors in two threads at the same time, and return the answers by the tensors' names.

    The first thread casts every second tensor, from the first one on, as the first case, the second
    thread the others as the second case. Raises what the oracle raises in either thread.
    """
    names = list(tensors)
    halves = names[::2], names[1::2]
    both, callers = Barrier(2), _Caller.two(_folder_of(oracle))

    def cast(caller: _Caller, case: Case, own: list[str]) -> dict[str, Bits]:
        answers = {}
        try:
            for place, name in enumerate(own):
                if place < len(names) // 2:
                    both.wait()
                # Taking turns is slow, so a request of two tensors does without.
                is_by_turns = place % 2 == 0 and len(names) > 2
                with caller.calling(place, by_turns=is_by_turns):
                    # A copy: an oracle may use one buffer for all its answers.
                    answers[name] = np.array(oracle.cast(case, tensors[name]))
        except BrokenBarrierError:
            pass  # The other thread has raised an error.
        except BaseException:
            both.abort()
            raise
        finally:
            caller.done = len(names)
        return answers

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(cast, callers, cases, halves)
    return one | other


def _folder_of(oracle: Oracle) -> str:
    return os.path.dirname(sys.modules[type(oracle).__module__].__file__ or "")


class _Caller:
    """One of two threads that call an adapter, in turns or freely."""

    other: _Caller

    def __init__(self, folder: str, processor: frozenset[int]) -> None:
        self._folder = folder
        self._processor = processor
        self._turn = Lock()
        """Released by the other thread when it is this one's turn."""
        self._place = 0
        self._is_alone = False
        """Whether the last wait for a turn timed out: the other thread is blocked or busy."""
        self.done = 0
        """The number of calls that this thread has finished."""

    @classmethod
    def two(cls, folder: str) -> tuple[_Caller, _Caller]:
        """Return two callers, linked to each other; ``folder`` is that of the adapter's module."""
        processor = _own_processor()
        one, other = cls(folder, processor), cls(folder, processor)
        one.other, other.other = other, one
        return one, other

    @contextmanager
    def calling(self, place: int, by_turns: bool) -> Iterator[None]:
        """Run the block, which makes the call with index ``place`` of this thread.

        With ``by_turns`` the threads alternate at every line of code in the adapter's folder, on
        one processor, which is four times as fast as on two. Otherwise both run freely, so that
        both may be inside a library at the same time.
        """
        self._place, self._is_alone = place, False
        self._turn.acquire(blocking=False)
        with _on(self._processor if by_turns else frozenset()):
            sys.settrace(self._give_way if by_turns else None)
            try:
                yield
            finally:
                sys.settrace(None)
                self.done = place + 1
                self._pass_on()

    def _give_way(self, frame: FrameType, event: str, arg: object) -> Any:
        if os.path.dirname(frame.f_code.co_filename) != self._folder:
            return None  # A framework's own lines are too many.
        self._pass_on()
        if self.other.done <= self._place:
            self._is_alone = not self._turn.acquire(timeout=0 if self._is_alone else LONGEST_WAIT)
        return self._give_way

    def _pass_on(self) -> None:
        # No other thread releases this lock.
        if self.other._turn.locked():
            self.other._turn.release()


def _own_processor() -> frozenset[int]:
    """Return the number of this thread's processor in a set, empty if threads cannot be pinned."""
    if not hasattr(os, "sched_setaffinity"):
        return frozenset()
    number = ctypes.CDLL(None).sched_getcpu()
    return frozenset({number} & os.sched_getaffinity(0))


@contextmanager
def _on(processor: frozenset[int]) -> Iterator[None]:
    """Pin this thread to the processor during the block; do nothing if the set is empty."""
    if not processor:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processor)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
